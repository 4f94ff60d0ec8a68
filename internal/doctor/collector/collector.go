// Package collector collects the evidence for a diagnosis from Kubernetes and AWS.
//
// In: clients; any of them may be missing.
// Out: diagnosis.Evidence, each item with its source and time, or with the reason why it is absent.
// Never: a change of any object, a verdict, or a secret: secrets are removed from all texts.
package collector

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// Clients are the clients of the sources of evidence. A nil client disables its requests.
type Clients struct {
	Kube    *evidence.Witness
	EKS     *eks.Client
	IAM     *iam.Client
	EC2     *ec2.Client
	Images  *ami.Client
	Network *vpc.Client

	// NoKube and NoAWS are the reasons, for the user, why Kube or the AWS clients are nil.
	NoKube, NoAWS string

	// UserData returns the problems of the user data of the cluster's EC2NodeClasses. Nil: user data is not read.
	UserData func(context.Context) ([]diagnosis.UserDataProblem, error)

	// Late limits the requests to evidence of why instances do not join, for frequent use. Its keys are the IDs of the
	// late instances, whose console output is read. If Late is empty, no instance is requested. Nil: everything is
	// collected.
	Late map[string]bool

	// NoIAM is true if IAM cannot be reached. If Late is set, IAM is then not called.
	NoIAM bool

	Cluster string // name of the EKS cluster
	Region  string // AWS region

	// Controller is the Deployment of the controller, as namespace/name, for a cluster with several candidates. Empty:
	// Collect finds it.
	Controller string
	// Progress is called when the reading of an item starts and, with done true, when it ends. It may be called concurrently. Nil disables it.
	Progress func(source string, done bool)

	// Patience is the timeout of one item. Zero: ten seconds.
	Patience time.Duration
	// Now is the clock. Nil: the system's.
	Now func() time.Time
}

// usualPatience is the default timeout of one item.
const usualPatience = 10 * time.Second

// mostConsoles is for how many instances of each EC2NodeClass console output is read; instances of one class fail alike.
const mostConsoles = 3

// mostConsole is how many bytes of console output are kept, from its end.
const mostConsole = 48 << 10

// collector is one collection in progress.
type collector struct {
	Clients
	e diagnosis.Evidence
}

// Collect requests all evidence. It never fails: items that cannot be read are marked absent. Items that depend on
// other items are requested after them.
func Collect(ctx context.Context, d Clients) diagnosis.Evidence {
	if d.Patience == 0 {
		d.Patience = usualPatience
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	c := &collector{Clients: d}
	c.e = diagnosis.Evidence{Format: diagnosis.Format, At: d.Now().UTC(), Name: d.Cluster, Region: d.Region,
		Roles:    map[string]diagnosis.Item[diagnosis.Role]{},
		Profiles: map[string]diagnosis.Item[diagnosis.Profile]{},
		PassRole: map[string]diagnosis.Item[bool]{},
	}
	if d.Late != nil {
		c.joining(ctx)
		return c.e
	}
	c.together(c.kubernetes(ctx))
	c.count()
	c.together(c.account(ctx))
	c.claims(ctx)
	c.together(c.region(ctx))
	c.together(c.dependents(ctx))
	return c.e
}

// together runs independent requests concurrently. Each writes its own field.
func (c *collector) together(all []func()) {
	var group errgroup.Group
	for _, f := range all {
		group.Go(func() error { f(); return nil })
	}
	_ = group.Wait() // the functions return no errors
}

// ask requests one item within the timeout, and records why it is absent.
func ask[T any](ctx context.Context, c *collector, source string, f func(context.Context) (T, error)) diagnosis.Item[T] {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	if c.Progress != nil {
		c.Progress(source, false)
		defer c.Progress(source, true)
	}
	value, err := f(ctx)
	at := c.Now().UTC()
	if err == nil {
		return diagnosis.Found(source, at, value)
	}
	absent, why := absence(ctx, source, err)
	return diagnosis.Lacking[T](source, at, absent, diagnosis.Mask(why))
}

// absence classifies an error of any client.
func absence(ctx context.Context, source string, err error) (diagnosis.Absence, string) {
	var aws *awserr.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return diagnosis.Failed, "there was no answer in time"
	case errors.As(err, &aws) && aws.Kind == awserr.Gone:
		return diagnosis.Missing, ""
	case errors.As(err, &aws) && aws.Kind == awserr.Denied && aws.Reason == "Unauthorized":
		service, _, _ := strings.Cut(source, ":")
		action, _, _ := strings.Cut(aws.Op, " ")
		return diagnosis.Denied, service + ":" + action
	case errors.As(err, &aws):
		return diagnosis.Failed, aws.Error()
	case kubeclient.WhatNext(err) == kubeclient.Gone:
		return diagnosis.Missing, ""
	case kubeclient.IsUndiscovered(err):
		return diagnosis.Denied, "to discover the kinds of objects (system:discovery)"
	case kubeclient.IsForbidden(err):
		return diagnosis.Denied, "to get and list " + source
	}
	return diagnosis.Failed, strings.Join(strings.Fields(err.Error()), " ")
}

// unasked marks an item of AWS or Kubernetes without a client.
func unasked[T any](why string) diagnosis.Item[T] {
	return diagnosis.Item[T]{Absent: diagnosis.NotAsked, Why: why}
}

// into requests an item of a list or a struct and writes it to its field.
func into[T any](ctx context.Context, c *collector, field *diagnosis.Item[T], source string, f func(context.Context) (T, error)) func() {
	return func() { *field = ask(ctx, c, source, f) }
}

// list requests a list, which may be read only partly.
func list[T any](ctx context.Context, c *collector, field *diagnosis.Item[[]T], source string,
	f func(context.Context) ([]T, string, error)) func() {
	return func() { *field = askList(ctx, c, source, f) }
}

func askList[T any](ctx context.Context, c *collector, source string, f func(context.Context) ([]T, string, error)) diagnosis.Item[[]T] {
	cut := ""
	item := ask(ctx, c, source, func(ctx context.Context) (all []T, err error) {
		all, cut, err = f(ctx)
		return all, err
	})
	if item.Known() {
		item.Cut = cut
	}
	return item
}

// kubernetes returns all requests to Kubernetes except the one for NodeClaims.
func (c *collector) kubernetes(ctx context.Context) []func() {
	e, w := &c.e, c.Kube
	e.UserData = unasked[[]diagnosis.UserDataProblem](c.NoKube)
	if c.UserData != nil {
		e.UserData = ask(ctx, c, "spec.userData of ec2nodeclasses", c.UserData)
	}
	if w == nil {
		e.Home, e.AuthMap, e.Controller = unasked[diagnosis.Home](c.NoKube), unasked[diagnosis.AuthMap](c.NoKube),
			unasked[diagnosis.Controller](c.NoKube)
		e.Classes, e.Pools, e.Claims = unasked[[]diagnosis.Class](c.NoKube), unasked[[]diagnosis.Pool](c.NoKube),
			unasked[[]diagnosis.Claim](c.NoKube)
		e.Nodes, e.Pods, e.Daemons = unasked[[]diagnosis.Node](c.NoKube), unasked[[]diagnosis.Pod](c.NoKube),
			unasked[[]diagnosis.DaemonSet](c.NoKube)
		e.Events, e.Lease = unasked[[]diagnosis.Event](c.NoKube), unasked[diagnosis.Lease](c.NoKube)
		return nil
	}
	return []func(){
		into(ctx, c, &e.Home, "namespace kube-system", w.Home),
		into(ctx, c, &e.AuthMap, "configmap kube-system/aws-auth", w.AuthMap),
		list(ctx, c, &e.Classes, "ec2nodeclasses", w.Classes),
		list(ctx, c, &e.Pools, "nodepools", w.Pools),
		list(ctx, c, &e.Nodes, "nodes", w.Nodes),
		list(ctx, c, &e.Daemons, "daemonsets", w.Daemons),
		list(ctx, c, &e.Events, "events", w.Events),
		func() {
			e.Pods = askList(ctx, c, "pods", w.Pods)
			events := askList(ctx, c, "events of pods",
				func(ctx context.Context) ([]evidence.PodEvent, string, error) { return w.PodEvents(ctx, e.Pods.Value) })
			e.Pods.Value = evidence.WithEvents(e.Pods.Value, events.Value)
			if e.Pods.Known() && events.Cut != "" {
				e.Pods.Cut = strings.TrimPrefix(e.Pods.Cut+"; "+events.Cut, "; ")
			}
			e.Controller = c.controller(ctx, events.Value)
			e.Lease = c.lease(ctx)
		},
	}
}

// claims reads the NodeClaims after the instances, so that an instance launched in between is in the status of its NodeClaim. Tags of
// instances about NodeClaims and EC2NodeClasses count only then.
func (c *collector) claims(ctx context.Context) {
	if c.Kube != nil {
		c.e.Claims = askList(ctx, c, "nodeclaims", c.Kube.Claims)
	}
	c.e.Instances.Value = diagnosis.Claimed(c.e.Instances.Value, c.e.Claims.Value)
}

// count counts the instance types that remain after each requirement of each NodePool, for the AMI family of its EC2NodeClass.
func (c *collector) count() {
	families := map[string]string{}
	for _, class := range c.e.Classes.Value {
		families[class.Name] = class.Family
	}
	for i := range c.e.Pools.Value {
		p := &c.e.Pools.Value[i]
		if p.Steps = steps(*p, families[p.Class], c.Region); isEmpty(p.Steps) {
			p.Loosened = loosening(*p, families[p.Class], c.Region)
		}
	}
}

func (c *collector) controller(ctx context.Context, events []evidence.PodEvent) diagnosis.Item[diagnosis.Controller] {
	source, there := "deployments and serviceaccounts of a controller", false
	item := ask(ctx, c, source, func(ctx context.Context) (diagnosis.Controller, error) {
		out, at, found, err := c.Kube.Controller(ctx, c.Clients.Controller, events)
		if found {
			source, there = at, true
		}
		return out, err
	})
	if item.Known() && !there {
		return diagnosis.Lacking[diagnosis.Controller](source, item.At, diagnosis.Missing, "")
	}
	item.Source = source
	return item
}

// renewing is longer than the controller's interval of Lease renewals, which is two seconds.
const renewing = 5 * time.Second

// lease returns the Lease with the name in the controller's Deployment. A Lease that seems expired is read twice,
// because the local clock may be ahead. If the Lease is renewed in between, its renewal time is set to now.
func (c *collector) lease(ctx context.Context) diagnosis.Item[diagnosis.Lease] {
	there := false
	item := ask(ctx, c, "leases", func(ctx context.Context) (diagnosis.Lease, error) {
		own := c.e.Controller.Value // the chosen controller, or the controller in a namespace that tenants cannot write to
		name, besides := own.Settings["LEADER_ELECTION_NAME"], []string{own.Settings["LEADER_ELECTION_NAMESPACE"], own.Namespace}
		first, found, err := c.Kube.Lease(ctx, name, besides...)
		there = found
		if err != nil || !found || first.Holder == "" || time.Since(first.End()) < 0 {
			return first, err
		}
		select {
		case <-ctx.Done():
			return first, ctx.Err()
		case <-time.After(renewing):
		}
		second, found, err := c.Kube.Lease(ctx, name, besides...)
		if found && second.Renewed.After(first.Renewed) {
			second.Renewed = time.Now().UTC()
		}
		there = found
		return second, err
	})
	switch {
	case item.Known() && !there:
		return diagnosis.Lacking[diagnosis.Lease](item.Source, item.At, diagnosis.Missing, "")
	case item.Known():
		item.Source = "lease " + item.Value.Namespace + "/" + item.Value.Name
	}
	return item
}

// noAWS marks all items of AWS as absent.
func (c *collector) noAWS() {
	e := &c.e
	e.Cluster, e.Caller, e.Entries = unasked[diagnosis.Cluster](c.NoAWS), unasked[string](c.NoAWS), unasked[[]diagnosis.Entry](c.NoAWS)
	e.NodeGroups, e.Fargate, e.VPC = unasked[[]diagnosis.NodeGroup](c.NoAWS), unasked[[]diagnosis.FargateProfile](c.NoAWS),
		unasked[diagnosis.VPC](c.NoAWS)
	e.Subnets, e.Routes, e.Endpoints = unasked[[]diagnosis.Subnet](c.NoAWS), unasked[[]diagnosis.RouteTable](c.NoAWS),
		unasked[[]diagnosis.Endpoint](c.NoAWS)
	e.Groups, e.NATAddresses, e.Images = unasked[[]diagnosis.Group](c.NoAWS), unasked[[]string](c.NoAWS), unasked[[]diagnosis.Image](c.NoAWS)
	e.ACLs = unasked[[]diagnosis.ACL](c.NoAWS)
	e.Instances, e.Impaired = unasked[[]diagnosis.Instance](c.NoAWS), unasked[map[string]string](c.NoAWS)
}

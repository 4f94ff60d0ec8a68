// Package collector collects what a diagnosis rests on, from all doors at once.
//
// In: the doors that are open; any of them may be missing.
// Out: diagnosis.Evidence, each item with its source and time, or with why it is absent.
// Never: a change to anything, a verdict, or a secret: texts of others have had theirs taken out.
package collector

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/joiner-sh/joiner/internal/aws/access"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/kube"
)

// Doors are where evidence comes from. Those that are nil are not asked.
type Doors struct {
	Kube    *kube.Witness
	Access  *access.Door
	EC2     *ec2.Door
	Images  *ami.Door
	Network *vpc.Door

	// NoKube and NoAWS say why there are none of these doors, for the user.
	NoKube, NoAWS string

	// UserData finds what is wrong with the user data of the cluster's EC2NodeClasses. Nil: nobody looks.
	UserData func(context.Context) ([]diagnosis.UserDataProblem, error)

	// Late narrows the questions to what keeps instances from joining, for whoever asks often. It names the ids of the instances
	// that are late, whose consoles are read; empty, no instance is asked about. Nil: everything is asked.
	Late map[string]bool

	// NoIAM is true where there is no way to IAM: with Late, it is not asked.
	NoIAM bool

	Cluster string // name of the EKS cluster
	Region  string

	// Controller is the Deployment of the controller, as namespace/name, for a cluster where several may be it. Empty: it is found.
	Controller string
	// Progress, where set, is called when an item begins to be read and, with done true, when it was read. It may be called concurrently.
	Progress func(source string, done bool)

	// Patience is how long one item may take. Zero: ten seconds.
	Patience time.Duration
	// Now is the clock. Nil: the system's.
	Now func() time.Time
}

// usualPatience is how long one item may take.
const usualPatience = 10 * time.Second

// mostConsoles is how many instances' consoles are read for each EC2NodeClass: those of one class fail alike.
const mostConsoles = 3

// mostConsole is how much of a console is kept, from its end.
const mostConsole = 48 << 10

// collector is one collection under way.
type collector struct {
	Doors
	e diagnosis.Evidence
}

// Collect asks all doors. It fails never: what could not be had is marked absent. What depends on other items is asked for after them.
func Collect(ctx context.Context, d Doors) diagnosis.Evidence {
	if d.Patience == 0 {
		d.Patience = usualPatience
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	c := &collector{Doors: d}
	c.e = diagnosis.Evidence{Format: diagnosis.Format, At: d.Now().UTC(), Name: d.Cluster, Region: d.Region,
		Roles: map[string]diagnosis.Item[diagnosis.Role]{}, Profiles: map[string]diagnosis.Item[diagnosis.Profile]{}, PassRole: map[string]diagnosis.Item[bool]{}}
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

// together runs what does not depend on each other at the same time. Each writes a field of its own.
func (c *collector) together(all []func()) {
	var group errgroup.Group
	for _, f := range all {
		group.Go(func() error { f(); return nil })
	}
	_ = group.Wait() // they return no errors
}

// ask asks for one item within the patience, and marks why it is absent.
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

// absence sorts an error of any door.
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
	case kube.WhatNext(err) == kube.Gone:
		return diagnosis.Missing, ""
	case kube.IsUndiscovered(err):
		return diagnosis.Denied, "to ask which kinds of objects there are (system:discovery)"
	case kube.IsForbidden(err):
		return diagnosis.Denied, "to get and list " + source
	}
	return diagnosis.Failed, strings.Join(strings.Fields(err.Error()), " ")
}

// unasked marks an item of AWS or Kubernetes that there is no door for.
func unasked[T any](why string) diagnosis.Item[T] {
	return diagnosis.Item[T]{Absent: diagnosis.NotAsked, Why: why}
}

// into is an item of a list or a struct, asked for and written to its field.
func into[T any](ctx context.Context, c *collector, field *diagnosis.Item[T], source string, f func(context.Context) (T, error)) func() {
	return func() { *field = ask(ctx, c, source, f) }
}

// list is an item that is a list, of which maybe only a part could be read.
func list[T any](ctx context.Context, c *collector, field *diagnosis.Item[[]T], source string, f func(context.Context) ([]T, string, error)) func() {
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

// kubernetes is all that Kubernetes is asked, but for the NodeClaims, and what needs its events.
func (c *collector) kubernetes(ctx context.Context) []func() {
	e, w := &c.e, c.Kube
	e.UserData = unasked[[]diagnosis.UserDataProblem](c.NoKube)
	if c.UserData != nil {
		e.UserData = ask(ctx, c, "spec.userData of ec2nodeclasses", c.UserData)
	}
	if w == nil {
		e.Home, e.AuthMap, e.Controller = unasked[diagnosis.Home](c.NoKube), unasked[diagnosis.AuthMap](c.NoKube), unasked[diagnosis.Controller](c.NoKube)
		e.Classes, e.Pools, e.Claims = unasked[[]diagnosis.Class](c.NoKube), unasked[[]diagnosis.Pool](c.NoKube), unasked[[]diagnosis.Claim](c.NoKube)
		e.Nodes, e.Pods, e.Daemons = unasked[[]diagnosis.Node](c.NoKube), unasked[[]diagnosis.Pod](c.NoKube), unasked[[]diagnosis.DaemonSet](c.NoKube)
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
			events := askList(ctx, c, "events of pods", func(ctx context.Context) ([]kube.PodEvent, string, error) { return w.PodEvents(ctx, e.Pods.Value) })
			e.Pods.Value = kube.WithEvents(e.Pods.Value, events.Value)
			if e.Pods.Known() && events.Cut != "" {
				e.Pods.Cut = strings.TrimPrefix(e.Pods.Cut+"; "+events.Cut, "; ")
			}
			e.Controller = c.controller(ctx, events.Value)
			e.Lease = c.lease(ctx)
		},
	}
}

// claims reads the NodeClaims, after the instances: one that was launched in between has its provider ID in the status of its NodeClaim by
// now. What an instance's tags say of a NodeClaim or an EC2NodeClass counts only then.
func (c *collector) claims(ctx context.Context) {
	if c.Kube != nil {
		c.e.Claims = askList(ctx, c, "nodeclaims", c.Kube.Claims)
	}
	c.e.Instances.Value = diagnosis.Claimed(c.e.Instances.Value, c.e.Claims.Value)
}

// count counts, of each NodePool, what is left of a region's types after each requirement, with the AMI family of its EC2NodeClass.
func (c *collector) count() {
	families := map[string]string{}
	for _, class := range c.e.Classes.Value {
		families[class.Name] = class.Family
	}
	for i := range c.e.Pools.Value {
		p := &c.e.Pools.Value[i]
		if p.Steps = steps(*p, families[p.Class], c.Region); isEmpty(p.Steps) {
			p.Mend = loosening(*p, families[p.Class], c.Region)
		}
	}
}

func (c *collector) controller(ctx context.Context, events []kube.PodEvent) diagnosis.Item[diagnosis.Controller] {
	source, there := "deployments and serviceaccounts of a controller", false
	item := ask(ctx, c, source, func(ctx context.Context) (diagnosis.Controller, error) {
		out, at, found, err := c.Kube.Controller(ctx, c.Doors.Controller, events)
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

// renewing is longer than a controller takes to renew its lease again, which it does every two seconds.
const renewing = 5 * time.Second

// lease is the controller's, by the name that its Deployment says. One that seems to have ended is looked at twice: the clock that says so may be
// ahead of the one that it was renewed by. What is renewed in between is renewed now, by the clock here.
func (c *collector) lease(ctx context.Context) diagnosis.Item[diagnosis.Lease] {
	there := false
	item := ask(ctx, c, "leases", func(ctx context.Context) (diagnosis.Lease, error) {
		own := c.e.Controller.Value // what was chosen, or found in a namespace that no tenant can write to
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

// noAWS marks all that AWS would have said.
func (c *collector) noAWS() {
	e := &c.e
	e.Cluster, e.Caller, e.Entries = unasked[diagnosis.Cluster](c.NoAWS), unasked[string](c.NoAWS), unasked[[]diagnosis.Entry](c.NoAWS)
	e.NodeGroups, e.Fargate, e.VPC = unasked[[]diagnosis.NodeGroup](c.NoAWS), unasked[[]diagnosis.FargateProfile](c.NoAWS), unasked[diagnosis.VPC](c.NoAWS)
	e.Subnets, e.Routes, e.Endpoints = unasked[[]diagnosis.Subnet](c.NoAWS), unasked[[]diagnosis.RouteTable](c.NoAWS), unasked[[]diagnosis.Endpoint](c.NoAWS)
	e.Groups, e.NATAddresses, e.Images = unasked[[]diagnosis.Group](c.NoAWS), unasked[[]string](c.NoAWS), unasked[[]diagnosis.Image](c.NoAWS)
	e.ACLs = unasked[[]diagnosis.ACL](c.NoAWS)
	e.Instances, e.Impaired = unasked[[]diagnosis.Instance](c.NoAWS), unasked[map[string]string](c.NoAWS)
}

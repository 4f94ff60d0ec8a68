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
	Kube    *evidence.Reader
	EKS     *eks.Client
	IAM     *iam.Client
	EC2     *ec2.Client
	Images  *ami.Client
	Network *vpc.Client

	// NoKube and NoAWS are the reasons, for the user, why Kube or the AWS clients are nil.
	NoKube, NoAWS string

	// UserData returns the problems of the user data of the cluster's EC2NodeClasses. Nil: user data is not read.
	UserData func(context.Context) ([]diagnosis.UserDataProblem, error)

	// Late limits the requests to evidence of why instances do not join, so that Collect can be called often. Its keys
	// are the IDs of the late instances, whose console output is read. If Late is empty but not nil, no instance is
	// requested. Nil: all evidence is requested.
	Late map[string]bool

	// NoIAM disables the requests to IAM, because IAM cannot be reached. It has an effect only if Late is not nil.
	NoIAM bool

	Cluster string // name of the EKS cluster
	Region  string // AWS region

	// Controller is the Deployment of the controller, as namespace/name. Empty: Collect finds it, if only one
	// Deployment can be the controller's.
	Controller string
	// Progress is called before and, with done true, after the request of an item. Calls may be concurrent. Nil
	// disables it.
	Progress func(source string, done bool)

	// ItemTimeout is the timeout of one item. Zero: ten seconds.
	ItemTimeout time.Duration
	// Now is the clock for the times of items. Nil: the system's.
	Now func() time.Time
}

const defaultItemTimeout = 10 * time.Second

// maxConsoles is the maximum number of instances per EC2NodeClass whose console output is read. Instances of one class
// usually fail for the same reason.
const maxConsoles = 3

// maxConsoleBytes is how much of the end of a console output is kept.
const maxConsoleBytes = 48 << 10

type collector struct {
	Clients
	e diagnosis.Evidence // the evidence collected so far
}

// Collect requests all evidence. It returns no error: items that cannot be read are marked as absent. An item that
// depends on other items is requested after them.
func Collect(ctx context.Context, clients Clients) diagnosis.Evidence {
	if clients.ItemTimeout == 0 {
		clients.ItemTimeout = defaultItemTimeout
	}
	if clients.Now == nil {
		clients.Now = time.Now
	}
	c := &collector{Clients: clients}
	c.e = diagnosis.Evidence{Format: diagnosis.Format, At: clients.Now().UTC(), Name: clients.Cluster, Region: clients.Region,
		Roles:    map[string]diagnosis.Item[diagnosis.Role]{},
		Profiles: map[string]diagnosis.Item[diagnosis.Profile]{},
		PassRole: map[string]diagnosis.Item[bool]{},
	}
	if clients.Late != nil {
		c.collectForJoining(ctx)
		return c.e
	}
	c.runConcurrently(c.kubernetesRequests(ctx))
	c.countTypes()
	c.runConcurrently(c.independentRequests(ctx))
	c.claims(ctx)
	c.runConcurrently(c.vpcAndConsoleRequests(ctx))
	c.runConcurrently(c.dependentRequests(ctx))
	return c.e
}

// runConcurrently runs independent requests concurrently and waits for them. Each request writes its own field of the
// evidence.
func (c *collector) runConcurrently(all []func()) {
	var group errgroup.Group
	for _, f := range all {
		group.Go(func() error { f(); return nil })
	}
	_ = group.Wait() // the functions return no errors
}

// ask requests one item with the timeout ItemTimeout. If f fails, the item is absent, with the reason.
func ask[T any](ctx context.Context, c *collector, source string, f func(context.Context) (T, error)) diagnosis.Item[T] {
	ctx, cancel := context.WithTimeout(ctx, c.ItemTimeout)
	defer cancel()
	if c.Progress != nil {
		c.Progress(source, false)
		defer c.Progress(source, true)
	}
	value, err := f(ctx)
	at := c.Now().UTC()
	if err == nil {
		return diagnosis.KnownItem(source, at, value)
	}
	absent, why := absence(ctx, source, err)
	return diagnosis.AbsentItem[T](source, at, absent, diagnosis.Mask(why))
}

// absence classifies an error of any client. The text is the missing permission for Denied, and the error for Failed.
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
	case kubeclient.Classify(err) == kubeclient.Gone:
		return diagnosis.Missing, ""
	case kubeclient.IsUndiscovered(err):
		return diagnosis.Denied, "to discover the kinds of objects (system:discovery)"
	case kubeclient.IsForbidden(err):
		return diagnosis.Denied, "to get and list " + source
	}
	return diagnosis.Failed, strings.Join(strings.Fields(err.Error()), " ")
}

func notRequested[T any](why string) diagnosis.Item[T] {
	return diagnosis.Item[T]{Absent: diagnosis.NotAsked, Why: why}
}

func into[T any](ctx context.Context, c *collector, field *diagnosis.Item[T], source string, f func(context.Context) (T, error)) func() {
	return func() { *field = ask(ctx, c, source, f) }
}

// listInto does the same as into, for a list that may be incomplete. If f leaves out a part of the list, f also returns
// a text that describes the part.
func listInto[T any](ctx context.Context, c *collector, field *diagnosis.Item[[]T], source string,
	f func(context.Context) ([]T, string, error)) func() {
	return func() { *field = askList(ctx, c, source, f) }
}

// askList does the same as ask, for a list that may be incomplete. The text that f returns becomes the item's
// Truncation.
func askList[T any](ctx context.Context, c *collector, source string, f func(context.Context) ([]T, string, error)) diagnosis.Item[[]T] {
	truncation := ""
	item := ask(ctx, c, source, func(ctx context.Context) (all []T, err error) {
		all, truncation, err = f(ctx)
		return all, err
	})
	if item.Known() {
		item.Truncation = truncation
	}
	return item
}

// kubernetesRequests reads the user data, and returns all other requests to Kubernetes except that for NodeClaims.
// Without a client, it marks these items as absent and returns nil.
func (c *collector) kubernetesRequests(ctx context.Context) []func() {
	e, kube := &c.e, c.Kube
	e.UserData = notRequested[[]diagnosis.UserDataProblem](c.NoKube)
	if c.UserData != nil {
		e.UserData = ask(ctx, c, "spec.userData of ec2nodeclasses", c.UserData)
	}
	if kube == nil {
		e.Identity, e.AuthMap, e.Controller = notRequested[diagnosis.ClusterIdentity](c.NoKube), notRequested[diagnosis.AuthMap](c.NoKube),
			notRequested[diagnosis.Controller](c.NoKube)
		e.Classes, e.Pools, e.Claims = notRequested[[]diagnosis.Class](c.NoKube), notRequested[[]diagnosis.Pool](c.NoKube),
			notRequested[[]diagnosis.Claim](c.NoKube)
		e.Nodes, e.Pods, e.Daemons = notRequested[[]diagnosis.Node](c.NoKube), notRequested[[]diagnosis.Pod](c.NoKube),
			notRequested[[]diagnosis.DaemonSet](c.NoKube)
		e.Events, e.Lease = notRequested[[]diagnosis.Event](c.NoKube), notRequested[diagnosis.Lease](c.NoKube)
		return nil
	}
	return []func(){
		into(ctx, c, &e.Identity, "namespace kube-system", kube.Home),
		into(ctx, c, &e.AuthMap, "configmap kube-system/aws-auth", kube.AuthMap),
		listInto(ctx, c, &e.Classes, "ec2nodeclasses", kube.Classes),
		listInto(ctx, c, &e.Pools, "nodepools", kube.Pools),
		listInto(ctx, c, &e.Nodes, "nodes", kube.Nodes),
		listInto(ctx, c, &e.Daemons, "daemonsets", kube.Daemons),
		listInto(ctx, c, &e.Events, "events", kube.Events),
		func() {
			e.Pods = askList(ctx, c, "pods", kube.Pods)
			events := askList(ctx, c, "events of pods",
				func(ctx context.Context) ([]evidence.PodEvent, string, error) {
					return kube.PodEvents(ctx, e.Pods.Value)
				})
			e.Pods.Value = evidence.WithEvents(e.Pods.Value, events.Value)
			if e.Pods.Known() && events.Truncation != "" {
				e.Pods.Truncation = strings.TrimPrefix(e.Pods.Truncation+"; "+events.Truncation, "; ")
			}
			e.Controller = c.controller(ctx, events.Value)
			e.Lease = c.lease(ctx)
		},
	}
}

// claims reads the NodeClaims after the instances, so that it also gets the NodeClaims of the newest instances. It
// then replaces the names of NodeClaims and EC2NodeClasses in the instances' tags by those in the NodeClaims.
func (c *collector) claims(ctx context.Context) {
	if c.Kube != nil {
		c.e.Claims = askList(ctx, c, "nodeclaims", c.Kube.Claims)
	}
	c.e.Instances.Value = diagnosis.WithClaims(c.e.Instances.Value, c.e.Claims.Value)
}

// countTypes sets Steps of each NodePool: how many instance types remain after each requirement. The types also depend
// on the AMI family of the EC2NodeClass. If no types remain, countTypes sets Loosened to the smallest change after
// which types remain (see loosening).
func (c *collector) countTypes() {
	families := map[string]string{}
	for _, class := range c.e.Classes.Value {
		families[class.Name] = class.Family
	}
	for i := range c.e.Pools.Value {
		p := &c.e.Pools.Value[i]
		if p.Steps = countTypesPerRequirement(*p, families[p.Class], c.Region); hasNoTypes(p.Steps) {
			p.Loosened = loosening(*p, families[p.Class], c.Region)
		}
	}
}

// controller returns the Deployment of the controller. The source of the item names the objects that were read.
func (c *collector) controller(ctx context.Context, events []evidence.PodEvent) diagnosis.Item[diagnosis.Controller] {
	source, isFound := "deployments and serviceaccounts of a controller", false
	item := ask(ctx, c, source, func(ctx context.Context) (diagnosis.Controller, error) {
		out, objects, found, err := c.Kube.Controller(ctx, c.Clients.Controller, events)
		if found {
			source, isFound = objects, true
		}
		return out, err
	})
	if item.Known() && !isFound {
		return diagnosis.AbsentItem[diagnosis.Controller](source, item.At, diagnosis.Missing, "")
	}
	item.Source = source
	return item
}

// leaseRecheckPause is the pause between two readings of the Lease. It is longer than the interval at which the
// controller renews the Lease, which is two seconds.
const leaseRecheckPause = 5 * time.Second

// lease returns the Lease whose name is in the settings of the controller's Deployment. A Lease that seems expired is
// read again after leaseRecheckPause, because the local clock may be ahead. If the Lease was renewed during the
// pause, the result has the local time as renewal time.
func (c *collector) lease(ctx context.Context) diagnosis.Item[diagnosis.Lease] {
	isFound := false
	item := ask(ctx, c, "leases", func(ctx context.Context) (diagnosis.Lease, error) {
		controller := c.e.Controller.Value // tenants cannot forge it: see evidence.Reader.Controller
		name := controller.Settings["LEADER_ELECTION_NAME"]
		namespaces := []string{controller.Settings["LEADER_ELECTION_NAMESPACE"], controller.Namespace}
		first, found, err := c.Kube.Lease(ctx, name, namespaces...)
		isFound = found
		if err != nil || !found || first.Holder == "" || time.Since(first.End()) < 0 {
			return first, err
		}
		select {
		case <-ctx.Done():
			return first, ctx.Err()
		case <-time.After(leaseRecheckPause):
		}
		second, found, err := c.Kube.Lease(ctx, name, namespaces...)
		if found && second.Renewed.After(first.Renewed) {
			second.Renewed = time.Now().UTC()
		}
		isFound = found
		return second, err
	})
	switch {
	case item.Known() && !isFound:
		return diagnosis.AbsentItem[diagnosis.Lease](item.Source, item.At, diagnosis.Missing, "")
	case item.Known():
		item.Source = "lease " + item.Value.Namespace + "/" + item.Value.Name
	}
	return item
}

func (c *collector) markAWSAbsent() {
	e := &c.e
	e.Cluster, e.Caller = notRequested[diagnosis.Cluster](c.NoAWS), notRequested[string](c.NoAWS)
	e.Entries = notRequested[[]diagnosis.Entry](c.NoAWS)
	e.NodeGroups, e.Fargate, e.VPC = notRequested[[]diagnosis.NodeGroup](c.NoAWS), notRequested[[]diagnosis.FargateProfile](c.NoAWS),
		notRequested[diagnosis.VPC](c.NoAWS)
	e.Subnets, e.Routes, e.Endpoints = notRequested[[]diagnosis.Subnet](c.NoAWS), notRequested[[]diagnosis.RouteTable](c.NoAWS),
		notRequested[[]diagnosis.Endpoint](c.NoAWS)
	e.Groups, e.NATAddresses = notRequested[[]diagnosis.Group](c.NoAWS), notRequested[[]string](c.NoAWS)
	e.Images, e.ACLs = notRequested[[]diagnosis.Image](c.NoAWS), notRequested[[]diagnosis.ACL](c.NoAWS)
	e.Instances, e.Impaired = notRequested[[]diagnosis.Instance](c.NoAWS), notRequested[map[string]string](c.NoAWS)
}

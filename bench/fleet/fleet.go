package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Durations of the simulation.
const (
	LaunchTime       = 2 * time.Second  // from a launch until the instance exists
	JoinTime         = 45 * time.Second // from a launch until the node is ready
	DrainTime        = 30 * time.Second // from the last eviction on a removed node until the node is no longer paid for
	EvictionInterval = time.Second      // from one eviction to the next in RemoveGradually
)

// Fleet is a simulated cluster. It is not safe for concurrent use.
type Fleet struct {
	Pools  []*karpv1.NodePool
	Market catalog.Market // offerings and prices
	Watch  Watcher        // receives changes; nil disables it

	// LargeFirst sets the order of evictions in one call of Remove. If true, Remove evicts the largest pod of each
	// node, then the second largest of each node, and so on. Otherwise it evicts the pods node after node, sorted by
	// name.
	LargeFirst bool

	now       time.Time
	events    []event // sorted by time
	instances map[string]*Instance
	ready     []*Instance // sorted by name
	pods      map[string]*Pod
	pending   []*Pod // pending pods, in the order of their creation
	nameCount int    // counter that makes generated names unique

	bill    []Step // price over time
	moved   int    // number of evicted pods
	changes int    // number of changes; see Changes
}

// Watcher receives changes.
type Watcher interface {
	InstanceChanged(m *Instance) // the instance was added, or has changed
	InstanceGone(m *Instance)    // the instance was removed
	PodChanged(p *Pod)           // the pod was added, or was bound
	PodGone(p *Pod)              // the pod was deleted
	AfterEvent()                 // all changes by an event of the simulation have been passed on
}

// Phase is a stage of a node's life.
type Phase int

// The phases.
const (
	Requested Phase = iota // the instance does not exist yet
	Launched               // the instance exists, and the node is not ready
	Ready                  // the node is ready for pods
	Removing               // the node is being removed, and is still paid for
)

// Instance is a node with its NodeClaim, from the creation of the claim to the end of the instance.
type Instance struct {
	Name          string           // name of the NodeClaim and of the node
	Pool          string           // name of its NodePool
	Class         string           // name of its EC2NodeClass
	Type          catalog.Type     // instance type
	Offering      catalog.Offering // zone, capacity type and price
	Phase         Phase            // from Requested to Removing
	Cordoned      bool             // no further pod is bound to the node
	Created       time.Time        // simulated time at which the claim was created
	NominatedPods []string         // the pods that the node was launched for, as "namespace/name"

	pods map[string]*Pod
	free resources.Amounts

	// The objects in the current state; nil until Node or Claim is called after a change.
	node      *corev1.Node
	nodeClaim *karpv1.NodeClaim
}

// PodCount returns the number of pods on the node.
func (m *Instance) PodCount() int { return len(m.pods) }

// ProviderID returns the instance's provider ID.
func (m *Instance) ProviderID() string { return "aws:///" + m.Offering.Zone + "/i-" + m.Name }

// Pod is a pod of the cluster.
type Pod struct {
	Object       *corev1.Pod // immutable; replaced when the pod is bound
	originalName string      // name before all evictions, each of which changes the name
	requests     resources.Amounts
	node         *Instance // nil while the pod is pending
}

// Step is the price of all nodes from a point in time on.
type Step struct {
	From  time.Duration // time since Start at which the price begins to apply
	Price catalog.Price // per hour

	// Joining is the part of the price for nodes that are not ready yet; Leaving is the part for nodes that are being
	// removed.
	Joining, Leaving catalog.Price

	// Settled and Moved describe the state once all launched nodes are ready and all cordoned nodes are removed.
	Settled catalog.Price // price per hour
	Moved   int           // total number of evicted pods

	kept bool // AddStep added this step, so a later step of the same time does not replace it
}

// Start is the start time of every fleet.
var Start = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// New returns a cluster without nodes.
func New(pools []*karpv1.NodePool, market catalog.Market) *Fleet {
	return &Fleet{Pools: pools, Market: market, now: Start, instances: map[string]*Instance{}, pods: map[string]*Pod{}}
}

// Now returns the simulated time.
func (f *Fleet) Now() time.Time { return f.now }

// Since returns the simulated time since Start.
func (f *Fleet) Since() time.Duration { return f.now.Sub(Start) }

// Moved returns the number of evicted pods.
func (f *Fleet) Moved() int { return f.moved }

// Changes returns the number of changes of instances and pods so far. While this number is the same, the cluster is
// unchanged.
func (f *Fleet) Changes() int { return f.changes }

// Bill returns the price over time.
func (f *Fleet) Bill() []Step { return f.bill }

// Instances returns all instances, sorted by name.
func (f *Fleet) Instances() []*Instance {
	return slices.SortedFunc(maps.Values(f.instances), func(a, b *Instance) int { return cmp.Compare(a.Name, b.Name) })
}

// Instance returns the instance with the name; nil if it does not exist.
func (f *Fleet) Instance(name string) *Instance { return f.instances[name] }

// PendingPods returns the number of pending pods.
func (f *Fleet) PendingPods() int { return len(f.pending) }

// Order describes a launch.
type Order struct {
	Name          string           // name of the node; generated if empty
	Pool, Class   string           // names of the NodePool and the EC2NodeClass
	Type          catalog.Type     // instance type
	Offering      catalog.Offering // zone, capacity type and price
	NominatedPods []string         // the pods that the node is for, as "namespace/name"
}

// Launch launches an instance, and returns it.
func (f *Fleet) Launch(o Order) *Instance {
	m := f.addInstance(o)
	f.notify(m)
	f.after(LaunchTime, func() {
		m.Phase = Launched
		f.notify(m)
		f.recordPrice()
	})
	f.after(JoinTime, func() { f.join(m) })
	return m
}

// Place adds a ready instance that was created one day ago, with the pods bound to it.
func (f *Fleet) Place(o Order, pods []*corev1.Pod) *Instance {
	m := f.addInstance(o)
	m.Created = f.now.AddDate(0, 0, -1)
	f.join(m)
	for _, object := range pods {
		p := &Pod{Object: object, originalName: object.Name, requests: conversion.Requests(object)}
		f.pods[object.Name] = p
		f.bindTo(p, m)
	}
	return m
}

// addInstance adds the instance of an order, in the phase Requested. It generates a name if the order has none.
func (f *Fleet) addInstance(o Order) *Instance {
	f.nameCount++
	if o.Name == "" {
		o.Name = fmt.Sprintf("%s-%05d", o.Pool, f.nameCount)
	}
	m := &Instance{
		Name: o.Name, Pool: o.Pool, Class: o.Class, Type: o.Type, Offering: o.Offering,
		Created: f.now, NominatedPods: o.NominatedPods, pods: map[string]*Pod{}, free: o.Type.Allocatable,
	}
	f.instances[m.Name] = m
	return m
}

// join makes the node ready, and binds pending pods to it.
func (f *Fleet) join(m *Instance) {
	m.Phase = Ready
	i, _ := slices.BinarySearchFunc(f.ready, m.Name, func(r *Instance, name string) int { return cmp.Compare(r.Name, name) })
	f.ready = slices.Insert(f.ready, i, m)
	f.notify(m)
	f.recordPrice()
	f.schedule()
}

// Cordon cordons or uncordons the node.
func (f *Fleet) Cordon(name string, cordoned bool) {
	if m := f.instances[name]; m != nil && m.Cordoned != cordoned {
		m.Cordoned = cordoned
		f.notify(m)
		f.schedule()
	}
}

// Remove removes nodes. It evicts their pods at once, and binds the replacement pods if there is room.
func (f *Fleet) Remove(names ...string) {
	var order []rankedPod
	for _, m := range f.startRemoval(names, 0) {
		order = append(order, f.evictionOrder(m)...)
	}
	slices.SortStableFunc(order, func(a, b rankedPod) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range order {
		f.evict(r.pod)
	}
	f.schedule()
	f.recordPrice()
}

// RemoveGradually removes nodes. It evicts the given pods ("namespace/name") one after the other: the first now, and
// one more after each EvictionInterval.
func (f *Fleet) RemoveGradually(pods []string, names ...string) {
	for i, id := range pods {
		_, name, _ := strings.Cut(id, "/")
		f.after(time.Duration(i)*EvictionInterval, func() {
			if p := f.pods[name]; p != nil && p.node != nil && p.node.Phase == Removing {
				f.evict(p)
				f.schedule()
			}
		})
	}
	f.startRemoval(names, time.Duration(len(pods))*EvictionInterval)
	f.recordPrice()
}

// startRemoval cordons the instances now, and removes them after delay plus DrainTime. During the delay, the caller
// evicts their pods. startRemoval skips instances that are already being removed, and returns the other instances,
// sorted by name.
func (f *Fleet) startRemoval(names []string, delay time.Duration) []*Instance {
	var out []*Instance
	for _, name := range slices.Sorted(slices.Values(names)) {
		m := f.instances[name]
		if m == nil || m.Phase == Removing {
			continue
		}
		m.Phase, m.Cordoned = Removing, true
		f.ready = slices.DeleteFunc(f.ready, func(r *Instance) bool { return r == m })
		f.notify(m)
		out = append(out, m)
		f.after(delay+DrainTime, func() {
			delete(f.instances, name)
			f.changes++
			if f.Watch != nil {
				f.Watch.InstanceGone(m)
			}
			f.recordPrice()
		})
	}
	return out
}

// rankedPod is a pod with its rank in the order of evictions from several nodes. The lowest rank is evicted first.
type rankedPod struct {
	rank int // position among the pods of its node, from 0; always 0 without LargeFirst
	pod  *Pod
}

func (f *Fleet) evictionOrder(m *Instance) []rankedPod {
	out := make([]rankedPod, 0, len(m.pods))
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		out = append(out, rankedPod{pod: m.pods[name]})
	}
	if f.LargeFirst {
		slices.SortStableFunc(out, func(a, b rankedPod) int { return cmp.Compare(b.pod.requests.Bulk(), a.pod.requests.Bulk()) })
		for i := range out {
			out[i].rank = i
		}
	}
	return out
}

// evict replaces the pod by a pending pod.
func (f *Fleet) evict(p *Pod) {
	f.moved++
	f.drop(p)
	object := p.Object.DeepCopy()
	f.nameCount++
	object.Name = fmt.Sprintf("%s.%d", p.originalName, f.nameCount)
	object.UID = p.Object.UID + "." // each eviction changes the UID
	f.add(object, p.originalName)
}

// Add adds a pod. It is bound at once if there is room.
func (f *Fleet) Add(object *corev1.Pod) {
	f.add(object.DeepCopy(), object.Name)
	f.schedule()
}

func (f *Fleet) add(object *corev1.Pod, originalName string) {
	object.Spec.NodeName = ""
	object.CreationTimestamp.Time = f.now
	object.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	p := &Pod{Object: object, originalName: originalName, requests: conversion.Requests(object)}
	f.pods[object.Name] = p
	f.pending = append(f.pending, p)
	f.changes++
	if f.Watch != nil {
		f.Watch.PodChanged(p)
	}
}

// Delete deletes the pod with the given original name, even if evictions have renamed it.
func (f *Fleet) Delete(originalName string) {
	for _, p := range f.pods {
		if p.originalName == originalName {
			f.drop(p)
			f.pending = slices.DeleteFunc(f.pending, func(other *Pod) bool { return other == p })
			f.schedule()
			return
		}
	}
}

// drop removes the pod from its node and from f.pods, but not from f.pending.
func (f *Fleet) drop(p *Pod) {
	delete(f.pods, p.Object.Name)
	f.changes++
	if p.node != nil {
		delete(p.node.pods, p.Object.Name)
		p.node.free = p.node.free.Add(p.requests)
	}
	if f.Watch != nil {
		f.Watch.PodGone(p)
	}
	p.node = nil
}

// notify drops the cached objects of an instance that has changed, and passes the instance to the watcher.
func (f *Fleet) notify(m *Instance) {
	m.node, m.nodeClaim = nil, nil
	f.changes++
	if f.Watch != nil {
		f.Watch.InstanceChanged(m)
	}
}

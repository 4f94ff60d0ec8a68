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

// How long things take.
const (
	Launching = 2 * time.Second  // from a launch until EC2 has an instance
	Joining   = 45 * time.Second // from a launch until its node is ready
	Draining  = 30 * time.Second // from a node's removal until it is not paid for any more
	Turning   = time.Second      // from a pod's eviction until its replacement is bound, if the next eviction waits for that
)

// Fleet is a simulated cluster. It is not safe for concurrent use.
type Fleet struct {
	Pools  []*karpv1.NodePool // the NodePools
	Market catalog.Market     // offerings and prices
	Watch  Watcher            // may be nil

	// LargeFirst evicts the pods of all nodes that are removed together at once, largest first. Otherwise pods are evicted in the order of
	// their names, node after node.
	LargeFirst bool

	now       time.Time
	events    []event // the next one first
	instances map[string]*Instance
	ready     []*Instance // sorted by name
	pods      map[string]*Pod
	pending   []*Pod // in the order in which they came
	names     int

	bill    []Step
	moved   int
	changes int
}

// Watcher receives changes.
type Watcher interface {
	Instance(m *Instance) // it is there, or has come further
	Gone(m *Instance)
	Pod(p *Pod) // it is there, or was bound
	PodGone(p *Pod)
	Settled() // after all changes of one point in time
}

// Phase is the phase of a node.
type Phase int

// The phases.
const (
	Wanted Phase = iota // no instance was launched yet
	Bought              // there is an instance
	Ready               // it is fit for pods
	Going               // it was given up, and is still paid for
)

// Instance is a node, from its claim to its end.
type Instance struct {
	Name     string           // of the claim and of the node
	Pool     string           // name of its NodePool
	Class    string           // name of its EC2NodeClass
	Type     catalog.Type     // instance type
	Offering catalog.Offering // zone, capacity type and price
	Phase    Phase            // its place in the node's life
	Closed   bool             // cordoned
	Created  time.Time        // simulated time
	For      []string         // the pods that it was launched for, as "namespace/name"

	pods map[string]*Pod
	free resources.Amounts
	node *corev1.Node      // cached
	own  *karpv1.NodeClaim // cached
}

// Pods is how many pods it has.
func (m *Instance) Pods() int { return len(m.pods) }

// Provider is its name in EC2.
func (m *Instance) Provider() string { return "aws:///" + m.Offering.Zone + "/i-" + m.Name }

// Pod is a pod with its parsed requests.
type Pod struct {
	Object *corev1.Pod // immutable; replaced when the pod is bound
	base   string      // its name without the number of moves
	ask    resources.Amounts
	on     *Instance // nil while it waits
}

// Step is the price of all nodes from a point in time on.
type Step struct {
	From  time.Duration // since the start
	Price catalog.Price // per hour

	// Parts of the price, for nodes that run no pods: those that are not ready yet, and those that are being removed.
	Joining, Leaving catalog.Price

	// The state after all removals and launches in progress:
	Settled catalog.Price // the price then
	Moved   int           // number of pods evicted until then

	kept bool // see Note
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

// Changes returns the number of changes so far. While it is the same, the cluster is unchanged.
func (f *Fleet) Changes() int { return f.changes }

// Bill returns the price over time.
func (f *Fleet) Bill() []Step { return f.bill }

// Instances returns all instances, sorted by name.
func (f *Fleet) Instances() []*Instance {
	return slices.SortedFunc(maps.Values(f.instances), func(a, b *Instance) int { return cmp.Compare(a.Name, b.Name) })
}

// Instance returns the instance of the name, nil if there is none.
func (f *Fleet) Instance(name string) *Instance { return f.instances[name] }

// Waiting returns the number of pending pods.
func (f *Fleet) Waiting() int { return len(f.pending) }

// Order describes a launch.
type Order struct {
	Name        string           // of the node; empty: generated
	Pool, Class string           // names of the NodePool and the EC2NodeClass
	Type        catalog.Type     // instance type
	Offering    catalog.Offering // zone, capacity type and price
	For         []string         // the pods that it is for
}

// Launch launches an instance, and returns it.
func (f *Fleet) Launch(o Order) *Instance {
	m := f.make(o)
	f.notify(m)
	f.after(Launching, func() {
		m.Phase = Bought
		f.notify(m)
		f.charge()
	})
	f.after(Joining, func() { f.join(m) })
	return m
}

// Place adds an instance that has been ready for long, with its pods on it.
func (f *Fleet) Place(o Order, pods []*corev1.Pod) *Instance {
	m := f.make(o)
	m.Created = f.now.AddDate(0, 0, -1)
	f.join(m)
	for _, object := range pods {
		p := &Pod{Object: object, base: object.Name, ask: conversion.Requests(object)}
		f.pods[object.Name] = p
		f.bindTo(p, m)
	}
	return m
}

func (f *Fleet) make(o Order) *Instance {
	f.names++
	if o.Name == "" {
		o.Name = fmt.Sprintf("%s-%05d", o.Pool, f.names)
	}
	m := &Instance{
		Name: o.Name, Pool: o.Pool, Class: o.Class, Type: o.Type, Offering: o.Offering,
		Created: f.now, For: o.For, pods: map[string]*Pod{}, free: o.Type.Allocatable,
	}
	f.instances[m.Name] = m
	return m
}

func (f *Fleet) join(m *Instance) {
	m.Phase = Ready
	at, _ := slices.BinarySearchFunc(f.ready, m.Name, func(m *Instance, name string) int { return cmp.Compare(m.Name, name) })
	f.ready = slices.Insert(f.ready, at, m)
	f.notify(m)
	f.charge()
	f.schedule()
}

// Close cordons or uncordons the node.
func (f *Fleet) Close(name string, closed bool) {
	if m := f.instances[name]; m != nil && m.Closed != closed {
		m.Closed = closed
		f.notify(m)
		f.schedule()
	}
}

// Remove removes nodes. Their pods are evicted, and their replacements are bound where there is room.
func (f *Fleet) Remove(names ...string) {
	var leaving []turn
	for _, m := range f.leave(names, 0) {
		leaving = append(leaving, f.turns(m)...)
	}
	slices.SortStableFunc(leaving, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	for _, t := range leaving {
		f.evict(t.pod)
	}
	f.schedule()
	f.charge()
}

// RemoveInTurn removes nodes and evicts their pods, given as "namespace/name", one after the other.
func (f *Fleet) RemoveInTurn(pods []string, names ...string) {
	for i, id := range pods {
		_, name, _ := strings.Cut(id, "/")
		f.after(time.Duration(i)*Turning, func() {
			if p := f.pods[name]; p != nil && p.on != nil && p.on.Phase == Going {
				f.evict(p)
				f.schedule()
			}
		})
	}
	f.leave(names, time.Duration(len(pods))*Turning)
	f.charge()
}

// leave cordons the instances, terminates them after the duration, and returns those that had not been leaving yet, sorted by name.
func (f *Fleet) leave(names []string, in time.Duration) []*Instance {
	var out []*Instance
	for _, name := range slices.Sorted(slices.Values(names)) {
		m := f.instances[name]
		if m == nil || m.Phase == Going {
			continue
		}
		m.Phase, m.Closed = Going, true
		f.ready = slices.DeleteFunc(f.ready, func(r *Instance) bool { return r == m })
		f.notify(m)
		out = append(out, m)
		f.after(in+Draining, func() {
			delete(f.instances, name)
			f.changes++
			if f.Watch != nil {
				f.Watch.Gone(m)
			}
			f.charge()
		})
	}
	return out
}

// turn is the time at which a pod is evicted.
type turn struct {
	at  int
	pod *Pod
}

// turns returns the pods of the instance, in the order in which they are evicted.
func (f *Fleet) turns(m *Instance) []turn {
	out := make([]turn, 0, len(m.pods))
	for _, id := range slices.Sorted(maps.Keys(m.pods)) {
		out = append(out, turn{pod: m.pods[id]})
	}
	if f.LargeFirst {
		slices.SortStableFunc(out, func(a, b turn) int { return cmp.Compare(b.pod.ask.Bulk(), a.pod.ask.Bulk()) })
		for i := range out {
			out[i].at = i
		}
	}
	return out
}

// evict replaces the pod by a pending one.
func (f *Fleet) evict(p *Pod) {
	f.moved++
	f.drop(p)
	object := p.Object.DeepCopy()
	f.names++
	object.Name = fmt.Sprintf("%s.%d", p.base, f.names)
	object.UID = "uid-" + p.Object.UID[4:] + "."
	f.add(object, p.base)
}

// Add adds a pod. It is bound at once if there is room.
func (f *Fleet) Add(object *corev1.Pod) {
	f.add(object.DeepCopy(), object.Name)
	f.schedule()
}

func (f *Fleet) add(object *corev1.Pod, base string) {
	object.Spec.NodeName = ""
	object.CreationTimestamp.Time = f.now
	object.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}
	p := &Pod{Object: object, base: base, ask: conversion.Requests(object)}
	f.pods[object.Name] = p
	f.pending = append(f.pending, p)
	f.changes++
	if f.Watch != nil {
		f.Watch.Pod(p)
	}
}

// Delete deletes the pod with the given original name, wherever it has been moved to.
func (f *Fleet) Delete(base string) {
	for _, p := range f.pods {
		if p.base == base {
			f.drop(p)
			f.pending = slices.DeleteFunc(f.pending, func(w *Pod) bool { return w == p })
			f.schedule()
			return
		}
	}
}

func (f *Fleet) drop(p *Pod) {
	delete(f.pods, p.Object.Name)
	f.changes++
	if p.on != nil {
		delete(p.on.pods, p.Object.Name)
		p.on.free = p.on.free.Add(p.ask)
	}
	if f.Watch != nil {
		f.Watch.PodGone(p)
	}
	p.on = nil
}

func (f *Fleet) notify(m *Instance) {
	m.node, m.own = nil, nil
	f.changes++
	if f.Watch != nil {
		f.Watch.Instance(m)
	}
}

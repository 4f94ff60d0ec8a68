package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab"
)

// tracker watches NodeClaims and pods, and prints each step in the life of a NodeClaim.
type tracker struct {
	lab    *lab.Lab
	screen *screen

	mu       sync.Mutex
	claims   map[string]*claimLife // by name
	pods     map[types.UID]*podLife
	launches map[string]int // instance type → number of launched instances
}

type claimLife struct {
	created                         time.Time
	launched, joined, ready, isGone bool
	price                           catalog.Price
	description                     string   // "t3.small  us-east-1a"
	node                            string   // name of its Node; empty before it joins
	planned                         []string // the pods that it was created for, as "namespace/name"
}

// podLife has the time when the watch first returned a pod, and the time when the pod was first running.
type podLife struct {
	seen, ran time.Time
	gone      bool
	id, node  string // "namespace/name", and the node that it is bound to
}

// follow starts to watch all NodeClaims, and the pods in the demo's namespace.
func follow(ctx context.Context, l *lab.Lab, s *screen) (*tracker, error) {
	scheme, err := lab.Scheme()
	if err != nil {
		return nil, err
	}
	watch, err := cache.New(l.Config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Namespaces: map[string]cache.Config{namespace: {}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	t := &tracker{lab: l, screen: s, claims: map[string]*claimLife{}, pods: map[types.UID]*podLife{}, launches: map[string]int{}}
	for _, kind := range []struct {
		object client.Object
		notify func(object any, gone bool)
	}{
		{&karpenterv1.NodeClaim{}, t.onClaim},
		{&corev1.Pod{}, t.onPod},
	} {
		informer, err := watch.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { kind.notify(object, false) },
			UpdateFunc: func(_, object any) { kind.notify(object, false) },
			DeleteFunc: func(object any) { kind.notify(object, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
	}
	go func() { _ = watch.Start(ctx) }()
	if !watch.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return t, nil
}

// onClaim prints the changes of a NodeClaim.
func (t *tracker) onClaim(object any, gone bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	c, ok := object.(*karpenterv1.NodeClaim)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	life := t.claims[c.Name]
	if life == nil {
		life = &claimLife{created: time.Now(), planned: conversion.PodsOf(c)}
		t.claims[c.Name] = life
		t.screen.event(cyan, "wanted", fmt.Sprintf("%-18s %s", c.Name, allowedTypes(c)))
	}
	life.node = c.Status.NodeName
	after := fmt.Sprintf("after %.1f s", time.Since(life.created).Seconds())
	if !life.launched && c.Status.ProviderID != "" {
		life.launched = true
		t.onLaunch(c, life)
	}
	if !life.joined && isConditionTrue(c, karpenterv1.ConditionRegistered) {
		life.joined = true
		t.screen.event(yellow, "joined", fmt.Sprintf("%-18s %-42s %s", c.Name, c.Status.NodeName, after))
	}
	if !life.ready && isConditionTrue(c, karpenterv1.ConditionInitialized) {
		life.ready = true
		t.screen.event(green, "ready", fmt.Sprintf("%-18s %-42s %s", c.Name, life.description, after))
	}
	if gone && !life.isGone {
		life.isGone = true
		t.screen.event(dim, "gone", fmt.Sprintf("%-18s %-42s", c.Name, life.description))
	}
}

// onLaunch records and prints the instance of a NodeClaim. The caller holds mu.
func (t *tracker) onLaunch(c *karpenterv1.NodeClaim, life *claimLife) {
	i, ok := t.instance(c.Status.ProviderID)
	if !ok {
		return
	}
	life.price = t.lab.Price(i)
	life.description = fmt.Sprintf("%-13s %s", i.Type, i.Zone)
	t.launches[i.Type]++
	capacityType := "on demand"
	if i.Spot {
		capacityType = "spot"
	}
	t.screen.event(yellow, "launched", fmt.Sprintf("%-18s %-42s $%s/h %s", c.Name, life.description, life.price, capacityType))
}

func (t *tracker) instance(providerID string) (world.Instance, bool) {
	for _, i := range t.lab.Instances() {
		if "aws:///"+i.Zone+"/"+i.ID == providerID {
			return i, true
		}
	}
	return world.Instance{}, false
}

func allowedTypes(c *karpenterv1.NodeClaim) string {
	pool := "pool " + c.Labels[karpenterv1.LabelNodePool]
	for _, r := range c.Spec.Requirements {
		if r.Key == corev1.LabelInstanceTypeStable && len(r.Values) > 0 {
			more := ""
			if n := len(r.Values) - 1; n > 0 {
				more = fmt.Sprintf(" or %d more types", n)
			}
			return pool + ": " + r.Values[0] + more
		}
	}
	return pool
}

func isConditionTrue(c *karpenterv1.NodeClaim, condition string) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(got metav1.Condition) bool {
		return got.Type == condition && got.Status == metav1.ConditionTrue
	})
}

func (t *tracker) onPod(object any, gone bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	p, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	life := t.pods[p.UID]
	if life == nil {
		life = &podLife{seen: time.Now(), id: p.Namespace + "/" + p.Name}
		t.pods[p.UID] = life
	}
	life.node = p.Spec.NodeName
	if p.Status.Phase == corev1.PodRunning && life.ran.IsZero() {
		life.ran = time.Now()
	}
	life.gone = life.gone || gone
}

// totals is the current status: counts of pods and nodes, the hourly price of the nodes, and how long pods were
// pending.
type totals struct {
	pods, running  int // number of existing pods, and number of existing pods that run
	nodes, joining int // NodeClaims with a ready node, and NodeClaims whose node is not ready yet
	price          catalog.Price
	elsewhere      int    // existing pods on another node than the one that was launched for them
	launched       int    // NodeClaims that got an instance, deleted ones included
	median, worst  string // median and longest time from Pending to Running
	perType        string // number of launched instances of each type
}

func (t *tracker) totals() totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s totals
	var waits []time.Duration
	for _, p := range t.pods {
		if !p.ran.IsZero() {
			waits = append(waits, p.ran.Sub(p.seen))
		}
		if p.gone {
			continue
		}
		s.pods++
		if !p.ran.IsZero() {
			s.running++
		}
	}
	for _, c := range t.claims {
		if c.launched {
			s.launched++
		}
		switch {
		case c.isGone:
		case c.ready:
			s.nodes++
		default:
			s.joining++
		}
		if !c.isGone {
			s.price += c.price
		}
	}
	s.elsewhere = t.elsewhere()
	slices.Sort(waits)
	if n := len(waits); n > 0 {
		s.median = fmt.Sprintf("%.1f s", waits[n/2].Seconds())
		s.worst = fmt.Sprintf("%.1f s", waits[n-1].Seconds())
	}
	s.perType = t.perType()
	return s
}

// perType lists the launched instance types with their counts, the highest count first.
func (t *tracker) perType() string {
	var names []string
	for name := range t.launches {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.launches[b], t.launches[a]), cmp.Compare(a, b))
	})
	text := ""
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d × %s", t.launches[name], name)
	}
	return text
}

// elsewhere returns the number of existing pods that are bound to another node than the last one that was launched for
// them. The caller holds mu.
func (t *tracker) elsewhere() int {
	planned := map[string]*claimLife{}
	for _, c := range t.claims {
		for _, pod := range c.planned {
			if last := planned[pod]; last == nil || c.created.After(last.created) {
				planned[pod] = c
			}
		}
	}
	n := 0
	for _, p := range t.pods {
		if c := planned[p.id]; c != nil && !p.gone && p.node != "" && p.node != c.node {
			n++
		}
	}
	return n
}

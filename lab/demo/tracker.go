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
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab"
)

// tracker watches nodes and pods, and prints each step in the life of a node.
type tracker struct {
	lab    *lab.Lab
	screen *screen

	mu       sync.Mutex
	claims   map[string]*claimLife // by name
	pods     map[types.UID]*podLife
	launches map[string]int // instance type → number of launched instances
}

// claimLife is the life of one NodeClaim.
type claimLife struct {
	created                         time.Time
	launched, joined, ready, isGone bool
	price                           catalog.Price
	description                     string // "t3.small  us-east-1a"
}

// podLife has the times at which a pod was first seen, and first seen running.
type podLife struct {
	seen, ran time.Time
	gone      bool
}

// follow starts the watches.
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
		of     client.Object
		notify func(object any, gone bool)
	}{
		{&karpenterv1.NodeClaim{}, t.claim},
		{&corev1.Pod{}, t.pod},
	} {
		informer, err := watch.GetInformer(ctx, kind.of, cache.BlockUntilSynced(false))
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

// claim prints the changes of a NodeClaim.
func (t *tracker) claim(object any, gone bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	c, ok := object.(*karpenterv1.NodeClaim)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.claims[c.Name]
	if h == nil {
		h = &claimLife{created: time.Now()}
		t.claims[c.Name] = h
		t.screen.event(cyan, "wanted", fmt.Sprintf("%-18s %s", c.Name, openTypes(c)))
	}
	after := fmt.Sprintf("after %.1f s", time.Since(h.created).Seconds())
	if !h.launched && c.Status.ProviderID != "" {
		h.launched = true
		t.launched(c, h)
	}
	if !h.joined && is(c, karpenterv1.ConditionRegistered) {
		h.joined = true
		t.screen.event(yellow, "joined", fmt.Sprintf("%-18s %-42s %s", c.Name, c.Status.NodeName, after))
	}
	if !h.ready && is(c, karpenterv1.ConditionInitialized) {
		h.ready = true
		t.screen.event(green, "ready", fmt.Sprintf("%-18s %-42s %s", c.Name, h.description, after))
	}
	if gone && !h.isGone {
		h.isGone = true
		t.screen.event(dim, "gone", fmt.Sprintf("%-18s %-42s", c.Name, h.description))
	}
}

// launched prints the instance of a NodeClaim. The caller holds mu.
func (t *tracker) launched(c *karpenterv1.NodeClaim, h *claimLife) {
	i, ok := t.instance(c.Status.ProviderID)
	if !ok {
		return
	}
	h.price = t.lab.Price(i)
	h.description = fmt.Sprintf("%-13s %s", i.Type, i.Zone)
	t.launches[i.Type]++
	capacityType := "on demand"
	if i.Spot {
		capacityType = "spot"
	}
	t.screen.event(yellow, "launched", fmt.Sprintf("%-18s %-42s $%s/h %s", c.Name, h.description, h.price, capacityType))
}

// instance returns the instance with the provider ID; false if it does not exist.
func (t *tracker) instance(providerID string) (world.Instance, bool) {
	for _, i := range t.lab.Instances() {
		if "aws:///"+i.Zone+"/"+i.ID == providerID {
			return i, true
		}
	}
	return world.Instance{}, false
}

// openTypes describes which instance types a NodeClaim may use.
func openTypes(c *karpenterv1.NodeClaim) string {
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

// is reports whether a condition of the NodeClaim is True.
func is(c *karpenterv1.NodeClaim, condition string) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(got metav1.Condition) bool {
		return got.Type == condition && got.Status == metav1.ConditionTrue
	})
}

// pod records the changes of a pod.
func (t *tracker) pod(object any, gone bool) {
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
		life = &podLife{seen: time.Now()}
		t.pods[p.UID] = life
	}
	if p.Status.Phase == corev1.PodRunning && life.ran.IsZero() {
		life.ran = time.Now()
	}
	life.gone = life.gone || gone
}

// totals is the current status: counts of pods and nodes, the hourly price of the nodes, and statistics of the
// launches.
type totals struct {
	pods, running          int // existing pods, and those of them that run
	nodes, joining         int // nodes that are ready, and NodeClaims that are not yet
	price                  catalog.Price
	launched               int    // NodeClaims with an instance, those that are gone included
	median, worst, perType string // times from Pending to Running, and launched instances by type
}

// totals returns the current status.
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

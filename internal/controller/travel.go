package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube"
)

// tripStore outlives this process.
type tripStore interface {
	Read(ctx context.Context) (string, error)
	Write(ctx context.Context, text string) error
}

// Travel remembers which workloads' pods were moved off which kind of node, and says which nodes stay because of it. Its methods
// may be called at the same time; nil remembers nothing and keeps no node.
type Travel struct {
	Store tripStore
	Log   *slog.Logger

	mu      sync.Mutex
	trips   disruption.Trips
	read    bool // what a process before us knew
	news    bool // something is not written
	written time.Time
	told    string // the trouble that was told last
}

// travelEvery is how often what is remembered is written, at most. A crash forgets what was moved within that time.
const travelEvery = 10 * time.Second

// Recall reads what a process before us knew, once, and then writes what is new. As long as it cannot be read, nothing by choice may
// begin: the same pods might be moved again.
func (t *Travel) Recall(ctx context.Context, now time.Time) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.read {
		text, err := t.Store.Read(ctx)
		switch {
		case errors.Is(err, kube.ErrTripsUnreadable):
			t.Log.Warn("what is known of pods that were moved cannot be read, and is forgotten", "error", err.Error())
		case err != nil:
			return err
		}
		known, unread := disruption.DecodeTrips(text)
		if unread > 0 {
			t.Log.Warn("some of what is known of pods that were moved cannot be read", "lines", unread)
		}
		t.trips, t.read = t.trips.Add(now, known...), true
	}
	if !t.news || now.Sub(t.written) < travelEvery {
		return nil
	}
	t.written = now
	err := t.Store.Write(ctx, t.trips.Encode())
	if err == nil {
		t.news, t.told = false, ""
		return nil
	}
	if text := err.Error(); text != t.told && ctx.Err() == nil {
		t.told = text
		_, hint := sortError(err)
		t.Log.Warn("cannot write which pods were moved; a restart would forget it", "error", text, "hint", hint)
	}
	return nil
}

// Moved notes at now that the pods of the claims' Nodes leave them; pods are those of all Nodes, by its name.
func (t *Travel) Moved(now time.Time, reason disruption.Reason, claims []*karpv1.NodeClaim, pods map[string][]*corev1.Pod) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]int{}
	for _, list := range pods {
		for workload, n := range workloadsOf(list) {
			all[workload] += n
		}
	}
	var trips []disruption.Trip
	for _, c := range claims {
		counts := loadOf(c, pods)
		for _, workload := range slices.Sorted(maps.Keys(counts)) {
			trips = append(trips, disruption.Trip{
				At: now.Truncate(time.Second), Workload: workload, Pods: counts[workload], All: all[workload], Shape: shapeOf(c), Reason: reason,
			})
		}
	}
	t.news = t.news || len(trips) > 0
	t.trips = t.trips.Add(now, trips...)
}

// Stays returns which of the nodes must stay, and why. Together: all of them would go, in this order.
func (t *Travel) Stays(in disruption.Input, reason disruption.Reason, nodes []string, s travelScene, together bool) []disruption.Stay {
	if t == nil || len(nodes) == 0 {
		return nil
	}
	t.mu.Lock()
	trips := slices.Concat(t.trips, s.begun(in.Now))
	t.mu.Unlock()
	traffic := disruption.Traffic{Reason: reason, Pods: map[string]int{}, Limits: map[string]int{}, Together: together, Now: in.Now}
	for pool, p := range in.Policies {
		traffic.Limits[pool] = p.MovesPerHour
	}
	for _, list := range s.pods {
		for workload, n := range workloadsOf(list) {
			traffic.Pods[workload] += n
		}
	}
	by := nodesByName(in.Snapshot)
	for _, name := range nodes {
		n := by[name]
		if n == nil || s.claims[n.Claim] == nil {
			continue
		}
		c := s.claims[n.Claim]
		traffic.Loads = append(traffic.Loads, disruption.Load{Node: name, Pool: n.Pool, Shape: shapeOf(c), Pods: loadOf(c, s.pods)})
	}
	return trips.Stays(traffic)
}

// travelScene is what Stays looks at beside the snapshot.
type travelScene struct {
	claims map[string]*karpv1.NodeClaim // by name
	pods   map[string][]*corev1.Pod     // as podsByNode has them
}

// begun are the trips of moves that are not committed yet: they are noted when they are, but are to be counted from the start, or two
// moves that wait for their nodes would each take what is left of an hour's.
func (s travelScene) begun(now time.Time) []disruption.Trip {
	var out []disruption.Trip
	for _, name := range slices.Sorted(maps.Keys(s.claims)) {
		c := s.claims[name]
		mark, err := moveOf(c)
		if mark == nil || err != nil || mark.Committed || c.DeletionTimestamp != nil {
			continue
		}
		counts := loadOf(c, s.pods)
		for _, workload := range slices.Sorted(maps.Keys(counts)) {
			out = append(out, disruption.Trip{At: now, Workload: workload, Pods: counts[workload], Shape: shapeOf(c), Reason: mark.Reason})
		}
	}
	return out
}

// loadOf counts the pods of the claim's Node that would move, by workload.
func loadOf(c *karpv1.NodeClaim, pods map[string][]*corev1.Pod) map[string]int {
	if c.Status.NodeName == "" {
		return nil
	}
	return workloadsOf(pods[c.Status.NodeName])
}

// workloadsOf counts the pods that would move, by workload. Pods of nobody do not come again, and are left out.
func workloadsOf(pods []*corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !kube.NeedsPlace(pod) {
			continue
		}
		if workload := kube.Workload(pod); workload != "" {
			out[workload]++
		}
	}
	return out
}

// shapeOf is what the claim's machine is like.
func shapeOf(c *karpv1.NodeClaim) string {
	return disruption.Shape(c.Labels[karpv1.LabelNodePool], c.Labels[corev1.LabelInstanceTypeStable], c.Labels[corev1.LabelTopologyZone], c.Labels[karpv1.LabelCapacityType])
}

package disruptor

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
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
)

// tripStore persists trips (disruption.PodMoves) as text.
type tripStore interface {
	Read(ctx context.Context) (string, error)
	Write(ctx context.Context, text string) error
}

// MoveHistory records trips. A trip is a move of one workload's pods off one node, with the shape of that node. From
// the trips MoveHistory finds the nodes that must stay, so that the same pods are not moved too often. Its methods may
// be called concurrently. On a nil receiver they do nothing, and every node may leave.
type MoveHistory struct {
	Store tripStore    // keeps the trips across restarts
	Log   *slog.Logger // the log of this process

	mu         sync.Mutex
	Trips      disruption.PodMoves // past moves of pods
	isRead     bool                // the trips of earlier processes were read
	hasUnsaved bool                // there are trips that Store does not have
	written    time.Time           // time of the last attempt to write Store
	logged     string              // the last logged error
}

// MoveHistoryInterval is the shortest interval between two writes to Store. A crash loses the trips since the last
// write.
const MoveHistoryInterval = 10 * time.Second

// Sync reads the trips of earlier processes, once, and writes new trips to Store. While the earlier trips cannot be
// read, Sync returns an error, and the caller must not start voluntary disruption: the same pods might be moved again.
// An error of a write is only logged.
func (t *MoveHistory) Sync(ctx context.Context, now time.Time) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isRead {
		text, err := t.Store.Read(ctx)
		switch {
		case errors.Is(err, kubeclient.ErrMovesUnreadable):
			t.Log.Warn("cannot parse the stored history of moved pods; it starts empty", "error", err.Error())
		case err != nil:
			return err
		}
		stored, dropped := disruption.DecodeTrips(text)
		if dropped > 0 {
			t.Log.Warn("cannot parse parts of the stored history of moved pods; these parts are dropped", "lines", dropped)
		}
		t.Trips, t.isRead = t.Trips.Add(now, stored...), true
	}
	if !t.hasUnsaved || now.Sub(t.written) < MoveHistoryInterval {
		return nil
	}
	t.written = now
	err := t.Store.Write(ctx, t.Trips.Encode())
	if err == nil {
		t.hasUnsaved, t.logged = false, ""
		return nil
	}
	if text := err.Error(); text != t.logged && ctx.Err() == nil {
		t.logged = text
		_, hint := loop.ClassifyError(err)
		t.Log.Warn("cannot write the history of moved pods; a restart would lose it", "error", text, "hint", hint)
	}
	return nil
}

// RecordMove records the trips of a move, in which the pods of the claims' Nodes leave these Nodes at the time now.
// pods has the pods of all Nodes, by Node name.
func (t *MoveHistory) RecordMove(now time.Time, reason disruption.Reason, claims []*karpv1.NodeClaim, pods map[string][]*corev1.Pod) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	replicas := map[string]int{} // by workload
	for _, list := range pods {
		for workload, n := range WorkloadsOf(list) {
			replicas[workload] += n
		}
	}
	var trips []disruption.PodMove
	for _, c := range claims {
		counts := loadOf(c, pods)
		for _, workload := range slices.Sorted(maps.Keys(counts)) {
			trips = append(trips, disruption.PodMove{
				At: now.Truncate(time.Second), Workload: workload, Pods: counts[workload], All: replicas[workload],
				Shape: ShapeOf(c), Reason: reason,
			})
		}
	}
	t.hasUnsaved = t.hasUnsaved || len(trips) > 0
	t.Trips = t.Trips.Add(now, trips...)
}

// Stays returns which of the nodes must stay, and why. If together is true, Stays assumes that all nodes leave, in the
// given order: the pods of each node count toward the limits of the next node. Otherwise each node is judged alone.
func (t *MoveHistory) Stays(in disruption.Input, reason disruption.Reason, nodes []string, s HistoryInput,
	together bool) []disruption.Stay {
	if t == nil || len(nodes) == 0 {
		return nil
	}
	t.mu.Lock()
	trips := slices.Concat(t.Trips, s.uncommittedTrips(in.Now))
	t.mu.Unlock()
	query := disruption.StayInput{Reason: reason, Pods: map[string]int{}, Limits: map[string]int{}, Together: together, Now: in.Now}
	for pool, p := range in.Policies {
		query.Limits[pool] = p.MovesPerHour
	}
	for _, list := range s.Pods {
		for workload, n := range WorkloadsOf(list) {
			query.Pods[workload] += n
		}
	}
	nodeByName := nodestate.NodesByName(in.Snapshot)
	for _, name := range nodes {
		n := nodeByName[name]
		if n == nil || s.Claims[n.Claim] == nil {
			continue
		}
		c := s.Claims[n.Claim]
		query.Loads = append(query.Loads, disruption.NodeWorkloads{Node: name, Pool: n.Pool, Shape: ShapeOf(c), Pods: loadOf(c, s.Pods)})
	}
	return trips.Stays(query)
}

// HistoryInput is the input of Stays in addition to the snapshot.
type HistoryInput struct {
	Claims map[string]*karpv1.NodeClaim // NodeClaims by name
	Pods   map[string][]*corev1.Pod     // pods by Node name, see podsByNode
}

// uncommittedTrips returns the trips of moves that are not committed yet. Such trips are recorded on commit, but count
// from the start of the move. Otherwise two moves that wait for their replacements would each use the rest of the
// hourly limit.
func (s HistoryInput) uncommittedTrips(now time.Time) []disruption.PodMove {
	var out []disruption.PodMove
	for _, name := range slices.Sorted(maps.Keys(s.Claims)) {
		c := s.Claims[name]
		mark, err := nodestate.MoveOf(c)
		if mark == nil || err != nil || mark.Committed || c.DeletionTimestamp != nil {
			continue
		}
		counts := loadOf(c, s.Pods)
		for _, workload := range slices.Sorted(maps.Keys(counts)) {
			out = append(out, disruption.PodMove{At: now, Workload: workload, Pods: counts[workload], Shape: ShapeOf(c), Reason: mark.Reason})
		}
	}
	return out
}

func loadOf(c *karpv1.NodeClaim, pods map[string][]*corev1.Pod) map[string]int {
	if c.Status.NodeName == "" {
		return nil
	}
	return WorkloadsOf(pods[c.Status.NodeName])
}

// WorkloadsOf counts the movable pods by workload. It ignores pods without a controller, because they are not
// recreated.
func WorkloadsOf(pods []*corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !conversion.NeedsPlace(pod) {
			continue
		}
		if workload := snapshot.Workload(pod); workload != "" {
			out[workload]++
		}
	}
	return out
}

// ShapeOf returns the shape of the claim's node: pool, instance type, zone and capacity type.
func ShapeOf(c *karpv1.NodeClaim) string {
	return disruption.Shape(c.Labels[karpv1.LabelNodePool], c.Labels[corev1.LabelInstanceTypeStable],
		c.Labels[corev1.LabelTopologyZone], c.Labels[karpv1.LabelCapacityType])
}

package disruptor

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// DisruptableConditionWriter records why nodes are not disrupted; each such node with its cause is a disruption.Stay.
// A cause that lasts is written to the Disruptable condition of the node's NodeClaim, which joiner explain node reads.
// The methods are safe for concurrent use, and accept a nil receiver, which records nothing.
type DisruptableConditionWriter struct {
	Objects loop.ObjectWriter  // writes objects to the API server
	Events  loop.EventRecorder // emits events
	Metrics *metrics.Metrics   // the metrics of this process

	mu     sync.Mutex
	stays  map[staySource][]disruption.Stay // the latest reasons of each source
	nodes  map[string]staying               // by node name
	newest loop.NewestVersions              // the last version of each claim that this writer wrote
}

// staySource is a source of reasons. If several sources name a node, the reason of the source with the lowest number is
// used.
type staySource int

const (
	stayDrifted      staySource = iota // drifted nodes that are not candidates for replacement
	stayDriftBudget                    // drifted candidates that cannot be replaced in this pass, mostly because of a budget
	stayEmpty                          // empty nodes
	staySaving                         // nodes that are not candidates for moves that save money
	staySavingBudget                   // nodes of moves that would save money but cannot start in this pass, mostly because of a budget
	stayWorth                          // candidates whose disruption would not save enough
	numStaySources                     // number of sources
)

type staying struct {
	disruption.Stay
	since time.Time // since when the node stays because of Cause

	writtenCause disruption.Cause // cause of the condition as written by this process; empty if not written yet
	writtenAt    time.Time        // when the condition was last written
}

// Limits of writes, so that not every pod that comes or goes causes a write.
const (
	MinCauseAge        = 30 * time.Second // how long a cause must last before it is written
	messageInterval    = 15 * time.Minute // how often the message is updated while the cause is the same
	maxConditionWrites = 50               // maximum number of conditions per call of Write
)

// SetReasons replaces the reasons of the source by stays.
func (s *DisruptableConditionWriter) SetReasons(source staySource, stays ...disruption.Stay) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stays == nil {
		s.stays = map[staySource][]disruption.Stay{}
	}
	s.stays[source] = stays
}

// Write merges the present reasons of all sources, and updates the metrics and the conditions.
func (s *DisruptableConditionWriter) Write(ctx context.Context, snapshot cluster.Snapshot,
	claims map[string]*karpv1.NodeClaim, now time.Time) error {
	if s == nil {
		return nil
	}
	due := s.update(snapshot, claims, now)
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, d := range due {
		group.Go(func() error {
			written, err := s.Objects.PatchClaim(ctx, d.claim, func(c *karpv1.NodeClaim) { writeStay(c, d.stay, now) })
			if kubeclient.Classify(err) == kubeclient.Gone {
				return nil
			}
			if err != nil {
				return err
			}
			s.newest.Note(written)
			s.publish(d, now)
			return nil
		})
	}
	return group.Wait()
}

// dueStay is a condition to write, or to remove if it has no cause.
type dueStay struct {
	claim *karpv1.NodeClaim
	node  string
	stay  disruption.Stay
	since time.Time
}

// update merges the reasons of all sources, and sets the metrics. It returns the conditions to write, at most
// maxConditionWrites: those whose cause has lasted longest come first.
func (s *DisruptableConditionWriter) update(snapshot cluster.Snapshot, claims map[string]*karpv1.NodeClaim, now time.Time) []dueStay {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := map[string]disruption.Stay{}
	for source := range numStaySources {
		for _, stay := range s.stays[source] {
			if _, ok := current[stay.Node]; !ok {
				current[stay.Node] = stay
			}
		}
	}
	nodes := map[string]staying{}
	counts := map[disruption.Cause]int{}
	var due []dueStay
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		claim := claims[n.Claim]
		if claim == nil {
			continue
		}
		if claim.DeletionTimestamp != nil {
			counts[disruption.Leaving]++
			continue
		}
		claim = s.newest.Of(claim)
		stay := current[n.Name]
		if n.Leaving || !n.Initialized {
			stay = disruption.Stay{} // such a node is not a candidate, whatever the sources report
		}
		entry := s.nodes[n.Name]
		if entry.Cause != stay.Cause || entry.since.IsZero() { // since is zero for a new node
			entry.since = now
		}
		entry.Stay = stay
		nodes[n.Name] = entry
		counts[countedCause(n, stay)]++
		if entry.isDue(claim, now) {
			due = append(due, dueStay{claim, n.Name, stay, entry.since})
		}
	}
	s.nodes = nodes
	for _, cause := range append(disruption.Causes(), disruption.Undecided, disruption.Leaving, disruption.NotInitialized) {
		s.Metrics.Staying.WithLabelValues(string(cause)).Set(float64(counts[cause]))
	}
	slices.SortFunc(due, func(a, b dueStay) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.node, b.node)) })
	return due[:min(len(due), maxConditionWrites)]
}

// countedCause returns the cause under which a node is counted, and which joiner explain node shows.
func countedCause(n *cluster.Node, stay disruption.Stay) disruption.Cause {
	switch {
	case stay.Cause != "":
		return stay.Cause
	case n.Leaving:
		return disruption.Leaving
	case !n.Initialized:
		return disruption.NotInitialized
	}
	return disruption.Undecided
}

// isDue reports whether the claim's condition must be written or removed. The cause, or its absence, must have
// lasted for MinCauseAge. If only the message differs, the last write must be at least messageInterval ago.
func (e staying) isDue(claim *karpv1.NodeClaim, now time.Time) bool {
	c, ok := claim.StatusConditions().Find(karpv1.ConditionDisruptable)
	switch {
	case e.Cause == "":
		return ok && now.Sub(e.since) >= MinCauseAge
	case now.Sub(e.since) < MinCauseAge:
		return false
	case !ok || c.Reason != string(e.Cause):
		return true
	}
	return c.Message != e.Sentence() && now.Sub(e.writtenAt) >= messageInterval
}

func writeStay(claim *karpv1.NodeClaim, stay disruption.Stay, now time.Time) {
	if stay.Cause == "" {
		claim.StatusConditions().Remove(karpv1.ConditionDisruptable)
		return
	}
	claim.StatusConditions().Set(now, metav1.Condition{
		Type: karpv1.ConditionDisruptable, Status: metav1.ConditionFalse, Reason: string(stay.Cause), Message: stay.Sentence(),
	})
}

// publish records the written condition and emits an event if the cause is new. The cause TooSoon, which follows each
// change of the node's pods, gets no event.
func (s *DisruptableConditionWriter) publish(d dueStay, now time.Time) {
	s.mu.Lock()
	entry := s.nodes[d.node]
	isNew := entry.writtenCause != d.stay.Cause
	entry.writtenCause, entry.writtenAt = d.stay.Cause, now
	s.nodes[d.node] = entry
	s.mu.Unlock()
	if !isNew || d.stay.Cause == "" || d.stay.Cause == disruption.TooSoon {
		return
	}
	reason := kubeclient.ReasonDisruptionBlocked
	if d.stay.Cause.IsOnlyForSaving() {
		reason = kubeclient.ReasonUnconsolidatable
	}
	s.Events.Emit(d.claim, reason, d.stay.Sentence())
}

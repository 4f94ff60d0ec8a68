package disruptor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

type objectReader interface {
	Objects(ctx context.Context) (snapshot.Objects, error)
}

// Emptiness deletes empty nodes: nodes without pods other than DaemonSet pods and static pods.
type Emptiness struct {
	Cluster nodestate.Snapshots         // reads cluster state from the informers
	Reader  objectReader                // reads the objects behind the snapshot
	Live    loop.LiveReader             // reads objects from the API server, not from the informers
	Market  nodestate.Markets           // offerings of EC2
	Solve   nodestate.Solver            // computes plans
	Objects loop.ObjectWriter           // writes objects to the API server
	Pods    *nodestate.PodWatch         // when pods last came to nodes and left them
	Lock    *nodestate.DisruptionLock   // shared with Disruptor
	Ledger  *snapshot.Ledger            // claims created by this process that the cache may not show yet
	Pauses  *loop.Pauses                // pauses of voluntary disruption
	Stays   *DisruptableConditionWriter // shared with Disruptor
	Events  loop.EventRecorder          // emits events
	Metrics *metrics.Metrics            // the metrics of this process
	Log     *slog.Logger                // the log of this process

	// proposed are the nodes that the last pass proposed. A node is deleted only if two passes in a row propose it:
	// during the first, kube-scheduler may be binding a pod to the node.
	proposed       map[string]bool
	HasUnconfirmed bool                        // the last pass proposed nodes that the pass before it did not propose
	logged         map[string]disruption.Cause // by node: why it stayed in the last pass
}

// Intervals of the loop. After a pass that proposes a node for the first time, the next pass starts sooner, to confirm
// the proposal. So if consolidateAfter is 0, a node is deleted at most 3 s plus the duration of two passes after its
// last pod is gone.
const (
	EmptinessInterval        = 2 * time.Second  // between two passes
	EmptinessConfirmInterval = time.Second      // after a pass that proposed a node for the first time
	podEventInterval         = 10 * time.Second // between two writes of a claim's lastPodEventTime
)

// Start runs the loop until ctx ends.
func (e *Emptiness) Start(ctx context.Context) error {
	timer := time.NewTimer(EmptinessInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		started := time.Now()
		err := e.Pass(ctx, started)
		timer.Reset(e.NextDelay(time.Since(started)))
		if err != nil && !errors.Is(err, context.Canceled) {
			next, hint := loop.ClassifyError(err)
			if next != kubeclient.Reread && next != kubeclient.Gone {
				e.Metrics.Failures.WithLabelValues("disruption", string(next)).Inc()
				e.Log.Error("cannot check for empty nodes", "error", err.Error(), "hint", hint)
			}
		}
	}
}

// NextDelay returns the time between the end of a pass and the start of the next pass. took is the duration of the
// pass. The delay is at least a quarter of the interval, to leave time for other loops.
func (e *Emptiness) NextDelay(took time.Duration) time.Duration {
	every := EmptinessInterval
	if e.HasUnconfirmed {
		every = EmptinessConfirmInterval
	}
	return max(every-took, every/4)
}

// Pass deletes the nodes that have been empty for their NodePool's consolidateAfter, as far as budgets allow.
func (e *Emptiness) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopEmptiness, "").End()
	started := time.Now()
	// 1. read
	objects, err := e.Reader.Objects(ctx)
	if err != nil || len(objects.Claims) == 0 {
		return err
	}
	market := e.Market.Market(now)
	snapshot, err := e.Cluster.Snapshot(ctx, now, market)
	if err != nil || market == nil {
		return err
	}
	records := nodestate.ReadRecords(objects, e.Pods, e.Pauses.Current(ctx, now), now)
	in := disruption.Input{
		Snapshot: snapshot, Policies: records.Policies, Records: records.ForNodes(snapshot), Now: now,
	}
	if anyEmpty(snapshot) && len(snapshot.Pods) > 0 {
		in.Plan = e.Solve(snapshot, market) // shows which empty nodes the pending pods need
	}
	flights := flightsOf(objects.Claims, e.Ledger.Claims(), objects.Nodes)
	// 2. decide
	proposal, leaving := e.choose(in, flights, records)
	leaving = withNodes(leaving, objects.Nodes)
	nodestate.CountEvaluation(e.Metrics, disruption.Empty, nodestate.KindEmpty, started)
	// 3. act, 4. report
	e.Pods.KeepOnly(records.Nodes)
	e.report(proposal)
	e.Stays.SetReasons(stayEmpty, proposal.Stays...)
	// Removals go first, so that they do not wait for the writes to the claims of all other nodes.
	return errors.Join(e.remove(ctx, leaving, now), e.writePodEvents(ctx, snapshot, records, now))
}

// countInvalid counts the nodes that the last pass proposed, but this pass does not, because pods have come to them.
// Nodes that were deleted since the last pass are not counted.
func (e *Emptiness) countInvalid(in disruption.Input, proposal disruption.Proposal) {
	isProposed := map[string]bool{}
	for _, move := range proposal.Moves {
		for _, node := range move.Nodes {
			isProposed[node] = true
		}
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if e.proposed[n.Name] && !isProposed[n.Name] && !n.Leaving && !in.Records[n.Name].IsBeingRemoved {
			e.Metrics.Invalid.WithLabelValues(nodestate.KindEmpty).Inc()
		}
	}
}

// choose returns the proposal of this pass, and the nodes to delete now: those that the last pass proposed too.
func (e *Emptiness) choose(in disruption.Input, flights []*InFlightMove, records nodestate.Records) (disruption.Proposal, []emptyNode) {
	e.Lock.Enter()
	defer e.Lock.Leave()
	markLeaving(in, flights, records.Claims, e.Lock)
	proposal := disruption.Propose(in)
	e.countInvalid(in, proposal)
	nodes := nodestate.NodesByName(in.Snapshot)
	wasProposed := e.proposed
	e.proposed, e.HasUnconfirmed = map[string]bool{}, false
	var confirmed []emptyNode
	for _, move := range proposal.Moves {
		for _, node := range move.Nodes {
			e.proposed[node] = true
			e.HasUnconfirmed = e.HasUnconfirmed || !wasProposed[node]
			claim := records.Claims[nodes[node].Claim]
			if !wasProposed[node] || claim == nil {
				continue
			}
			e.Lock.Reserve(claim.UID)
			confirmed = append(confirmed, emptyNode{node: node, claim: claim, move: move})
		}
	}
	return proposal, confirmed
}

// writePodEvents writes lastPodEventTime to the claims: the time at which a pod last came to the node or left the node.
// The claim keeps this time when the controller restarts. writePodEvents also sets or removes the condition
// Consolidatable, which shows whether consolidation may consider the node.
func (e *Emptiness) writePodEvents(ctx context.Context, s cluster.Snapshot, records nodestate.Records, now time.Time) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, n := range s.Nodes {
		claim, policy := records.Claims[n.Claim], records.Policies[n.Pool]
		if claim == nil || !n.Initialized || n.Leaving || claim.DeletionTimestamp != nil || e.Lock.IsChosen(claim.UID, now) {
			continue
		}
		// policy.After is consolidateAfter; nil: Never.
		lastEvent := e.Pods.LastPodEvent(claim.Status.NodeName)
		isEventDue := policy.After != nil && *policy.After > 0 && lastEvent.Sub(claim.Status.LastPodEventTime.Time) >= podEventInterval
		isConsolidatable := policy.After != nil && !now.Before(nodestate.QuietSince(claim, lastEvent).Add(*policy.After))
		if !isEventDue && isConsolidatable == claim.StatusConditions().IsTrue(karpv1.ConditionConsolidatable) {
			continue
		}
		group.Go(func() error {
			_, err := e.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) {
				if isEventDue {
					c.Status.LastPodEventTime.Time = lastEvent
				}
				if isConsolidatable {
					c.StatusConditions().SetTrue(now, karpv1.ConditionConsolidatable)
				} else {
					c.StatusConditions().Remove(karpv1.ConditionConsolidatable)
				}
			})
			return err
		})
	}
	return group.Wait()
}

// report sets the metrics. For each empty node that stays, it logs the cause when the cause has changed.
func (e *Emptiness) report(p disruption.Proposal) {
	nodestate.CountRooms(e.Metrics, p.Rooms)
	logged := map[string]disruption.Cause{}
	for _, s := range p.Stays {
		logged[s.Node] = s.Cause
		if e.logged[s.Node] == s.Cause {
			continue
		}
		e.Log.Debug("empty node stays", "Node", s.Node, "cause", string(s.Cause), "detail", s.Detail)
	}
	e.logged = logged
	nodestate.CountEligible(e.Metrics, disruption.Empty, len(p.RemovableEmpty()))
}

// anyEmpty reports whether an initialized node in the snapshot has no pods, and is not leaving.
func anyEmpty(s cluster.Snapshot) bool {
	for _, n := range s.Nodes {
		if n.Claim != "" && n.Initialized && !n.Leaving && len(n.Pods) == 0 {
			return true
		}
	}
	return false
}

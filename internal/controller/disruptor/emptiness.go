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

// objectReader reads the objects behind a snapshot.
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
	Gate    *nodestate.DisruptionLock   // shared with Disruptor
	Ledger  *snapshot.Ledger            // claims created by this process that the cache may not show yet
	Pauses  *loop.Pauses                // pauses of voluntary disruption
	Staying *DisruptableConditionWriter // shared with Disruptor
	Events  loop.EventRecorder          // emits events
	Metrics *metrics.Metrics            // the metrics of this process
	Log     *slog.Logger                // the log of this process

	// proposed are the nodes that the last pass proposed. A node is deleted when two passes in a row propose it,
	// because kube-scheduler may just be binding a pod to it.
	proposed map[string]bool
	IsNews   bool                        // the last pass proposed nodes that the pass before did not
	logged   map[string]disruption.Cause // by node: why it stayed in the last pass
}

// Intervals of the loop. After a pass that proposes new nodes, the next pass starts sooner. So a node is deleted at
// most three seconds and the duration of two passes after its last pod is gone.
const (
	EmptinessEvery = 2 * time.Second  // between two passes
	EmptinessAgain = time.Second      // after a pass that proposed new nodes
	quietEvery     = 10 * time.Second // between two writes of a claim's lastPodEventTime
)

// Start runs the loop until ctx ends.
func (e *Emptiness) Start(ctx context.Context) error {
	timer := time.NewTimer(EmptinessEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		started := time.Now()
		err := e.Pass(ctx, started)
		timer.Reset(e.Pause(time.Since(started)))
		if err != nil && !errors.Is(err, context.Canceled) {
			next, hint := loop.SortError(err)
			if next != kubeclient.Reread && next != kubeclient.Gone {
				e.Metrics.Failures.WithLabelValues("disruption", string(next)).Inc()
				e.Log.Error("cannot check for empty nodes", "error", err.Error(), "hint", hint)
			}
		}
	}
}

// Pause returns the time between the end of a pass and the start of the next one. took is the duration of the pass. The
// pause is at least a quarter of the interval, to leave time for other loops.
func (e *Emptiness) Pause(took time.Duration) time.Duration {
	every := EmptinessEvery
	if e.IsNews {
		every = EmptinessAgain
	}
	return max(every-took, every/4)
}

// Pass deletes the nodes that have been empty for their NodePool's consolidateAfter, as far as budgets allow.
func (e *Emptiness) Pass(ctx context.Context, now time.Time) error {
	defer loop.Working(ctx, loop.LoopEmptiness, "").End()
	looked := time.Now()
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
	books := nodestate.ReadRecords(objects, e.Pods, e.Pauses.Current(ctx, now), now)
	in := disruption.Input{
		Snapshot: snapshot, Policies: books.Policies, Records: books.Records(snapshot), Now: now,
	}
	if anyEmpty(snapshot) && len(snapshot.Pods) > 0 {
		in.Plan = e.Solve(snapshot, market)
	}
	flights := flightsOf(objects.Claims, e.Ledger.Claims(), objects.Nodes)
	// 2. decide
	proposal, leaving := e.choose(in, flights, books)
	leaving = withNodes(leaving, objects.Nodes)
	nodestate.CountEvaluation(e.Metrics, disruption.Empty, nodestate.KindEmpty, looked)
	// 3. act, 4. report
	e.Pods.Keep(books.Nodes)
	e.report(proposal)
	e.Staying.Note(stayEmpty, proposal.Stays...)
	// Removals go first, so that they do not wait for the writes to the claims of all other nodes.
	return errors.Join(e.remove(ctx, leaving, now), e.noteQuiet(ctx, snapshot, books, now))
}

// countInvalid counts the nodes that the last pass proposed and this pass does not, because pods came to them in
// between. Nodes that were deleted in between are not counted.
func (e *Emptiness) countInvalid(in disruption.Input, proposal disruption.Proposal) {
	again := map[string]bool{}
	for _, move := range proposal.Moves {
		for _, node := range move.Nodes {
			again[node] = true
		}
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		if e.proposed[n.Name] && !again[n.Name] && !n.Leaving && !in.Records[n.Name].Going {
			e.Metrics.Invalid.WithLabelValues(nodestate.KindEmpty).Inc()
		}
	}
}

// choose returns the proposal of this pass, and the nodes to delete now: those that the last pass has proposed too.
func (e *Emptiness) choose(in disruption.Input, flights []*InFlightMove, b nodestate.Records) (disruption.Proposal, []emptyNode) {
	e.Gate.Enter()
	defer e.Gate.Leave()
	markLeaving(in, flights, b.Claims, e.Gate)
	proposal := disruption.Propose(in)
	e.countInvalid(in, proposal)
	nodes := nodestate.NodesByName(in.Snapshot)
	before := e.proposed
	e.proposed, e.IsNews = map[string]bool{}, false
	var out []emptyNode
	for _, move := range proposal.Moves {
		for _, node := range move.Nodes {
			e.proposed[node] = true
			e.IsNews = e.IsNews || !before[node]
			claim := b.Claims[nodes[node].Claim]
			if !before[node] || claim == nil {
				continue
			}
			e.Gate.Reserve(claim.UID)
			out = append(out, emptyNode{node: node, claim: claim, move: move})
		}
	}
	return proposal, out
}

// noteQuiet writes lastPodEventTime to the claims: when a pod last came to the node or left it. So the time survives a
// restart. It also sets or removes the condition Consolidatable: whether consolidation may consider the node.
func (e *Emptiness) noteQuiet(ctx context.Context, s cluster.Snapshot, b nodestate.Records, now time.Time) error {
	var group errgroup.Group
	group.SetLimit(nodestate.ParallelClaims)
	for _, n := range s.Nodes {
		claim, policy := b.Claims[n.Claim], b.Policies[n.Pool]
		if claim == nil || !n.Initialized || n.Leaving || claim.DeletionTimestamp != nil || e.Gate.Going(claim.UID, now) {
			continue
		}
		touched := e.Pods.Touched(claim.Status.NodeName)
		isNews := policy.After != nil && *policy.After > 0 && touched.Sub(claim.Status.LastPodEventTime.Time) >= quietEvery
		due := policy.After != nil && !now.Before(nodestate.QuietSince(claim, touched).Add(*policy.After))
		if !isNews && due == claim.StatusConditions().IsTrue(karpv1.ConditionConsolidatable) {
			continue
		}
		group.Go(func() error {
			_, err := e.Objects.PatchClaim(ctx, claim, func(c *karpv1.NodeClaim) {
				if isNews {
					c.Status.LastPodEventTime.Time = touched
				}
				if due {
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

// report sets the metrics, and logs why an empty node stays when the cause has changed.
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
	nodestate.CountEligible(e.Metrics, disruption.Empty, len(p.Vacant()))
}

// anyEmpty reports whether the snapshot has an initialized node without pods.
func anyEmpty(s cluster.Snapshot) bool {
	for _, n := range s.Nodes {
		if n.Claim != "" && n.Initialized && !n.Leaving && len(n.Pods) == 0 {
			return true
		}
	}
	return false
}

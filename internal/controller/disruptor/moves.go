package disruptor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/diagnoser"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/metrics"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

type replacementMaker interface {
	CreateReplacements(ctx context.Context, planned []packing.PlannedNode, annotations map[string]string) []writer.CreateResult
	CreateStaticReplacement(ctx context.Context, pool string, annotations map[string]string) (*karpv1.NodeClaim, error)
}

// Disruptor moves pods off drifted nodes, and off nodes whose pods would cost less elsewhere. It completes the moves
// that it has started. The replacements are initialized before the first pod is evicted. A move that cannot be
// completed is undone.
type Disruptor struct {
	Cluster       nodestate.Snapshots         // reads cluster state from the informers
	Reader        objectReader                // reads the objects behind the snapshot
	Market        nodestate.Markets           // offerings of EC2
	Types         nodestate.TypeMarket        // instance types with their prices
	Solve         nodestate.Solver            // computes plans
	Claims        replacementMaker            // creates replacements
	Ledger        *snapshot.Ledger            // claims created by this process that the cache may not show yet
	LaunchBackoff *poolhealth.LaunchBackoff   // pools whose launches are on hold; shared with the provisioner
	Objects       loop.ObjectWriter           // writes objects to the API server
	Diagnoses     *diagnoser.Diagnoser        // finds claims that will not join; nil disables this
	Pods          *nodestate.PodWatch         // when pods last came to nodes and left them
	Pauses        *loop.Pauses                // pauses of voluntary disruption
	History       *MoveHistory                // limits how often pods are moved
	Stays         *DisruptableConditionWriter // why nodes are not disrupted; shared with Emptiness
	Lock          *nodestate.DisruptionLock   // shared with Emptiness
	Events        loop.EventRecorder          // emits events
	Metrics       *metrics.Metrics            // the metrics of this process
	Log           *slog.Logger                // the log of this process
	Now           loop.Clock                  // the clock; nil uses time.Now

	// Drift limits which drifted nodes may be replaced now; nil: only the budgets limit them.
	Drift *driftcheck.Reconciler

	// SpotToSpot allows replacing spot instances with cheaper spot instances.
	SpotToSpot bool

	newest  loop.NewestVersions     // the last version of each claim that this loop wrote
	held    map[types.UID]exclusion // claims that are excluded from moves, because a move was undone
	blocked map[string]blockage     // by ID of the move: what blocks it
	logged  map[string]string       // by ID of the move: the last logged reason why the move waits
	strays  map[types.UID]time.Time // by UID of the Node: since when the Node is tainted without a known cause
	Scans   scanState               // state of the scans for moves; the zero value means no scan yet
}

type exclusion struct {
	until time.Time // end of the exclusion
	cause string    // why the last move was undone
	times int       // number of consecutive moves of the claim that were undone
}

type blockage struct {
	cause string    // the blocking pod with the reason, or the missing data
	since time.Time // since when something blocks the move
}

// Intervals of the loop.
const (
	advanceInterval   = time.Second      // between two steps of the moves in flight
	minSearchInterval = 10 * time.Second // shortest time between the starts of two scans for new moves
	maxSearchInterval = 5 * time.Minute  // longest time between two scans whose input is the same
	searchPauseFactor = 4                // time between the starts of two scans is at least this many times the duration of the first
	FirstHold         = 2 * time.Minute  // how long the nodes of an undone move are excluded; it doubles each further time
	MaxHold           = time.Hour        // longest exclusion
)

// Start runs the loop until ctx ends.
func (m *Disruptor) Start(ctx context.Context) error {
	for _, kind := range []string{nodestate.KindSingle, nodestate.KindMulti} {
		m.Metrics.Timeouts.WithLabelValues(kind).Add(0) // creates the series, so that alerts can refer to it
	}
	ticker := time.NewTicker(advanceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		m.logError(m.Advance(ctx))
		m.logError(m.Search(ctx))
	}
}

// logError counts and logs an error, unless the next pass fixes the error because it reads the objects again.
func (m *Disruptor) logError(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if next, hint := loop.ClassifyError(err); next != kubeclient.Reread && next != kubeclient.Gone {
		m.Metrics.Failures.WithLabelValues("moves", string(next)).Inc()
		m.Log.Error("cannot move pods off nodes", "error", err.Error(), "hint", hint)
	}
}

// Advance carries out the next step of each move in flight.
func (m *Disruptor) Advance(ctx context.Context) error {
	defer loop.Working(ctx, loop.LoopMoves, "").End()
	// 1. read
	now := m.Now.Now()
	objects, err := m.Reader.Objects(ctx)
	if err != nil {
		return err
	}
	flights := m.flights(objects)
	m.Metrics.Active.Set(float64(len(flights)))
	m.forget(objects, flights)
	errs := []error{m.clearStrays(ctx, objects, now)}
	if len(flights) == 0 {
		return errors.Join(errs...)
	}
	states, err := m.nextInputs(ctx, flights, objects, now)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for i, f := range flights {
		// 2. decide
		step := replacement.Next(states[i], now)
		// 3. act, 4. report
		errs = append(errs, m.act(ctx, f, step, now))
	}
	return errors.Join(errs...)
}

func (m *Disruptor) flights(o snapshot.Objects) []*InFlightMove {
	claims := make([]*karpv1.NodeClaim, 0, len(o.Claims))
	for _, c := range o.Claims {
		if nodestate.IsServed(c.Spec.NodeClassRef) {
			claims = append(claims, m.newest.Of(c))
		}
	}
	out := flightsOf(claims, m.Ledger.Claims(), o.Nodes)
	if len(out) > 0 {
		pods := podsByNode(o)
		for _, f := range out {
			f.Pods = pods
		}
	}
	return out
}

// nextInputs returns the input of replacement.Next for each move. It computes a plan only if a revocable move has all
// its replacements ready: then the next step depends on whether the move's pods can be placed.
func (m *Disruptor) nextInputs(ctx context.Context, flights []*InFlightMove, o snapshot.Objects,
	now time.Time) ([]replacement.MoveState, error) {
	states := make([]replacement.MoveState, len(flights))
	needsPlan := false
	paused := m.Pauses.Current(ctx, now)
	intent := userIntent{policies: nodestate.PoliciesOf(o, paused.Requested(), now), kept: nodestate.KeptNodes(o)}
	for i, f := range flights {
		states[i] = f.nextInput(m.Diagnoses) // Obsolete is set if the mark of the move is unreadable
		if slices.ContainsFunc(states[i].Replacements, func(c replacement.Replacement) bool { return !c.Joined.IsZero() }) {
			states[i].InitializationTimeout = loop.InitializationTimeout(o.Claims, f.replacements)
		}
		if states[i].Obsolete == "" {
			states[i].Obsolete = m.obsoleteReason(f, intent)
		}
		needsPlan = needsPlan || states[i].Revocable() && f.isReady(states[i])
	}
	if !needsPlan {
		return states, nil
	}
	market := m.Market.Market(now)
	if why := missingInput(paused, market); why != "" {
		for i := range flights {
			states[i].Blocked, states[i].BlockedSince = why, now // now on each pass: never undone for this cause
		}
		return states, nil
	}
	s, err := m.Cluster.Snapshot(ctx, now, market)
	if err != nil {
		return states, err
	}
	var plan packing.Plan
	if len(s.Pods) > 0 {
		plan = m.Solve(s, market)
	}
	unbound := unschedulablePods(flights, states, s, plan)
	for i, f := range flights {
		if f.isReady(states[i]) {
			states[i].Blocked, states[i].BlockedSince = m.recordBlockage(f, f.blocker(s, plan, unbound, now), now)
		}
	}
	return states, nil
}

// missingInput returns which input of a decision is missing, for example after a start of the process or while an API
// does not answer. It is empty if no input is missing.
func missingInput(paused loop.PauseState, market catalog.Market) string {
	switch {
	case market == nil:
		return "the offerings of EC2 are not known yet"
	case paused.IsUnread:
		return "the global pause cannot be read"
	}
	return ""
}

// unschedulablePods returns pods that kube-scheduler would leave pending, at most one for each leaving node. Only moves
// whose replacements are all ready count. kube-scheduler does not know the plan, so it may choose other nodes.
func unschedulablePods(flights []*InFlightMove, states []replacement.MoveState, s cluster.Snapshot, plan packing.Plan) map[string]bool {
	var nodes, order []string
	for i, f := range flights {
		if !f.isReady(states[i]) {
			continue
		}
		order = append(order, f.Mark.EvictionOrder...)
		for _, c := range f.Leaving {
			if n := f.nodes[c.Name]; n != nil && c.DeletionTimestamp == nil {
				nodes = append(nodes, n.Name)
			}
		}
	}
	out := map[string]bool{}
	for _, id := range consolidation.Unschedulable(s, plan, nodes, order) {
		out[id] = true
	}
	return out
}

// recordBlockage records what blocks the move and since when, and returns both. An empty cause removes the record.
func (m *Disruptor) recordBlockage(f *InFlightMove, cause string, now time.Time) (string, time.Time) {
	if cause == "" {
		delete(m.blocked, f.Mark.ID)
		return "", time.Time{}
	}
	b, ok := m.blocked[f.Mark.ID]
	if !ok {
		b.since = now
	}
	b.cause = cause
	if m.blocked == nil {
		m.blocked = map[string]blockage{}
	}
	m.blocked[f.Mark.ID] = b
	return b.cause, b.since
}

// forget drops the records of claims and moves that no longer exist.
func (m *Disruptor) forget(o snapshot.Objects, flights []*InFlightMove) {
	if len(m.held)+len(m.blocked)+len(m.logged) == 0 {
		return
	}
	claims := map[types.UID]bool{}
	for _, c := range o.Claims {
		claims[c.UID] = true
	}
	for uid := range m.held {
		if !claims[uid] {
			delete(m.held, uid)
		}
	}
	known := map[string]bool{}
	for _, f := range flights {
		known[f.Mark.ID] = true
	}
	for id := range m.blocked {
		if !known[id] {
			delete(m.blocked, id)
		}
	}
	for id := range m.logged {
		if !known[id] {
			delete(m.logged, id)
		}
	}
}

// hold excludes from moves, for a while, the nodes of a move that was undone.
func (m *Disruptor) hold(f *InFlightMove, why string, now time.Time) {
	if m.held == nil {
		m.held = map[types.UID]exclusion{}
	}
	for _, c := range f.Leaving {
		h := m.held[c.UID]
		if now.Sub(h.until) > MaxHold { // the last exclusion ended long ago
			h.times = 0
		}
		h.times++
		h.cause = why
		h.until = now.Add(min(FirstHold<<min(h.times-1, 10), MaxHold)) // 10 prevents an overflow
		m.held[c.UID] = h
	}
}

func (f *InFlightMove) nodeNames() string {
	var out []string
	for _, c := range f.Leaving {
		out = append(out, c.Status.NodeName)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (f *InFlightMove) replacementNames() string {
	var out []string
	for _, c := range f.replacements {
		out = append(out, c.Name)
	}
	return strings.Join(out, ",")
}

// holdStuck excludes the claim's node from moves for a while, because its pods cannot be moved. why is the cause.
func (m *Disruptor) holdStuck(claim *karpv1.NodeClaim, why string, now time.Time) {
	if claim != nil {
		m.hold(&InFlightMove{Leaving: []*karpv1.NodeClaim{claim}}, why, now)
		m.Lock.Forget(claim.UID)
	}
}

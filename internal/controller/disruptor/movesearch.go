package disruptor

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// searching is the state of the scans for moves.
type searching struct {
	Next   time.Time // earliest time of the next scan
	last   uint64    // fingerprint of the input of the last scan; 0: the next scan is not skipped
	full   time.Time // time of the last scan
	logged string    // the last logged counts of nodes that stay

	steady consolidation.ChurnDetector // measures how often pods come and go

	deadlocks time.Time // when deadlocks were last counted
}

// DisruptionInput is the state of the cluster for one scan, with all facts that decide which nodes may be disrupted.
type DisruptionInput struct {
	In      disruption.Input             // input of the disruption rules
	market  catalog.Market               // the available offerings
	objects snapshot.Objects             // the objects behind the snapshot
	Claims  map[string]*karpv1.NodeClaim // NodeClaims by name
	Flights []*InFlightMove              // moves in flight; empty if there are none
	pods    map[string][]*corev1.Pod     // pods by Node name; nil until needed
	// steady: no pod has come or gone for a while. restless: pods come and go frequently. See
	// consolidation.ChurnDetector.
	steady, restless bool
}

// Look searches for moves and starts them: first of drifted nodes, then of nodes whose pods cost less elsewhere.
func (m *Disruptor) Look(ctx context.Context) error {
	now := m.Now.Now()
	if now.Before(m.Search.Next) {
		return nil
	}
	m.Search.Next = now.Add(searchEvery)
	defer loop.Working(ctx, loop.LoopSearch, "").End()
	if err := errors.Join(m.History.Recall(ctx, now), m.Holds.Recall(ctx)); err != nil {
		return err
	}
	s, err := m.ReadInput(ctx, now)
	if err == nil && s != nil {
		err = m.replaceDrifted(ctx, s, now)
	}
	if err != nil || s == nil {
		return err
	}
	return m.Save(ctx, now)
}

// ReadInput reads the input of a scan. It returns nil until the offerings of EC2 are known, and while there are no
// NodeClaims.
func (m *Disruptor) ReadInput(ctx context.Context, now time.Time) (*DisruptionInput, error) {
	objects, err := m.Reader.Objects(ctx)
	if err != nil || len(objects.Claims) == 0 {
		return nil, err
	}
	market := m.Market.Market(now)
	if market == nil {
		return nil, nil
	}
	snapshot, err := m.Cluster.Snapshot(ctx, now, market)
	if err != nil {
		return nil, err
	}
	snapshot.Pools = m.Holds.Marked(snapshot.Pools, now)
	b := nodestate.ReadRecords(objects, m.Pods, m.Pauses.Current(ctx, now), now)
	out := &DisruptionInput{market: market, objects: objects, Claims: b.Claims, In: disruption.Input{
		Snapshot: snapshot, Policies: b.Policies, Records: b.Records(snapshot), Drifted: map[string]string{}, Now: now,
	}}
	if len(snapshot.Pods) > 0 {
		out.In.Plan = m.Solve(snapshot, market)
	}
	out.Flights = m.flights(objects)
	markLeaving(out.In, out.Flights, out.Claims, m.Gate)
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		claim := b.Claims[n.Claim]
		if claim == nil {
			continue
		}
		if c, ok := claim.StatusConditions().Find(karpv1.ConditionDrifted); ok && c.Status == "True" {
			out.In.Drifted[n.Name] = c.Reason
		}
		if h, ok := m.held[claim.UID]; ok && now.Before(h.until) {
			r := out.In.Records[n.Name]
			r.Held, r.HeldCause = h.until, h.cause
			out.In.Records[n.Name] = r
		}
	}
	return out, nil
}

// markLeaving marks the nodes that are already leaving, and excludes their replacements from disruption.
func markLeaving(in disruption.Input, flights []*InFlightMove, claims map[string]*karpv1.NodeClaim, gate *nodestate.DisruptionLock) {
	going, made := map[string]bool{}, map[string]bool{}
	for _, f := range flights {
		for _, c := range f.Leaving {
			going[c.Name] = true
		}
		for _, c := range f.coming {
			made[c.Name] = true
		}
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		r, ok := in.Records[n.Name]
		if !ok || claims[n.Claim] == nil {
			continue
		}
		r.Going = r.Going || going[n.Claim] || gate.Going(claims[n.Claim].UID, in.Now)
		if made[n.Claim] {
			r.Held, r.HeldCause = in.Now.Add(searchEvery), "a move is about to bring pods to this node"
		}
		in.Records[n.Name] = r
	}
}

// settled returns the nodes whose pods may be moved again, and why the other nodes stay. If together is true, all
// returned nodes can leave at once; otherwise each node is judged alone.
func (m *Disruptor) settled(s *DisruptionInput, reason disruption.Reason, nodes []string, together bool) ([]string, []disruption.Stay) {
	if s.pods == nil {
		s.pods = podsByNode(s.objects)
	}
	stays := m.History.Stays(s.In, reason, nodes, HistoryInput{s.Claims, s.pods}, together)
	stay := map[string]bool{}
	for _, one := range stays {
		stay[one.Node] = true
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return stay[name] }), stays
}

// countDeadlocks sets the metric of the objects that block the draining of nodes until a user fixes them. It does so at
// most every deadlocksEvery.
func (m *Disruptor) countDeadlocks(o snapshot.Objects, now time.Time) {
	if now.Sub(m.Search.deadlocks) < deadlocksEvery {
		return
	}
	m.Search.deadlocks = now
	for kind, n := range snapshot.Deadlocks(o.Blockers(now)) {
		m.Metrics.Deadlocks.WithLabelValues(string(kind)).Set(float64(n))
	}
}

// deadlocksEvery is how often deadlocks are counted.
const deadlocksEvery = time.Minute

// notWorthMoving returns the candidates that are in none of the moves, as nodes that stay because their disruption
// would not save enough.
func notWorthMoving(nodes []string, moves []consolidation.Move) []disruption.Stay {
	goes := nodestate.NodesOfMoves(moves)
	var out []disruption.Stay
	for _, name := range nodes {
		if !goes[name] {
			out = append(out, disruption.Stay{Node: name, Cause: disruption.Worth})
		}
	}
	return out
}

// withRoom returns the nodes of pools whose budgets allow one more disruption to save money, and why the other nodes
// stay. Moves of the other nodes could not be started, so the scan ignores these nodes.
func (s *DisruptionInput) withRoom(nodes []string, rooms []disruption.Room) (some []string, stays []disruption.Stay) {
	full, by := map[string]disruption.Room{}, nodestate.NodesByName(s.In.Snapshot)
	for _, room := range rooms {
		if room.Nodes == 0 {
			full[room.Pool] = room
		}
	}
	for _, name := range nodes {
		if room, ok := full[by[name].Pool]; ok {
			stays = append(stays, disruption.Stay{Node: name, Cause: disruption.Budgeted, Detail: room.Budget, Until: room.Until})
		} else {
			some = append(some, name)
		}
	}
	return some, stays
}

// Save searches for moves that save money and starts them. The scan of all nodes holds no lock; Choose revalidates the
// found moves before they start.
func (m *Disruptor) Save(ctx context.Context, now time.Time) error {
	looked := time.Now()
	s, err := m.ReadInput(ctx, now)
	if err != nil || s == nil {
		return err
	}
	nodes, stays := disruption.Candidates(s.In, disruption.Underutilized)
	nodes, movedTooOften := m.settled(s, disruption.Underutilized, nodes, false)
	nodestate.CountEligible(m.Metrics, disruption.Underutilized, len(nodes))
	_, _, rooms := disruption.Grant(s.In, disruption.Underutilized, nil)
	nodestate.CountRooms(m.Metrics, rooms)
	nodes, full := s.withRoom(nodes, rooms)
	m.Staying.Note(staySaving, slices.Concat(stays, movedTooOften, full)...)
	m.logError(m.Staying.Write(ctx, s.In.Snapshot, s.Claims, now))
	m.countDeadlocks(s.objects, now)
	m.Search.steady.Observe(s.In.Snapshot, now)
	s.steady, s.restless = m.Search.steady.IsLow(now), m.Search.steady.IsHigh(now)
	mark := s.fingerprint(nodes)
	if slices.ContainsFunc(s.Flights, func(f *InFlightMove) bool { return f.IsInTurn(now) }) {
		return nil // leaving nodes reduce the room that a move would need; the recorded reasons to stay remain valid
	}
	if len(nodes) == 0 || mark == m.Search.last && now.Sub(m.Search.full) < searchLeast {
		nodestate.CountEvaluation(m.Metrics, disruption.Underutilized, nodestate.KindMulti, looked)
		return nil
	}
	started := time.Now()
	found := consolidation.Find(m.ConsolidationInput(s, nodes))
	took := time.Since(started)
	m.Metrics.Search.Observe(took.Seconds())
	m.Search.Next = now.Add(max(searchEvery, searchShare*took))
	m.Search.last, m.Search.full = mark, now
	nodestate.CountEvaluation(m.Metrics, disruption.Underutilized, nodestate.KindMulti, looked)
	if found.Waits {
		return nil // the recorded reasons to stay remain valid
	}
	nodestate.CountWeighed(m.Metrics, s.In, found)
	m.recordStays(stays, nodes, found.Moves)
	m.Staying.Note(stayWorth, notWorthMoving(nodes, found.Moves)...)
	m.Staying.Note(staySavingRoom)
	if len(found.Moves) == 0 {
		return nil
	}
	m.Search.last = 0
	return m.Choose(ctx, found.Moves)
}

// Choose starts the moves that the budgets allow, if they are still valid.
func (m *Disruptor) Choose(ctx context.Context, moves []consolidation.Move) error {
	now := m.Now.Now()
	s, err := m.ReadInput(ctx, now)
	if err != nil || s == nil {
		return err
	}
	s.steady, s.restless = m.Search.steady.IsLow(now), m.Search.steady.IsHigh(now)
	nodes, granted := m.grantMoves(s, moves)
	var confirmed []consolidation.Move
	if len(granted) > 0 {
		confirmed = consolidation.Revalidate(m.ConsolidationInput(s, nodes), granted).Moves
	}
	nodestate.CountInvalid(m.Metrics, moves, loop.SetOf(nodes), granted, confirmed)
	s.release(m.Gate, granted, confirmed)
	if len(confirmed) == 0 {
		m.holdBest(s, moves, loop.SetOf(granted), now)
	}
	return m.BeginAll(ctx, s, disruption.Underutilized, confirmed, now)
}

// holdBest takes the best move that the budgets allow, and excludes its nodes from moves for a while. moves has the
// best move first. holdBest is called if revalidation confirmed no move: otherwise each scan would find the same move
// again.
func (m *Disruptor) holdBest(s *DisruptionInput, moves []consolidation.Move, granted map[string]bool, now time.Time) {
	by := nodestate.NodesByName(s.In.Snapshot)
	for i := range moves {
		if slices.ContainsFunc(moves[i].Nodes, func(name string) bool { return !granted[name] }) {
			continue
		}
		var claims []*karpv1.NodeClaim
		for _, name := range moves[i].Nodes {
			claims = append(claims, s.Claims[by[name].Claim])
		}
		m.hold(&InFlightMove{Leaving: claims}, "its move is no longer valid on revalidation", now)
		return
	}
}

// grantMoves returns the nodes that may be disrupted, and the nodes of the moves that the budgets allow. It reserves
// the budgets for the latter.
func (m *Disruptor) grantMoves(s *DisruptionInput, moves []consolidation.Move) (nodes, granted []string) {
	m.Gate.Enter()
	defer m.Gate.Leave()
	markLeaving(s.In, s.Flights, s.Claims, m.Gate)
	nodes, _ = disruption.Candidates(s.In, disruption.Underutilized)
	nodes, _ = m.settled(s, disruption.Underutilized, nodes, false)
	may := loop.SetOf(nodes)
	var sets [][]string
	for _, move := range moves {
		if !slices.ContainsFunc(move.Nodes, func(n string) bool { return !may[n] }) {
			sets = append(sets, move.Nodes)
		}
	}
	var waiting, movedTooOften []disruption.Stay
	var rooms []disruption.Room
	granted, waiting, rooms = disruption.Grant(s.In, disruption.Underutilized, sets)
	nodestate.CountRooms(m.Metrics, rooms)
	granted, movedTooOften = m.settled(s, disruption.Underutilized, granted, true)
	m.Staying.Note(staySavingRoom, slices.Concat(waiting, movedTooOften)...)
	s.reserve(m.Gate, granted)
	return nodes, granted
}

// reserve reserves the nodes, which use up their share of the disruption budgets. The caller must hold the lock.
func (s *DisruptionInput) reserve(lock *nodestate.DisruptionLock, nodes []string) {
	by := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		lock.Reserve(s.Claims[by[name].Claim].UID)
	}
}

// release drops the reservations of the nodes that are in none of the moves.
func (s *DisruptionInput) release(lock *nodestate.DisruptionLock, nodes []string, moves []consolidation.Move) {
	goes := nodestate.NodesOfMoves(moves)
	by := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		if !goes[name] {
			lock.Forget(s.Claims[by[name].Claim].UID)
		}
	}
}

// ConsolidationInput returns the input of consolidation with these candidates.
func (m *Disruptor) ConsolidationInput(s *DisruptionInput, nodes []string) consolidation.Input {
	out := consolidation.Input{
		Snapshot:    disruption.WithoutVacant(s.In),
		Market:      s.market,
		Nodes:       map[string]consolidation.Candidate{},
		Rules:       map[string]consolidation.Rule{},
		MaxRemovals: map[string]int{},
		SpotToSpot:  m.SpotToSpot,
		Stale:       s.Stale(),
		LowChurn:    s.steady,
		HighChurn:   s.restless,
		OneAtATime:  true,
	}
	by := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		n := by[name]
		price, _ := priceOfClaims(m.Types, []*karpv1.NodeClaim{s.Claims[n.Claim]})
		out.Nodes[name] = consolidation.Candidate{Price: price, Cost: s.In.Records[name].Cost}
	}
	_, _, rooms := disruption.Grant(s.In, disruption.Underutilized, nil)
	for _, room := range rooms {
		out.MaxRemovals[room.Pool] = room.Nodes
	}
	for pool, p := range s.In.Policies {
		out.Rules[pool] = consolidation.Rule{LeastSaving: p.LeastSaving, LeastShare: p.LeastShare, LeastWorth: p.Method.LeastWorth()}
	}
	return out
}

// BeginAll starts the moves one after another. It skips moves that need a launch that is on hold. An error ends only
// its own move and is logged; BeginAll always returns nil.
func (m *Disruptor) BeginAll(ctx context.Context, s *DisruptionInput, reason disruption.Reason,
	moves []consolidation.Move, now time.Time) error {
	byName := map[string]*corev1.Node{}
	for _, n := range s.objects.Nodes {
		byName[n.Name] = n
	}
	by, usualJoin := nodestate.NodesByName(s.In.Snapshot), loop.UsualJoin(s.objects.Claims)
	for _, move := range moves {
		if !m.Holds.Allows(move.PlannedNodes, now) {
			s.release(m.Gate, move.Nodes, nil)
			continue
		}
		var claims []*karpv1.NodeClaim
		var nodes []*corev1.Node
		for _, name := range move.Nodes {
			claim := m.newest.Of(s.Claims[by[name].Claim])
			claims = append(claims, claim)
			if node := byName[claim.Status.NodeName]; snapshot.IsNodeOf(claim, node) {
				nodes = append(nodes, node)
			}
		}
		mark := nodestate.MoveMark{
			ID:     nodestate.MoveID(claims, now),
			Reason: reason,
			Begun:  now.UTC(),
			Nodes:  len(claims),
			Claims: len(move.PlannedNodes),
			Pods:   move.Pods,
			Turns:  move.EvictionOrder,
		}
		if reason == disruption.Underutilized {
			mark.Saving, mark.PaysBack = move.Saving.Dollars(), int64(math.Ceil(move.PaybackTime(usualJoin).Seconds()))
		}
		m.logError(m.begin(ctx, mark, claims, nodes,
			func(a map[string]string) error { return m.createReplacements(ctx, move.PlannedNodes, a) }, now))
	}
	return nil
}

// fingerprint returns a hash of the input of a scan: candidates, nodes, pods, prices and churn. If it is equal, a scan
// would find the same moves.
func (s *DisruptionInput) fingerprint(nodes []string) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	text := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.WriteString(p)
			_ = h.WriteByte(0)
		}
	}
	text(nodes...)
	text(strconv.FormatBool(s.steady), strconv.FormatBool(s.restless))
	for i := range s.In.Snapshot.Nodes {
		n := &s.In.Snapshot.Nodes[i]
		text(n.Name, strconv.FormatBool(n.Leaving), strconv.FormatBool(n.Initialized))
		for k := range n.Pods {
			text(n.Pods[k].UID)
		}
	}
	for i := range s.In.Snapshot.Pods {
		text(s.In.Snapshot.Pods[i].UID)
	}
	for _, class := range slices.Sorted(maps.Keys(s.market)) {
		text(class)
		for _, t := range s.market[class].Types {
			for _, o := range t.Offerings {
				text(o.Price.String(), strconv.FormatBool(o.Available))
			}
		}
	}
	return h.Sum64()
}

// fingerprintSeed is shared by all fingerprints of this process.
var fingerprintSeed = maphash.MakeSeed()

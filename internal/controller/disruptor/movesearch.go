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

type scanState struct {
	Next      time.Time // earliest time of the next scan
	lastInput uint64    // fingerprint of the input of the last scan; 0: the next scan is not skipped
	lastTime  time.Time // time of the last scan
	logged    string    // the last logged counts of nodes that stay

	churn consolidation.ChurnDetector // measures how often pods come and go

	deadlocksCounted time.Time // when countDeadlocks last counted
}

// DisruptionInput is the state of the cluster for one scan, with all facts that decide which nodes may be disrupted.
type DisruptionInput struct {
	In      disruption.Input             // input of the disruption rules
	market  catalog.Market               // the available offerings
	objects snapshot.Objects             // the objects behind the snapshot
	Claims  map[string]*karpv1.NodeClaim // NodeClaims by name
	Flights []*InFlightMove              // moves in flight; empty if there are none
	pods    map[string][]*corev1.Pod     // pods by Node name; nil until needed
	// lowChurn is true if no pod has come or gone for a while, and highChurn if pods come and go frequently. See
	// consolidation.ChurnDetector.
	lowChurn, highChurn bool
}

// Search searches for moves and starts them: first moves that replace drifted nodes, then moves that save money. It
// does nothing before m.Scans.Next.
func (m *Disruptor) Search(ctx context.Context) error {
	now := m.Now.Now()
	if now.Before(m.Scans.Next) {
		return nil
	}
	m.Scans.Next = now.Add(minSearchInterval)
	defer loop.Working(ctx, loop.LoopSearch, "").End()
	// Sync and Recall read the records of an earlier process, once. Sync also writes new trips.
	if err := errors.Join(m.History.Sync(ctx, now), m.LaunchBackoff.Recall(ctx)); err != nil {
		return err
	}
	s, err := m.ReadInput(ctx, now)
	if err == nil && s != nil {
		err = m.replaceDrifted(ctx, s, now)
	}
	if err != nil || s == nil {
		return err
	}
	return m.SearchSavings(ctx, now)
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
	snapshot.Pools = m.LaunchBackoff.MarkHeld(snapshot.Pools, now)
	records := nodestate.ReadRecords(objects, m.Pods, m.Pauses.Current(ctx, now), now)
	out := &DisruptionInput{market: market, objects: objects, Claims: records.Claims, In: disruption.Input{
		Snapshot: snapshot, Policies: records.Policies, Records: records.ForNodes(snapshot), Drifted: map[string]string{}, Now: now,
	}}
	if len(snapshot.Pods) > 0 {
		out.In.Plan = m.Solve(snapshot, market)
	}
	out.Flights = m.flights(objects)
	markLeaving(out.In, out.Flights, out.Claims, m.Lock)
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		claim := records.Claims[n.Claim]
		if claim == nil {
			continue
		}
		if c, ok := claim.StatusConditions().Find(karpv1.ConditionDrifted); ok && c.Status == "True" {
			out.In.Drifted[n.Name] = c.Reason
		}
		if h, ok := m.held[claim.UID]; ok && now.Before(h.until) {
			r := out.In.Records[n.Name]
			r.HeldUntil, r.HeldCause = h.until, h.cause
			out.In.Records[n.Name] = r
		}
	}
	return out, nil
}

// markLeaving marks the nodes that are already leaving, and excludes their replacements from disruption.
func markLeaving(in disruption.Input, flights []*InFlightMove, claims map[string]*karpv1.NodeClaim, lock *nodestate.DisruptionLock) {
	isLeaving, isReplacement := map[string]bool{}, map[string]bool{} // by name of the claim
	for _, f := range flights {
		for _, c := range f.Leaving {
			isLeaving[c.Name] = true
		}
		for _, c := range f.replacements {
			isReplacement[c.Name] = true
		}
	}
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		r, ok := in.Records[n.Name]
		if !ok || claims[n.Claim] == nil {
			continue
		}
		r.IsBeingRemoved = r.IsBeingRemoved || isLeaving[n.Claim] || lock.IsChosen(claims[n.Claim].UID, in.Now)
		if isReplacement[n.Claim] {
			r.HeldUntil, r.HeldCause = in.Now.Add(minSearchInterval), "a move is about to bring pods to this node"
		}
		in.Records[n.Name] = r
	}
}

// withinMoveLimits returns the nodes whose pods have not been moved too often, and why the other nodes stay. If
// together is true, all returned nodes can leave at once; otherwise each node is judged alone.
func (m *Disruptor) withinMoveLimits(s *DisruptionInput, reason disruption.Reason, nodes []string,
	together bool) ([]string, []disruption.Stay) {
	if s.pods == nil {
		s.pods = podsByNode(s.objects)
	}
	stays := m.History.Stays(s.In, reason, nodes, HistoryInput{s.Claims, s.pods}, together)
	mustStay := map[string]bool{}
	for _, stay := range stays {
		mustStay[stay.Node] = true
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return mustStay[name] }), stays
}

// countDeadlocks sets the metric of deadlocks: objects that block the draining of nodes until a user fixes the objects.
// It counts at most once per deadlockInterval.
func (m *Disruptor) countDeadlocks(o snapshot.Objects, now time.Time) {
	if now.Sub(m.Scans.deadlocksCounted) < deadlockInterval {
		return
	}
	m.Scans.deadlocksCounted = now
	for kind, n := range snapshot.Deadlocks(o.Blockers(now)) {
		m.Metrics.Deadlocks.WithLabelValues(string(kind)).Set(float64(n))
	}
}

const deadlockInterval = time.Minute

// notWorthMoving returns a Stay for each candidate that is in none of the moves. The cause is WorthItsPrice: a move of
// the node would not save enough.
func notWorthMoving(nodes []string, moves []consolidation.Move) []disruption.Stay {
	isMoved := nodestate.NodesOfMoves(moves)
	var out []disruption.Stay
	for _, name := range nodes {
		if !isMoved[name] {
			out = append(out, disruption.Stay{Node: name, Cause: disruption.WorthItsPrice})
		}
	}
	return out
}

// withRoom returns the nodes of pools whose budgets allow one more disruption for the reason Underutilized, and why the
// other nodes stay. The scan ignores the other nodes, because their moves could not be started.
func (s *DisruptionInput) withRoom(nodes []string, rooms []disruption.Room) (allowed []string, stays []disruption.Stay) {
	full, nodeByName := map[string]disruption.Room{}, nodestate.NodesByName(s.In.Snapshot)
	for _, room := range rooms {
		if room.Nodes == 0 {
			full[room.Pool] = room
		}
	}
	for _, name := range nodes {
		if room, ok := full[nodeByName[name].Pool]; ok {
			stays = append(stays, disruption.Stay{Node: name, Cause: disruption.BudgetExhausted, Detail: room.Budget, Until: room.Until})
		} else {
			allowed = append(allowed, name)
		}
	}
	return allowed, stays
}

// SearchSavings searches for moves that save money and starts them. It reads the input again, because
// replaceDrifted may have started moves. The scan holds no lock, so StartConfirmed revalidates the found moves.
func (m *Disruptor) SearchSavings(ctx context.Context, now time.Time) error {
	started := time.Now()
	s, err := m.ReadInput(ctx, now)
	if err != nil || s == nil {
		return err
	}
	nodes, stays := disruption.Candidates(s.In, disruption.Underutilized)
	nodes, movedTooOften := m.withinMoveLimits(s, disruption.Underutilized, nodes, false)
	nodestate.CountEligible(m.Metrics, disruption.Underutilized, len(nodes))
	// Without groups, Grant only computes the rooms: how many more nodes each budget allows.
	_, _, rooms := disruption.Grant(s.In, disruption.Underutilized, nil)
	nodestate.CountRooms(m.Metrics, rooms)
	nodes, noRoom := s.withRoom(nodes, rooms)
	m.Stays.SetReasons(staySaving, slices.Concat(stays, movedTooOften, noRoom)...)
	m.logError(m.Stays.Write(ctx, s.In.Snapshot, s.Claims, now))
	m.countDeadlocks(s.objects, now)
	m.Scans.churn.Observe(s.In.Snapshot, now)
	s.lowChurn, s.highChurn = m.Scans.churn.IsLow(now), m.Scans.churn.IsHigh(now)
	fingerprint := s.fingerprint(nodes)
	if slices.ContainsFunc(s.Flights, func(f *InFlightMove) bool { return f.EvictsInOrder(now) }) {
		return nil // the pods still to be evicted need the room that a new move would use; the recorded reasons to stay remain valid
	}
	isRepeat := fingerprint == m.Scans.lastInput && now.Sub(m.Scans.lastTime) < maxSearchInterval
	if len(nodes) == 0 || isRepeat {
		nodestate.CountEvaluation(m.Metrics, disruption.Underutilized, nodestate.KindMulti, started)
		return nil
	}
	scanStart := time.Now()
	found := consolidation.Find(m.ConsolidationInput(s, nodes))
	took := time.Since(scanStart)
	m.Metrics.ScanDuration.Observe(took.Seconds())
	m.Scans.Next = now.Add(max(minSearchInterval, searchPauseFactor*took))
	m.Scans.lastInput, m.Scans.lastTime = fingerprint, now
	nodestate.CountEvaluation(m.Metrics, disruption.Underutilized, nodestate.KindMulti, started)
	if found.Waits { // Find did not search
		return nil // the recorded reasons to stay remain valid
	}
	nodestate.CountWeighed(m.Metrics, s.In, found)
	m.recordStays(stays, nodes, found.Moves)
	m.Stays.SetReasons(stayWorth, notWorthMoving(nodes, found.Moves)...)
	m.Stays.SetReasons(staySavingBudget)
	if len(found.Moves) == 0 {
		return nil
	}
	m.Scans.lastInput = 0 // the moves may not start, so the next scan searches again
	return m.StartConfirmed(ctx, found.Moves)
}

// StartConfirmed starts the moves that the budgets allow and that are still valid.
func (m *Disruptor) StartConfirmed(ctx context.Context, moves []consolidation.Move) error {
	now := m.Now.Now()
	s, err := m.ReadInput(ctx, now)
	if err != nil || s == nil {
		return err
	}
	s.lowChurn, s.highChurn = m.Scans.churn.IsLow(now), m.Scans.churn.IsHigh(now)
	nodes, granted := m.grantMoves(s, moves)
	var confirmed []consolidation.Move
	if len(granted) > 0 {
		confirmed = consolidation.Revalidate(m.ConsolidationInput(s, nodes), granted).Moves
	}
	nodestate.CountInvalid(m.Metrics, moves, loop.SetOf(nodes), granted, confirmed)
	s.release(m.Lock, granted, confirmed)
	if len(confirmed) == 0 {
		m.holdBest(s, moves, loop.SetOf(granted), now)
	}
	return m.StartAll(ctx, s, disruption.Underutilized, confirmed, now)
}

// holdBest excludes from moves, for a while, the nodes of the first move that the budgets allow. moves has the best
// move first. StartConfirmed calls holdBest if revalidation confirmed no move. Otherwise each scan would find the same
// move again.
func (m *Disruptor) holdBest(s *DisruptionInput, moves []consolidation.Move, granted map[string]bool, now time.Time) {
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for i := range moves {
		if slices.ContainsFunc(moves[i].Nodes, func(name string) bool { return !granted[name] }) {
			continue
		}
		var claims []*karpv1.NodeClaim
		for _, name := range moves[i].Nodes {
			claims = append(claims, s.Claims[nodeByName[name].Claim])
		}
		m.hold(&InFlightMove{Leaving: claims}, "revalidation found that its move is no longer valid", now)
		return
	}
}

// grantMoves returns the nodes that may be disrupted, and the nodes of the moves that the budgets allow. It reserves
// the granted nodes.
func (m *Disruptor) grantMoves(s *DisruptionInput, moves []consolidation.Move) (nodes, granted []string) {
	m.Lock.Enter()
	defer m.Lock.Leave()
	markLeaving(s.In, s.Flights, s.Claims, m.Lock)
	nodes, _ = disruption.Candidates(s.In, disruption.Underutilized)
	nodes, _ = m.withinMoveLimits(s, disruption.Underutilized, nodes, false)
	isCandidate := loop.SetOf(nodes)
	var sets [][]string
	for _, move := range moves {
		if !slices.ContainsFunc(move.Nodes, func(n string) bool { return !isCandidate[n] }) {
			sets = append(sets, move.Nodes)
		}
	}
	var waiting, movedTooOften []disruption.Stay
	var rooms []disruption.Room
	granted, waiting, rooms = disruption.Grant(s.In, disruption.Underutilized, sets)
	nodestate.CountRooms(m.Metrics, rooms)
	granted, movedTooOften = m.withinMoveLimits(s, disruption.Underutilized, granted, true)
	m.Stays.SetReasons(staySavingBudget, slices.Concat(waiting, movedTooOften)...)
	s.reserve(m.Lock, granted)
	return nodes, granted
}

// reserve records the nodes as chosen, so that they count against the disruption budgets. The caller must hold the
// lock.
func (s *DisruptionInput) reserve(lock *nodestate.DisruptionLock, nodes []string) {
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		lock.Reserve(s.Claims[nodeByName[name].Claim].UID)
	}
}

// release drops the reservations of the nodes that are in none of the moves.
func (s *DisruptionInput) release(lock *nodestate.DisruptionLock, nodes []string, moves []consolidation.Move) {
	isMoved := nodestate.NodesOfMoves(moves)
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		if !isMoved[name] {
			lock.Forget(s.Claims[nodeByName[name].Claim].UID)
		}
	}
}

// ConsolidationInput returns the input of consolidation. nodes are the candidates.
func (m *Disruptor) ConsolidationInput(s *DisruptionInput, nodes []string) consolidation.Input {
	out := consolidation.Input{
		Snapshot:    disruption.WithoutRemovableEmpty(s.In),
		Market:      s.market,
		Nodes:       map[string]consolidation.Candidate{},
		Rules:       map[string]consolidation.Rule{},
		MaxRemovals: map[string]int{},
		SpotToSpot:  m.SpotToSpot,
		Stale:       s.StaleNodes(),
		LowChurn:    s.lowChurn,
		HighChurn:   s.highChurn,
		OneAtATime:  true,
	}
	nodeByName := nodestate.NodesByName(s.In.Snapshot)
	for _, name := range nodes {
		n := nodeByName[name]
		price, _ := priceOfClaims(m.Types, []*karpv1.NodeClaim{s.Claims[n.Claim]})
		out.Nodes[name] = consolidation.Candidate{Price: price, Cost: s.In.Records[name].Cost}
	}
	_, _, rooms := disruption.Grant(s.In, disruption.Underutilized, nil)
	for _, room := range rooms {
		out.MaxRemovals[room.Pool] = room.Nodes
	}
	for pool, p := range s.In.Policies {
		out.Rules[pool] = consolidation.Rule{MinSaving: p.MinSaving, MinSavingShare: p.MinSavingShare, LeastWorth: p.Method.LeastWorth()}
	}
	return out
}

// StartAll starts the moves one after another. It skips moves that need a launch that is on hold. After an error, which
// is logged, it continues with the next move. It always returns nil.
func (m *Disruptor) StartAll(ctx context.Context, s *DisruptionInput, reason disruption.Reason,
	moves []consolidation.Move, now time.Time) error {
	objectByName := map[string]*corev1.Node{}
	for _, n := range s.objects.Nodes {
		objectByName[n.Name] = n
	}
	nodeByName, joinTime := nodestate.NodesByName(s.In.Snapshot), loop.MedianJoinTime(s.objects.Claims)
	for _, move := range moves {
		if !m.LaunchBackoff.Admit(move.PlannedNodes, now) {
			s.release(m.Lock, move.Nodes, nil)
			continue
		}
		var claims []*karpv1.NodeClaim
		var nodes []*corev1.Node
		for _, name := range move.Nodes {
			claim := m.newest.Of(s.Claims[nodeByName[name].Claim])
			claims = append(claims, claim)
			if node := objectByName[claim.Status.NodeName]; snapshot.IsNodeOf(claim, node) {
				nodes = append(nodes, node)
			}
		}
		mark := nodestate.MoveMark{
			ID:            nodestate.MoveID(claims, now),
			Reason:        reason,
			Started:       now.UTC(),
			Nodes:         len(claims),
			Claims:        len(move.PlannedNodes),
			Pods:          move.Pods,
			EvictionOrder: move.EvictionOrder,
		}
		if reason == disruption.Underutilized {
			mark.Saving, mark.PaybackSeconds = move.Saving.Dollars(), int64(math.Ceil(move.PaybackTime(joinTime).Seconds()))
		}
		m.logError(m.startMove(ctx, mark, claims, nodes,
			func(a map[string]string) error { return m.createReplacements(ctx, move.PlannedNodes, a) }, now))
	}
	return nil
}

// fingerprint returns a hash of the input of a scan: candidates, nodes, pods, prices and churn. Scans with equal
// fingerprints find the same moves.
func (s *DisruptionInput) fingerprint(nodes []string) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	add := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.WriteString(p)
			_ = h.WriteByte(0)
		}
	}
	add(nodes...)
	add(strconv.FormatBool(s.lowChurn), strconv.FormatBool(s.highChurn))
	for i := range s.In.Snapshot.Nodes {
		n := &s.In.Snapshot.Nodes[i]
		add(n.Name, strconv.FormatBool(n.Leaving), strconv.FormatBool(n.Initialized))
		for k := range n.Pods {
			add(n.Pods[k].UID)
		}
	}
	for i := range s.In.Snapshot.Pods {
		add(s.In.Snapshot.Pods[i].UID)
	}
	for _, class := range slices.Sorted(maps.Keys(s.market)) {
		add(class)
		for _, t := range s.market[class].Types {
			for _, o := range t.Offerings {
				add(o.Price.String(), strconv.FormatBool(o.Available))
			}
		}
	}
	return h.Sum64()
}

var fingerprintSeed = maphash.MakeSeed()

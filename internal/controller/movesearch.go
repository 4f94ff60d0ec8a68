package controller

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
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// searching is the state of the scans for moves.
type searching struct {
	next time.Time // the next scan is not before
	last uint64    // fingerprint of the input of the last scan
	full time.Time // time of the last scan that found nothing
	told string    // the last logged counts of nodes that stay

	steady consolidation.ChurnDetector

	blockers time.Time // when deadlocks were counted last
}

// scenery is one look at the cluster, with all that says who may go.
type scenery struct {
	in      disruption.Input
	market  catalog.Market
	objects kube.Objects
	claims  map[string]*karpv1.NodeClaim // by name
	flights []*flight
	pods    map[string][]*corev1.Pod // by Node; nil until needed
	// steady: no pod has come or gone for a while; restless: pods come and go all the time. See consolidation.ChurnDetector.
	steady, restless bool
}

// look begins moves: of nodes that have drifted, and of those whose pods cost less elsewhere.
func (m *Moves) look(ctx context.Context) error {
	now := m.Now.now()
	if now.Before(m.search.next) {
		return nil
	}
	m.search.next = now.Add(searchEvery)
	defer working(ctx, LoopSearch, "").End()
	if err := errors.Join(m.Travel.Recall(ctx, now), m.Holds.Recall(ctx)); err != nil {
		return err
	}
	s, err := m.scenery(ctx, now)
	if err == nil && s != nil {
		err = m.freshen(ctx, s, now)
	}
	if err != nil || s == nil {
		return err
	}
	return m.save(ctx, now)
}

// scenery reads all that a choice rests on; nil as long as it is not known what can be bought.
func (m *Moves) scenery(ctx context.Context, now time.Time) (*scenery, error) {
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
	snapshot.Pools = m.Holds.marked(snapshot.Pools, now)
	b := readBooks(objects, m.Pods, m.Pauses.Current(ctx, now), now)
	out := &scenery{market: market, objects: objects, claims: b.claims, in: disruption.Input{
		Snapshot: snapshot, Policies: b.policies, Records: b.records(snapshot), Drifted: map[string]string{}, Now: now,
	}}
	if len(snapshot.Pods) > 0 {
		out.in.Plan = m.Solve(snapshot, market)
	}
	out.flights = m.flights(objects)
	begunIn(out.in, out.flights, out.claims, m.Gate)
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		claim := b.claims[n.Claim]
		if claim == nil {
			continue
		}
		if c, ok := claim.StatusConditions().Find(karpv1.ConditionDrifted); ok && c.Status == "True" {
			out.in.Drifted[n.Name] = c.Reason
		}
		if h, ok := m.held[claim.UID]; ok && now.Before(h.until) {
			r := out.in.Records[n.Name]
			r.Held, r.HeldCause = h.until, h.cause
			out.in.Records[n.Name] = r
		}
	}
	return out, nil
}

// begunIn marks the nodes that are leaving already, and holds back their replacements.
func begunIn(in disruption.Input, flights []*flight, claims map[string]*karpv1.NodeClaim, gate *Gate) {
	going, made := map[string]bool{}, map[string]bool{}
	for _, f := range flights {
		for _, c := range f.leaving {
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
		r.Going = r.Going || going[n.Claim] || gate.going(claims[n.Claim].UID, in.Now)
		if made[n.Claim] {
			r.Held, r.HeldCause = in.Now.Add(searchEvery), "pods are on their way to it"
		}
		in.Records[n.Name] = r
	}
}

// settled returns those of the nodes whose pods may be moved again, and why the others stay. Together: all that are left will go.
func (m *Moves) settled(s *scenery, reason disruption.Reason, nodes []string, together bool) ([]string, []disruption.Stay) {
	if s.pods == nil {
		s.pods = podsByNode(s.objects)
	}
	stays := m.Travel.Stays(s.in, reason, nodes, travelScene{s.claims, s.pods}, together)
	stay := map[string]bool{}
	for _, one := range stays {
		stay[one.Node] = true
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool { return stay[name] }), stays
}

// countDeadlocks sets the metric of what blocks the draining of nodes until a user fixes it, at most every deadlocksEvery.
func (m *Moves) countDeadlocks(o kube.Objects, now time.Time) {
	if now.Sub(m.search.blockers) < deadlocksEvery {
		return
	}
	m.search.blockers = now
	for kind, n := range kube.Deadlocks(o.Blockers(now)) {
		m.Metrics.Deadlocks.WithLabelValues(string(kind)).Set(float64(n))
	}
}

// deadlocksEvery is how often deadlocks are counted.
const deadlocksEvery = time.Minute

// worthTheirPrice are the nodes that could have gone, and that none of the moves takes.
func worthTheirPrice(nodes []string, moves []consolidation.Move) []disruption.Stay {
	goes := nodesOfMoves(moves)
	var out []disruption.Stay
	for _, name := range nodes {
		if !goes[name] {
			out = append(out, disruption.Stay{Node: name, Cause: disruption.Worth})
		}
	}
	return out
}

// withRoom returns those of the nodes of whose pools one more may leave to save money, and why the others stay: nobody needs to
// look at what could not be begun.
func (s *scenery) withRoom(nodes []string, rooms []disruption.Room) (some []string, stays []disruption.Stay) {
	full, by := map[string]disruption.Room{}, nodesByName(s.in.Snapshot)
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

// save begins moves that save money. All nodes are looked at without holding anybody up; what is chosen is looked at again.
func (m *Moves) save(ctx context.Context, now time.Time) error {
	looked := time.Now()
	s, err := m.scenery(ctx, now)
	if err != nil || s == nil {
		return err
	}
	nodes, stays := disruption.Candidates(s.in, disruption.Underutilized)
	nodes, tired := m.settled(s, disruption.Underutilized, nodes, false)
	countEligible(m.Metrics, disruption.Underutilized, len(nodes))
	_, _, rooms := disruption.Grant(s.in, disruption.Underutilized, nil)
	countRooms(m.Metrics, rooms)
	nodes, full := s.withRoom(nodes, rooms)
	m.Staying.Note(staySaving, slices.Concat(stays, tired, full)...)
	m.complain(m.Staying.Write(ctx, s.in.Snapshot, s.claims, now))
	m.countDeadlocks(s.objects, now)
	m.search.steady.Observe(s.in.Snapshot, now)
	s.steady, s.restless = m.search.steady.IsLow(now), m.search.steady.IsHigh(now)
	mark := s.fingerprint(nodes)
	if slices.ContainsFunc(s.flights, func(f *flight) bool { return f.isInTurn(now) }) {
		return nil // nodes that leave now take away room that a move would count on; the recorded reasons to stay remain valid
	}
	if len(nodes) == 0 || mark == m.search.last && now.Sub(m.search.full) < searchLeast {
		countEvaluation(m.Metrics, disruption.Underutilized, kindMulti, looked)
		return nil
	}
	begun := time.Now()
	found := consolidation.Find(m.weighing(s, nodes))
	took := time.Since(begun)
	m.Metrics.Search.Observe(took.Seconds())
	m.search.next = now.Add(max(searchEvery, searchShare*took))
	m.search.last, m.search.full = mark, now
	countEvaluation(m.Metrics, disruption.Underutilized, kindMulti, looked)
	if found.Waits {
		return nil // the recorded reasons to stay remain valid
	}
	countWeighed(m.Metrics, s.in, found)
	m.tellStays(stays, nodes, found.Moves)
	m.Staying.Note(stayWorth, worthTheirPrice(nodes, found.Moves)...)
	m.Staying.Note(staySavingRoom)
	if len(found.Moves) == 0 {
		return nil
	}
	m.search.last = 0
	return m.choose(ctx, found.Moves)
}

// choose starts the moves that the budgets allow, if they are still valid.
func (m *Moves) choose(ctx context.Context, moves []consolidation.Move) error {
	now := m.Now.now()
	s, err := m.scenery(ctx, now)
	if err != nil || s == nil {
		return err
	}
	s.steady, s.restless = m.search.steady.IsLow(now), m.search.steady.IsHigh(now)
	nodes, granted := m.grantMoves(s, moves, now)
	var confirmed []consolidation.Move
	if len(granted) > 0 {
		confirmed = consolidation.Revalidate(m.weighing(s, nodes), granted).Moves
	}
	countInvalid(m.Metrics, moves, setOf(nodes), granted, confirmed)
	m.release(s, granted, confirmed)
	if len(confirmed) == 0 {
		m.holdBest(s, moves, setOf(granted), now)
	}
	return m.beginAll(ctx, s, disruption.Underutilized, confirmed, now)
}

// holdBest leaves the nodes of the best move alone for a while that were granted, where none was confirmed: the same would be found in each look, and nothing
// else.
func (m *Moves) holdBest(s *scenery, moves []consolidation.Move, granted map[string]bool, now time.Time) {
	by := nodesByName(s.in.Snapshot)
	for i := range moves {
		if slices.ContainsFunc(moves[i].Nodes, func(name string) bool { return !granted[name] }) {
			continue
		}
		var claims []*karpv1.NodeClaim
		for _, name := range moves[i].Nodes {
			claims = append(claims, s.claims[by[name].Claim])
		}
		m.hold(&flight{leaving: claims}, "what was found for it was not found when it was looked at again", now)
		return
	}
}

// grantMoves returns the nodes that may go, and those of the moves' that the budgets allow; nobody else gets their place.
func (m *Moves) grantMoves(s *scenery, moves []consolidation.Move, now time.Time) (nodes, granted []string) {
	m.Gate.enter()
	defer m.Gate.leave()
	begunIn(s.in, s.flights, s.claims, m.Gate)
	nodes, _ = disruption.Candidates(s.in, disruption.Underutilized)
	nodes, _ = m.settled(s, disruption.Underutilized, nodes, false)
	may := setOf(nodes)
	var wishes [][]string
	for _, move := range moves {
		if !slices.ContainsFunc(move.Nodes, func(n string) bool { return !may[n] }) {
			wishes = append(wishes, move.Nodes)
		}
	}
	var waiting, tired []disruption.Stay
	var rooms []disruption.Room
	granted, waiting, rooms = disruption.Grant(s.in, disruption.Underutilized, wishes)
	countRooms(m.Metrics, rooms)
	granted, tired = m.settled(s, disruption.Underutilized, granted, true)
	m.Staying.Note(staySavingRoom, slices.Concat(waiting, tired)...)
	m.reserve(s, granted)
	return nodes, granted
}

// reserve keeps others from choosing the nodes, or from using up what the budgets have granted to them. Only who has entered the gate may.
func (m *Moves) reserve(s *scenery, nodes []string) {
	by := nodesByName(s.in.Snapshot)
	for _, name := range nodes {
		m.Gate.reserve(s.claims[by[name].Claim].UID)
	}
}

// release gives back what was reserved for nodes that none of the moves takes.
func (m *Moves) release(s *scenery, nodes []string, moves []consolidation.Move) {
	goes := nodesOfMoves(moves)
	by := nodesByName(s.in.Snapshot)
	for _, name := range nodes {
		if !goes[name] {
			m.Gate.forget(s.claims[by[name].Claim].UID)
		}
	}
}

// weighing is what consolidation looks at.
func (m *Moves) weighing(s *scenery, nodes []string) consolidation.Input {
	out := consolidation.Input{
		Snapshot: disruption.WithoutVacant(s.in), Market: s.market, Nodes: map[string]consolidation.Candidate{}, Rules: map[string]consolidation.Rule{}, MaxRemovals: map[string]int{},
		SpotToSpot: m.SpotToSpot, Stale: s.stale(), LowChurn: s.steady, HighChurn: s.restless, OneAtATime: true,
	}
	by := nodesByName(s.in.Snapshot)
	for _, name := range nodes {
		n := by[name]
		price, _ := priceOfClaims(m.Types, []*karpv1.NodeClaim{s.claims[n.Claim]})
		out.Nodes[name] = consolidation.Candidate{Price: price, Cost: s.in.Records[name].Cost}
	}
	_, _, rooms := disruption.Grant(s.in, disruption.Underutilized, nil)
	for _, room := range rooms {
		out.MaxRemovals[room.Pool] = room.Nodes
	}
	for pool, p := range s.in.Policies {
		out.Rules[pool] = consolidation.Rule{LeastSaving: p.LeastSaving, LeastShare: p.LeastShare, LeastWorth: p.Method.LeastWorth()}
	}
	return out
}

// beginAll begins moves, one after the other, but those that would buy what is not bought now. An error ends only the move that it
// befell.
func (m *Moves) beginAll(ctx context.Context, s *scenery, reason disruption.Reason, moves []consolidation.Move, now time.Time) error {
	byName := map[string]*corev1.Node{}
	for _, n := range s.objects.Nodes {
		byName[n.Name] = n
	}
	by, usual := nodesByName(s.in.Snapshot), usualJoin(s.objects.Claims)
	for _, move := range moves {
		if !m.Holds.allows(move.Machines, now) {
			m.release(s, move.Nodes, nil)
			continue
		}
		var claims []*karpv1.NodeClaim
		var nodes []*corev1.Node
		for _, name := range move.Nodes {
			claim := m.newest.of(s.claims[by[name].Claim])
			claims = append(claims, claim)
			if node := byName[claim.Status.NodeName]; kube.IsNodeOf(claim, node) {
				nodes = append(nodes, node)
			}
		}
		mark := moveMark{
			ID: moveID(claims, now), Reason: reason, Begun: now.UTC(), Nodes: len(claims), Claims: len(move.Machines), Pods: move.Pods, Turns: move.EvictionOrder,
		}
		if reason == disruption.Underutilized {
			mark.Saving, mark.PaysBack = move.Saving.Dollars(), int64(math.Ceil(move.PaybackTime(usual).Seconds()))
		}
		m.complain(m.begin(ctx, mark, claims, nodes, func(a map[string]string) error { return m.buy(ctx, move.Machines, a) }, now))
	}
	return nil
}

// fingerprint changes when a look could find something else: other candidates, other pods on them, or other prices, or when it is worth looking closer.
func (s *scenery) fingerprint(nodes []string) uint64 {
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
	for i := range s.in.Snapshot.Nodes {
		n := &s.in.Snapshot.Nodes[i]
		text(n.Name, strconv.FormatBool(n.Leaving), strconv.FormatBool(n.Initialized))
		for k := range n.Pods {
			text(n.Pods[k].UID)
		}
	}
	for i := range s.in.Snapshot.Pods {
		text(s.in.Snapshot.Pods[i].UID)
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

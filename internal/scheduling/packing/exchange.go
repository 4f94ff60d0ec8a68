package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// exchanger exchanges pods between planned nodes so that one node after the other fits a cheaper
// offering.
//
// The free room on each well-filled node is too small for any pod. But a node that gives one pod
// away, for a pod that is slightly smaller, comes closer to the room of a cheaper offering, while
// the other node keeps its price. After a few exchanges, with several partners, it fits. A node
// that does not get there keeps what it gained: several small gaps have become one, and the next
// pass starts from it. No price ever rises.
type exchanger struct {
	filler
	nodes       []plannedNode // single copies, each with the cheapest offering that fits its pods
	fixed       []plannedNode // nodes that do not exchange pods
	movable     []bool        // by class
	hostRuleKey []int         // by class: classes of one number are equal for host rules
	nextPartner int           // index of the node where the search for a partner continues
}

const (
	maxPasses   = 6
	minPassGain = 0.001 // relative to the price: a pass must save this much for another one

	maxExchanges     = 8    // for one node in one pass
	enoughPartners   = 16   // partners to compare once one with an exchange was found
	maxPartners      = 512  // partners to compare in all
	minExchangeGain  = 0.05 // of the excess, for each exchange
	pairsPerStep     = 10   // comparing two pods takes that much less time than a step
	maxTargetOffers  = 24   // offerings that a node compares to find its target
	maxScannedOffers = 400  // of those, and others that do not fit its pods
	exchangeShare    = 0.25 // of the remaining steps of a plan
)

// exchangePods lets the nodes of an outcome exchange pods, and returns the new outcome.
func (pl *planner) exchangePods(o outcome, stepLimit int) outcome {
	if pl.q.daemonPods != nil {
		return o // another offering may have other DaemonSet pods
	}
	r := pl.newRun(o.strategy, o.left, o.budgets)
	t := &exchanger{filler: r.filler}
	t.refreshFacts()
	t.load(o.planned)
	for n := 0; n < maxPasses && t.steps < stepLimit; n++ {
		if t.pass(stepLimit) < minPassGain*o.price {
			break
		}
	}
	r.planned = t.collect()
	return r.outcome()
}

// load prepares the nodes. Nodes of reservations, and of NodePools with limits or minValues, do not
// exchange pods.
func (t *exchanger) load(nodes []plannedNode) {
	t.movable, t.hostRuleKey = make([]bool, len(t.q.classes)), make([]int, len(t.q.classes))
	numbers := map[[2]int]int{}
	for _, m := range nodes {
		for _, x := range m.allocations {
			if t.hostRuleKey[x.class] > 0 {
				continue
			}
			key := [2]int{t.q.classes[x.class].Profile, t.droppedWeight[x.class]}
			if numbers[key] == 0 {
				numbers[key] = len(numbers) + 1
			}
			t.hostRuleKey[x.class], t.movable[x.class] = numbers[key], t.isMovable(x.class)
		}
		if p := t.stock.PoolOf(m.offer); t.stock.Offers[m.offer].IsReserved() || t.stock.AsksVariety(m.offer) || !p.Budget.Unlimited() {
			t.fixed = append(t.fixed, m)
			continue
		}
		t.useCheapestOffer(&m)
		for range m.copies {
			one := m.clone()
			one.copies = 1
			t.nodes = append(t.nodes, one)
		}
	}
}

// isMovable reports whether pods of the class may change nodes: no affinity applies to them or
// selects them.
func (t *exchanger) isMovable(class int) bool {
	c := &t.q.classes[class]
	p := t.q.profile(c)
	isAffinity := func(r topology.Rule) bool { return r.Form == topology.Near }
	return c.members == nil && len(c.Ports) == 0 && !p.Follows() && !slices.ContainsFunc(p.Host, isAffinity) &&
		!slices.ContainsFunc(p.HostIn, func(g int) bool { return t.q.Book.Groups[g].Form == topology.Near })
}

// useCheapestOffer gives the node the cheapest offering that fits its pods.
func (t *exchanger) useCheapestOffer(m *plannedNode) {
	feasible := t.feasibleOffers(m)
	for _, o := range t.stock.VariantOf(m.offer).ByPrice {
		if feasible.Has(o) {
			copies := m.copies
			*m = t.nodeWith(o, m.allocations)
			m.copies, m.price = copies, float64(t.stock.Offers[o].Price)
			return
		}
	}
}

// collect returns the nodes, equal neighbors merged, without those that have no pods left.
func (t *exchanger) collect() []plannedNode {
	out := t.fixed
	for _, m := range t.nodes {
		if len(m.allocations) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].offer == m.offer && slices.Equal(out[last].allocations, m.allocations) {
			out[last].copies++
			continue
		}
		m.value = t.valueOf(&m)
		out = append(out, m)
	}
	return out
}

// exchangeTarget is a cheaper offering for a node.
type exchangeTarget struct {
	node, offer int
	excess      float64 // how far the requests exceed its room, per share of the price that it saves
}

// pass lets each node try to reach a cheaper offering, the smallest excess first. It returns the
// savings.
func (t *exchanger) pass(stepLimit int) float64 {
	var targets []exchangeTarget
	for i := range t.nodes {
		if target, ok := t.findTarget(i); ok {
			targets = append(targets, target)
		}
	}
	slices.SortStableFunc(targets, func(target, b exchangeTarget) int { return cmp.Compare(target.excess, b.excess) })
	saved := 0.0
	for _, target := range targets {
		if t.steps > stepLimit {
			break
		}
		before := t.nodes[target.node].price
		if current, ok := t.findTarget(target.node); ok { // the node may have exchanged pods since
			t.reachTarget(current)
		}
		saved += before - t.nodes[target.node].price
	}
	return saved
}

// findTarget returns the cheaper offering with the smallest excess per saving.
func (t *exchanger) findTarget(i int) (exchangeTarget, bool) {
	m := &t.nodes[i]
	used, ports, scale := m.used(t.planner), m.podPorts(t.q), t.stock.Room(m.offer)
	byPrice := t.stock.VariantOf(m.offer).ByPrice
	at, _ := slices.BinarySearchFunc(byPrice, m.price, func(o int, price float64) int { return cmp.Compare(float64(t.stock.Offers[o].Price), price) })
	best := exchangeTarget{node: i, offer: -1}
	for n, seen := at-1, 0; n >= max(at-maxScannedOffers, 0) && seen < maxTargetOffers; n-- {
		o := byPrice[n]
		t.steps++
		shape := t.stock.ShapeOf(o)
		if shape.Broken || t.q.Ports.ClashAny(shape.List, ports) ||
			slices.ContainsFunc(m.allocations, func(x allocation) bool { return !t.accepts.Sets[x.acceptSet].Has(o) }) {
			continue
		}
		seen++
		saved := 1 - float64(t.stock.Offers[o].Price)/m.price
		if need := overflow(used, shape.Room, scale) / saved; best.offer < 0 || need < best.excess {
			best.offer, best.excess = o, need
		}
	}
	return best, best.offer >= 0
}

// overflow returns by how much used exceeds room, in parts of scale.
func overflow(used, room, scale resources.Vector) float64 {
	sum := 0.0
	for r, n := range used {
		if over := n - room[r]; over > 0 {
			sum += float64(over) / float64(max(scale[r], 1))
		}
	}
	return sum
}

// reachTarget exchanges pods until the node fits the target offering or there is no partner left.
func (t *exchanger) reachTarget(target exchangeTarget) {
	m := &t.nodes[target.node]
	s := &exchangeSearch{exchanger: t, node: target.node, target: target.offer, targetRoom: t.stock.Room(target.offer), scale: t.stock.Room(m.offer), used: m.used(t.planner)}
	s.usedAfter = s.used.Clone()
	for n := 0; !s.used.Fits(s.targetRoom); n++ {
		best, ok := s.findExchange()
		if !ok || n == maxExchanges {
			return
		}
		t.apply(target.node, best)
		s.used = m.used(t.planner)
	}
	t.useCheapestOffer(m)
}

// apply carries out an exchange of the node.
func (t *exchanger) apply(node int, x exchange) {
	a, b := &t.nodes[node], &t.nodes[x.partner]
	t.movePod(x.give, a, b)
	if x.get >= 0 {
		t.movePod(x.get, b, a)
		if t.hostRuleKey[x.get] == t.hostRuleKey[x.give] {
			return
		}
	}
	a.host, b.host = t.tallyWithout(a, -1), t.tallyWithout(b, -1)
}

// movePod moves a pod from one node to another. It does not update host.
func (t *exchanger) movePod(class int, from, to *plannedNode) {
	i := slices.IndexFunc(from.allocations, func(x allocation) bool { return x.class == class })
	k := slices.IndexFunc(to.allocations, func(x allocation) bool { return x.class == class })
	if k < 0 {
		k = len(to.allocations)
		to.allocations = append(to.allocations, allocation{class: class, acceptSet: from.allocations[i].acceptSet})
	}
	to.allocations[k].n++
	if from.allocations[i].n--; from.allocations[i].n == 0 {
		from.allocations = slices.Delete(from.allocations, i, i+1)
	}
	ask := t.q.classes[class].Ask
	from.free.Take(ask, -1)
	to.free.Take(ask, 1)
}

// tallyWithout returns the host counts of the node's pods, without one unit of a class.
func (t *exchanger) tallyWithout(m *plannedNode, without int) topology.Tally {
	var out topology.Tally
	for _, x := range m.allocations {
		n := x.n
		if x.class == without {
			n--
		}
		if n > 0 {
			t.addToTally(&out, &t.q.classes[x.class], n)
		}
	}
	return out
}

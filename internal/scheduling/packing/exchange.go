package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// exchanger exchanges pods between planned nodes so that one node after the other fits a cheaper
// offering.
//
// The free room on each well-filled node is too small for any pod. But a node can exchange a pod for a slightly smaller
// pod of another node, the partner. The requests on the node then come closer to the room of a cheaper offering, while
// the partner stays on its offering. After a few exchanges, with several partners, the node fits the cheaper offering.
// If the node still does not fit, the exchanges are kept: they combined several small gaps into one, and the next pass
// starts from there. No exchange raises a price.
type exchanger struct {
	filler     filler
	problem    *pending.Problem
	queue      *pending.Queue
	nodeOffers *nodeOffers
	work       *work

	nodes       []plannedNode // single copies, each with the cheapest offering that fits its pods
	fixed       []plannedNode // nodes that do not exchange pods
	movable     []bool        // by class: see isMovable
	hostRuleKey []int         // by class: host rules do not distinguish classes with the same key; 0 if not computed
	nextPartner int           // index of the node where the search for a partner continues
}

const (
	maxPasses   = 6
	minPassGain = 0.001 // another pass follows only if a pass saves this share of the plan's price

	maxExchanges     = 8    // for one node in one pass
	enoughPartners   = 16   // after this many compared partners, the search stops if it has found an exchange
	maxPartners      = 512  // after this many compared partners, the search stops in any case
	minExchangeGain  = 0.05 // an exchange must reduce the excess over the target's room by at least this share
	pairsPerStep     = 10   // comparisons of two pods that take as long as one step
	maxTargetOffers  = 24   // cheaper offerings that findTarget compares for one node
	maxScannedOffers = 400  // cheaper offerings that findTarget visits for one node, accepted by its pods or not
	exchangeShare    = 0.25 // share of the steps up to nodeChooser.stepLimit that exchanges may use
)

// exchangePods lets the nodes of an outcome exchange pods, and returns the new outcome. It starts no further pass or
// node after stepLimit steps.
func (nc nodeChooser) exchangePods(o outcome, stepLimit int) outcome {
	if nc.queue.DaemonPods != nil {
		return o // a cheaper offering may have other DaemonSet pods, and exchanges do not check how these affect rules
	}
	run := nc.newRun(o.strategy, o.left, o.remaining)
	ex := &exchanger{filler: run.filler, problem: nc.problem, queue: nc.queue, nodeOffers: nc.sol.nodeOffers, work: nc.work}
	ex.filler.facts.refreshFacts()
	ex.load(o.planned)
	for n := 0; n < maxPasses && ex.work.steps < stepLimit; n++ {
		if ex.pass(stepLimit) < minPassGain*o.price {
			break
		}
	}
	run.planned = ex.collect()
	return run.outcome()
}

// load prepares the nodes. Nodes of reservations, and of NodePools with limits or minValues, do not
// exchange pods.
func (ex *exchanger) load(nodes []plannedNode) {
	ex.movable, ex.hostRuleKey = make([]bool, len(ex.queue.Classes)), make([]int, len(ex.queue.Classes))
	keys := map[[2]int]int{} // by profile and dropped weight: the hostRuleKey
	for _, pn := range nodes {
		for _, x := range pn.allocations {
			if ex.hostRuleKey[x.class] > 0 {
				continue
			}
			rules := [2]int{ex.queue.Classes[x.class].Profile, ex.queue.DroppedWeight[x.class]}
			if keys[rules] == 0 {
				keys[rules] = len(keys) + 1
			}
			ex.hostRuleKey[x.class], ex.movable[x.class] = keys[rules], ex.isMovable(x.class)
		}
		if p := ex.problem.Stock.PoolOf(pn.offer); ex.problem.Stock.Offers[pn.offer].IsReserved() ||
			ex.problem.Stock.HasMinValues(pn.offer) || !p.Remaining.Unlimited() {
			ex.fixed = append(ex.fixed, pn)
			continue
		}
		ex.useCheapestOffer(&pn)
		for range pn.copies {
			single := pn.clone()
			single.copies = 1
			ex.nodes = append(ex.nodes, single)
		}
	}
}

// isMovable reports whether pods of the class may change nodes. Such pods are in no bundle and have no host ports, and
// no host affinity applies to them or selects them.
func (ex *exchanger) isMovable(class int) bool {
	c := &ex.queue.Classes[class]
	p := ex.queue.Profile(c)
	isAffinity := func(r topology.Rule) bool { return r.Kind == topology.Affinity }
	return c.Members == nil && len(c.Ports) == 0 && !p.HasRequiredHostAffinity() && !slices.ContainsFunc(p.Host, isAffinity) &&
		!slices.ContainsFunc(p.HostIn, func(g int) bool { return ex.queue.Pods.Topology.Groups[g].Kind == topology.Affinity })
}

// useCheapestOffer gives the node the cheapest offering that fits its pods.
func (ex *exchanger) useCheapestOffer(pn *plannedNode) {
	feasible := ex.nodeOffers.feasibleOffers(pn)
	for _, o := range ex.problem.Stock.VariantOf(pn.offer).ByPrice {
		if feasible.Has(o) {
			copies := pn.copies
			*pn = ex.nodeOffers.nodeWith(o, pn.allocations)
			pn.copies, pn.price = copies, float64(ex.problem.Stock.Offers[o].Price)
			return
		}
	}
}

// collect returns all nodes, fixed nodes first, without the nodes that have no pods left. It merges adjacent equal
// nodes.
func (ex *exchanger) collect() []plannedNode {
	out := ex.fixed
	for _, pn := range ex.nodes {
		if len(pn.allocations) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].offer == pn.offer && slices.Equal(out[last].allocations, pn.allocations) {
			out[last].copies++
			continue
		}
		pn.value = ex.filler.prices.valueOf(&pn)
		out = append(out, pn)
	}
	return out
}

type exchangeTarget struct {
	node, offer     int     // index in exchanger.nodes, and number of the offering
	excessPerSaving float64 // excess of the node's requests over the offering's room, divided by the saved share of the price
}

// pass tries to reach a cheaper offering for each node, smallest excess per saving first. It returns by how much it
// lowered the price of the plan.
func (ex *exchanger) pass(stepLimit int) float64 {
	var targets []exchangeTarget
	for i := range ex.nodes {
		if target, ok := ex.findTarget(i); ok {
			targets = append(targets, target)
		}
	}
	slices.SortStableFunc(targets, func(a, b exchangeTarget) int { return cmp.Compare(a.excessPerSaving, b.excessPerSaving) })
	saved := 0.0
	for _, target := range targets {
		if ex.work.steps > stepLimit {
			break
		}
		before := ex.nodes[target.node].price
		if current, ok := ex.findTarget(target.node); ok { // the node may have exchanged pods after targets was computed
			ex.reachTarget(current)
		}
		saved += before - ex.nodes[target.node].price
	}
	return saved
}

// findTarget returns the cheaper offering with the smallest excess per saving for the i-th node. It reports false if
// no cheaper offering is accepted by all pods of the node.
func (ex *exchanger) findTarget(i int) (exchangeTarget, bool) {
	pn := &ex.nodes[i]
	used, ports, scale := ex.nodeOffers.used(pn), pn.podPorts(ex.queue), ex.problem.Stock.Room(pn.offer)
	byPrice := ex.problem.Stock.VariantOf(pn.offer).ByPrice
	at, _ := slices.BinarySearchFunc(byPrice, pn.price,
		func(o int, price float64) int { return cmp.Compare(float64(ex.problem.Stock.Offers[o].Price), price) })
	best := exchangeTarget{node: i, offer: -1}
	for n, compared := at-1, 0; n >= max(at-maxScannedOffers, 0) && compared < maxTargetOffers; n-- {
		o := byPrice[n]
		ex.work.steps++
		shape := ex.problem.Stock.ShapeOf(o)
		if shape.IsTooSmall || ex.queue.Pods.Ports.ConflictAny(shape.PortList, ports) ||
			slices.ContainsFunc(pn.allocations, func(x allocation) bool { return !ex.problem.Accepts.Sets[x.acceptSet].Has(o) }) {
			continue
		}
		compared++
		savedShare := 1 - float64(ex.problem.Stock.Offers[o].Price)/pn.price
		if x := overflow(used, shape.Room, scale) / savedShare; best.offer < 0 || x < best.excessPerSaving {
			best.offer, best.excessPerSaving = o, x
		}
	}
	return best, best.offer >= 0
}

// overflow returns the excess of used over room: for each resource the exceeding amount divided by scale, in total.
func overflow(used, room, scale resources.Vector) float64 {
	sum := 0.0
	for r, n := range used {
		if over := n - room[r]; over > 0 {
			sum += float64(over) / float64(max(scale[r], 1))
		}
	}
	return sum
}

// reachTarget exchanges pods until the node fits the target offering, no exchange is left, or maxExchanges are made.
// It changes the offering only if the node fits the target.
func (ex *exchanger) reachTarget(target exchangeTarget) {
	pn := &ex.nodes[target.node]
	es := &exchangeSearch{
		exchanger:  ex,
		problem:    ex.problem,
		queue:      ex.queue,
		facts:      ex.filler.facts,
		work:       ex.work,
		node:       target.node,
		target:     target.offer,
		targetRoom: ex.problem.Stock.Room(target.offer),
		scale:      ex.problem.Stock.Room(pn.offer),
		used:       ex.nodeOffers.used(pn)}
	es.usedAfter = es.used.Clone()
	for n := 0; !es.used.Fits(es.targetRoom); n++ {
		best, ok := es.findExchange()
		if !ok || n == maxExchanges {
			return
		}
		ex.apply(target.node, best)
		es.used = ex.nodeOffers.used(pn)
	}
	ex.useCheapestOffer(pn)
}

func (ex *exchanger) apply(node int, x exchange) {
	a, b := &ex.nodes[node], &ex.nodes[x.partner]
	ex.movePod(x.give, a, b)
	if x.get >= 0 {
		ex.movePod(x.get, b, a)
		if ex.hostRuleKey[x.get] == ex.hostRuleKey[x.give] {
			return // the host counts stay the same
		}
	}
	a.host, b.host = ex.hostCountsWithout(a, -1), ex.hostCountsWithout(b, -1)
}

// movePod moves a pod of the class from one node to another. It does not update plannedNode.host.
func (ex *exchanger) movePod(class int, from, to *plannedNode) {
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
	ask := ex.queue.Classes[class].Ask
	from.free.SubtractTimes(ask, -1)
	to.free.SubtractTimes(ask, 1)
}

// hostCountsWithout returns the host counts of the node's pods, without one unit of the given class; -1 for all pods.
func (ex *exchanger) hostCountsWithout(pn *plannedNode, without int) topology.HostCounts {
	var out topology.HostCounts
	for _, x := range pn.allocations {
		n := x.n
		if x.class == without {
			n--
		}
		if n > 0 {
			ex.queue.AddToHostCounts(&out, &ex.queue.Classes[x.class], n)
		}
	}
	return out
}

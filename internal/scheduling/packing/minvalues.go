package packing

import "slices"

// keepsMinValuesWith reports whether the node with n more units of the class satisfies its
// NodePool's minValues.
func (f *filler) keepsMinValuesWith(pn *plannedNode, class, n int) bool {
	if !f.problem.Stock.HasMinValues(pn.offer) {
		return true
	}
	more := *pn
	more.allocations = append(slices.Clone(pn.allocations), allocation{class: class, n: n, acceptSet: f.queue.CurrentSet(class)})
	return f.sol.nodeOffers.keepsMinValues(&more)
}

// keepsMinValues reports whether the node's launch choices satisfy the minValues of its NodePool.
func (offers *nodeOffers) keepsMinValues(pn *plannedNode) bool {
	_, isMissing := offers.missingMinValue(pn)
	return !isMissing
}

// missingMinValue returns the first of the minValues that the node's launch choices violate; false if there is none.
// If minValues are relaxable, the node needs at most as many values as each of its pods would have alone on a node.
func (offers *nodeOffers) missingMinValue(pn *plannedNode) (Relaxation, bool) {
	if !offers.problem.Stock.HasMinValues(pn.offer) {
		return Relaxation{}, false
	}
	p := offers.problem.Stock.PoolOf(pn.offer)
	have := offers.distinctValues(pn)
	for i, l := range p.MinValues {
		asked := l.N
		for _, a := range pn.allocations {
			if have[i] < asked && p.RelaxesMinValues {
				asked = min(asked, offers.distinctValuesAlone(pn.offer, a)[i])
			}
		}
		if have[i] < asked {
			return Relaxation{Key: l.Key, Asked: l.N, Have: have[i]}, true
		}
	}
	return Relaxation{}, false
}

// distinctValues returns, for each of the NodePool's minValues, how many different values the node's
// launch choices have. If the NodePool has limits, only choices that a tight limit allows are counted.
func (offers *nodeOffers) distinctValues(pn *plannedNode) []int {
	p := offers.problem.Stock.PoolOf(pn.offer)
	return p.DistinctValues(offers.launchChoices(pn, !p.Remaining.Unlimited()))
}

// distinctValuesAlone returns the distinctValues of a node that has the offering and only one unit of the allocation's
// class.
func (offers *nodeOffers) distinctValuesAlone(offer int, a allocation) []int {
	key := aloneKey{model: offers.problem.Stock.Offers[offer].Model, class: a.class, set: a.acceptSet}
	out, ok := offers.aloneValues[key]
	if !ok {
		a.n = 1
		out = offers.distinctValues(&plannedNode{offer: offer, allocations: []allocation{a}})
		offers.aloneValues[key] = out
	}
	return out
}

type aloneKey struct{ model, class, set int }

// relaxations returns the minValues that these launch choices violate. There must be at least one choice.
func (offers *nodeOffers) relaxations(choices []int) []Relaxation {
	p := offers.problem.Stock.PoolOf(choices[0])
	if !offers.problem.Stock.HasMinValues(choices[0]) {
		return nil
	}
	var out []Relaxation
	for i, have := range p.DistinctValues(choices) {
		if l := &p.MinValues[i]; have < l.N {
			out = append(out, Relaxation{Key: l.Key, Asked: l.N, Have: have})
		}
	}
	return out
}

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
func (no *nodeOffers) keepsMinValues(pn *plannedNode) bool {
	_, lacks := no.missingMinValue(pn)
	return !lacks
}

// missingMinValue returns the first of the minValues that the node's launch choices violate; false if there is none.
// If minValues are relaxable, the node needs only as many values as each of its pods could keep alone on a node.
func (no *nodeOffers) missingMinValue(pn *plannedNode) (Relaxation, bool) {
	if !no.problem.Stock.HasMinValues(pn.offer) {
		return Relaxation{}, false
	}
	p := no.problem.Stock.PoolOf(pn.offer)
	have := no.distinctValues(pn)
	for i, l := range p.MinValues {
		asked := l.N
		for _, a := range pn.allocations {
			if have[i] < asked && p.Relaxable {
				asked = min(asked, no.distinctValuesAlone(pn.offer, a)[i])
			}
		}
		if have[i] < asked {
			return Relaxation{Key: l.Key, Asked: l.N, Have: have[i]}, true
		}
	}
	return Relaxation{}, false
}

// distinctValues returns, for each of the NodePool's minValues, how many values the node's launch
// choices have. If the NodePool has limits, only choices that a tight limit allows are counted.
func (no *nodeOffers) distinctValues(pn *plannedNode) []int {
	p := no.problem.Stock.PoolOf(pn.offer)
	return p.DistinctValues(no.launchChoices(pn, !p.Remaining.Unlimited()))
}

// distinctValuesAlone is distinctValues for a node of the offering with one unit of the allocation's class.
func (no *nodeOffers) distinctValuesAlone(offer int, a allocation) []int {
	key := aloneKey{model: no.problem.Stock.Offers[offer].Model, class: a.class, set: a.acceptSet}
	out, ok := no.aloneValues[key]
	if !ok {
		a.n = 1
		out = no.distinctValues(&plannedNode{offer: offer, allocations: []allocation{a}})
		no.aloneValues[key] = out
	}
	return out
}

// aloneKey is a node with one unit of a class, as a cache key.
type aloneKey struct{ model, class, set int }

// relaxations returns the minValues that these launch choices violate. The choices are not empty.
func (no *nodeOffers) relaxations(choices []int) []Relaxation {
	p := no.problem.Stock.PoolOf(choices[0])
	if !no.problem.Stock.HasMinValues(choices[0]) {
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

package packing

import "slices"

// keepsMinValuesWith reports whether the node with n more units of the class satisfies its
// NodePool's minValues.
func (f *filler) keepsMinValuesWith(pn *plannedNode, class, n int) bool {
	if !f.stock.AsksVariety(pn.offer) {
		return true
	}
	more := *pn
	more.allocations = append(slices.Clone(pn.allocations), allocation{class: class, n: n, acceptSet: f.currentSet(class)})
	return f.keepsMinValues(&more)
}

// keepsMinValues reports whether the node's launch choices satisfy the minValues of its NodePool.
func (pl *planner) keepsMinValues(pn *plannedNode) bool {
	_, lacks := pl.missingMinValue(pn)
	return !lacks
}

// missingMinValue returns the first of the minValues that the node's launch choices violate. Where
// minValues are relaxable, a node must keep as many values as each of its pods would alone.
func (pl *planner) missingMinValue(pn *plannedNode) (Relaxation, bool) {
	if !pl.stock.AsksVariety(pn.offer) {
		return Relaxation{}, false
	}
	p := pl.stock.PoolOf(pn.offer)
	have := pl.distinctValues(pn)
	for i, l := range p.Least {
		asked := l.N
		for _, a := range pn.allocations {
			if have[i] < asked && p.Relaxable {
				asked = min(asked, pl.distinctValuesAlone(pn.offer, a)[i])
			}
		}
		if have[i] < asked {
			return Relaxation{Key: l.Key, Asked: l.N, Have: have[i]}, true
		}
	}
	return Relaxation{}, false
}

// distinctValues returns, for each of the NodePool's minValues, how many values the node's launch
// choices have. If the NodePool has limits, only the choices count that a tight limit leaves.
func (pl *planner) distinctValues(pn *plannedNode) []int {
	p := pl.stock.PoolOf(pn.offer)
	return p.Varieties(pl.launchChoices(pn, !p.Budget.Unlimited()))
}

// distinctValuesAlone is distinctValues for a node with one unit of the class.
func (pl *planner) distinctValuesAlone(offer int, a allocation) []int {
	key := aloneKey{model: pl.stock.Offers[offer].Model, class: a.class, set: a.acceptSet}
	out, ok := pl.aloneValues[key]
	if !ok {
		a.n = 1
		out = pl.distinctValues(&plannedNode{offer: offer, allocations: []allocation{a}})
		pl.aloneValues[key] = out
	}
	return out
}

// aloneKey is a node with one unit of a class, as a cache key.
type aloneKey struct{ model, class, set int }

// relaxations returns the minValues that these launch choices violate.
func (pl *planner) relaxations(choices []int) []Relaxation {
	p := pl.stock.PoolOf(choices[0])
	if !pl.stock.AsksVariety(choices[0]) {
		return nil
	}
	var out []Relaxation
	for i, have := range p.Varieties(choices) {
		if l := &p.Least[i]; have < l.N {
			out = append(out, Relaxation{Key: l.Key, Asked: l.N, Have: have})
		}
	}
	return out
}

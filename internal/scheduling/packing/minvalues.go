package packing

import "slices"

// keepsMinValuesWith reports whether the node with n more units of the class satisfies its
// NodePool's minValues.
func (f *filler) keepsMinValuesWith(m *plannedNode, class, n int) bool {
	if !f.stock.AsksVariety(m.offer) {
		return true
	}
	more := *m
	more.allocations = append(slices.Clone(m.allocations), allocation{class: class, n: n, acceptSet: f.currentSet(class)})
	return f.keepsMinValues(&more)
}

// keepsMinValues reports whether the node's launch choices satisfy the minValues of its NodePool.
func (pl *planner) keepsMinValues(m *plannedNode) bool {
	_, lacks := pl.missingMinValue(m)
	return !lacks
}

// missingMinValue returns the first of the minValues that the node's launch choices violate. Where
// minValues are relaxable, a node must keep as many values as each of its pods would alone.
func (pl *planner) missingMinValue(m *plannedNode) (Relaxation, bool) {
	if !pl.stock.AsksVariety(m.offer) {
		return Relaxation{}, false
	}
	p := pl.stock.PoolOf(m.offer)
	have := pl.distinctValues(m)
	for i, l := range p.Least {
		asked := l.N
		for _, a := range m.allocations {
			if have[i] < asked && p.Relaxable {
				asked = min(asked, pl.distinctValuesAlone(m.offer, a)[i])
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
func (pl *planner) distinctValues(m *plannedNode) []int {
	p := pl.stock.PoolOf(m.offer)
	return p.Varieties(pl.launchChoices(m, !p.Budget.Unlimited()))
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

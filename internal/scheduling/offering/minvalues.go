package offering

import "github.com/joiner-sh/joiner/internal/model/bitset"

// MinValue is the minValues of a requirement: the offerings of a NodeClaim must have at least N different values of the
// label Key.
type MinValue struct {
	Key string
	N   int

	valueNumbers []int32 // by offer minus Pool.from: number of its value; -1: none
}

func (st *Stock) numberValues(p *Pool) {
	for i := range p.MinValues {
		l := &p.MinValues[i]
		l.valueNumbers = make([]int32, p.to-p.from)
		for k := range l.valueNumbers {
			l.valueNumbers[k] = -1
		}
		for k, set := range st.Labels.Column(l.Key).Sets {
			set.Each(func(o int) {
				if o >= p.from && o < p.to {
					l.valueNumbers[o-p.from] = int32(k)
				}
			})
		}
	}
}

// HasMinValues reports whether minValues apply to a node of the offer. They do not apply to an offer of
// a capacity reservation, because no other offer can replace it.
func (st *Stock) HasMinValues(offer int) bool {
	return len(st.PoolOf(offer).MinValues) > 0 && !st.Offers[offer].IsReserved()
}

// DistinctValues returns, for each of the pool's minValues, how many different values the given offers of the pool
// have.
func (p *Pool) DistinctValues(offers []int) []int {
	out := make([]int, len(p.MinValues))
	if len(out) == 0 {
		return out
	}
	among := bitset.New(p.to)
	for _, o := range offers {
		among.Add(o)
	}
	for i := range p.MinValues {
		out[i] = p.MinValues[i].values(among, p)
	}
	return out
}

// unmetKey returns the first key whose minValues these offers do not meet, or "".
func (p *Pool) unmetKey(offers bitset.Set) string {
	for _, l := range p.MinValues {
		if l.values(offers, p) < l.N {
			return l.Key
		}
	}
	return ""
}

// values returns how many different values of the label these offers of the pool have.
func (l *MinValue) values(offers bitset.Set, p *Pool) int {
	seen := map[int32]bool{}
	for o := p.from; o < p.to; o++ {
		if offers.Has(o) && l.valueNumbers[o-p.from] >= 0 {
			seen[l.valueNumbers[o-p.from]] = true
		}
	}
	return len(seen)
}

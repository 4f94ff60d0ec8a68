package offering

import "github.com/joiner-sh/joiner/internal/model/bitset"

// MinValue is the demand that the offerings of a machine have that many
// different values of a label.
type MinValue struct {
	Key  string
	N    int
	kind []int32 // by offer less pool.from: which value, -1 for none
}

// count numbers the values of the labels that have minValues.
func (st *Stock) count(p *Pool) {
	for i := range p.Least {
		l := &p.Least[i]
		l.kind = make([]int32, p.to-p.from)
		for k := range l.kind {
			l.kind[k] = -1
		}
		for k, set := range st.Labels.Of(l.Key).Sets {
			set.Each(func(o int) {
				if o >= p.from && o < p.to {
					l.kind[o-p.from] = int32(k)
				}
			})
		}
	}
}

// AsksVariety reports whether a machine of the offer must keep others to choose
// from. An instance of a capacity reservation is there for certain; nothing else is bought for it.
func (st *Stock) AsksVariety(offer int) bool {
	return len(st.PoolOf(offer).Least) > 0 && !st.Offers[offer].IsReserved()
}

// Varieties returns, for each of the pool's minValues, how many different values these of its offers have.
func (p *Pool) Varieties(offers []int) []int {
	out := make([]int, len(p.Least))
	if len(out) == 0 {
		return out
	}
	among := bitset.New(p.to)
	for _, o := range offers {
		among.Add(o)
	}
	for i := range p.Least {
		out[i] = p.Least[i].values(among, p)
	}
	return out
}

// missing returns the first key of which these offers have too few values, or "".
func (p *Pool) missing(offers bitset.Set) string {
	for _, l := range p.Least {
		if l.values(offers, p) < l.N {
			return l.Key
		}
	}
	return ""
}

// values returns how many different values these offers have.
func (l *MinValue) values(offers bitset.Set, p *Pool) int {
	seen := map[int32]bool{}
	for o := p.from; o < p.to; o++ {
		if offers.Has(o) && l.kind[o-p.from] >= 0 {
			seen[l.kind[o-p.from]] = true
		}
	}
	return len(seen)
}

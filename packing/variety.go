package packing

import (
	"slices"
)

// minValue is the demand that the offerings of a machine have that many
// different values of a label.
type minValue struct {
	key  string
	n    int
	kind []int32 // by offer less pool.from: which value, -1 for none
}

// count numbers the values of the labels that have minValues.
func (st *stock) count(p *pool) {
	for i := range p.least {
		l := &p.least[i]
		l.kind = make([]int32, p.to-p.from)
		for k := range l.kind {
			l.kind[k] = -1
		}
		for k, set := range st.labels.of(l.key).sets {
			set.each(func(o int) {
				if o >= p.from && o < p.to {
					l.kind[o-p.from] = int32(k)
				}
			})
		}
	}
}

// asksVariety reports whether a machine of the offer must keep others to choose
// from. An instance of a capacity reservation is there for certain; nothing else is bought for it.
func (st *stock) asksVariety(offer int) bool {
	return len(st.poolOf(offer).least) > 0 && !st.offers[offer].isReserved()
}

// diverse reports whether the machine with n more pods of the class would still
// have as many different offers as its pool's minValues ask for.
func (f *filler) diverse(m *machine, class, n int) bool {
	if !f.st.asksVariety(m.offer) {
		return true
	}
	more := *m
	more.takes = append(slices.Clone(m.takes), take{class: class, n: n, set: f.set(class)})
	return f.tooFew(&more) == ""
}

// tooFew returns the key with minValues of which the machine's choices have too
// few values, or "".
func (w *work) tooFew(m *machine) string {
	lack, _ := w.lack(m)
	return lack.Key
}

// lack returns the first of the minValues that the machine's choices do not
// keep. Where minValues may give way, a machine must keep as much of them as each of its pods would alone.
func (w *work) lack(m *machine) (Relaxation, bool) {
	if !w.st.asksVariety(m.offer) {
		return Relaxation{}, false
	}
	p := w.st.poolOf(m.offer)
	have := w.varieties(m)
	for i, l := range p.least {
		asked := l.n
		for _, t := range m.takes {
			if have[i] < asked && p.Relaxable {
				asked = min(asked, w.varietyAlone(m.offer, t)[i])
			}
		}
		if have[i] < asked {
			return Relaxation{Key: l.key, Asked: l.n, Have: have[i]}, true
		}
	}
	return Relaxation{}, false
}

// varieties returns, for each of the pool's minValues, how many values the
// machine's choices have. Where the pool has limits it reckons with the choices that
// a tight limit leaves.
func (w *work) varieties(m *machine) []int {
	offers := newBitset(len(w.st.offers))
	p := w.st.poolOf(m.offer)
	for _, o := range w.candidates(m, !p.budget.unlimited()) {
		offers.set(o)
	}
	out := make([]int, len(p.least))
	for i := range p.least {
		out[i] = p.least[i].values(offers, p)
	}
	return out
}

// varietyAlone is varieties for a machine with one unit of the class.
func (w *work) varietyAlone(offer int, t take) []int {
	key := lone{model: w.st.offers[offer].model, class: t.class, set: t.set}
	out, ok := w.alone[key]
	if !ok {
		t.n = 1
		out = w.varieties(&machine{offer: offer, takes: []take{t}})
		w.alone[key] = out
	}
	return out
}

// lone names a machine with one unit of a class.
type lone struct{ model, class, set int }

// missing returns the first key of which these offers have too few values, or "".
func (p *pool) missing(offers bitset) string {
	for _, l := range p.least {
		if l.values(offers, p) < l.n {
			return l.key
		}
	}
	return ""
}

// values returns how many different values these offers have.
func (l *minValue) values(offers bitset, p *pool) int {
	seen := map[int32]bool{}
	for o := p.from; o < p.to; o++ {
		if offers.has(o) && l.kind[o-p.from] >= 0 {
			seen[l.kind[o-p.from]] = true
		}
	}
	return len(seen)
}

// relaxations are the minValues of which the choices of a machine have fewer values.
func (w *work) relaxations(choices []int) []Relaxation {
	p := w.st.poolOf(choices[0])
	if !w.st.asksVariety(choices[0]) {
		return nil
	}
	offers := newBitset(len(w.st.offers))
	for _, o := range choices {
		offers.set(o)
	}
	var out []Relaxation
	for i := range p.least {
		l := &p.least[i]
		if have := l.values(offers, p); have < l.n {
			out = append(out, Relaxation{Key: l.key, Asked: l.n, Have: have})
		}
	}
	return out
}

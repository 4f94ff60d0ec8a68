package packing

import "slices"

// diverse reports whether the machine with n more pods of the class would still
// have as many different offers as its pool's minValues ask for.
func (f *filler) diverse(m *machine, class, n int) bool {
	if !f.st.AsksVariety(m.offer) {
		return true
	}
	more := *m
	more.takes = append(slices.Clone(m.takes), take{class: class, n: n, set: f.set(class)})
	return f.isDiverse(&more)
}

// isDiverse reports whether the machine's choices keep the minValues of its pool.
func (w *work) isDiverse(m *machine) bool {
	_, lacks := w.lack(m)
	return !lacks
}

// lack returns the first of the minValues that the machine's choices do not
// keep. Where minValues may give way, a machine must keep as much of them as each of its pods would alone.
func (w *work) lack(m *machine) (Relaxation, bool) {
	if !w.st.AsksVariety(m.offer) {
		return Relaxation{}, false
	}
	p := w.st.PoolOf(m.offer)
	have := w.varieties(m)
	for i, l := range p.Least {
		asked := l.N
		for _, t := range m.takes {
			if have[i] < asked && p.Relaxable {
				asked = min(asked, w.varietyAlone(m.offer, t)[i])
			}
		}
		if have[i] < asked {
			return Relaxation{Key: l.Key, Asked: l.N, Have: have[i]}, true
		}
	}
	return Relaxation{}, false
}

// varieties returns, for each of the pool's minValues, how many values the
// machine's choices have. Where the pool has limits it reckons with the choices that
// a tight limit leaves.
func (w *work) varieties(m *machine) []int {
	p := w.st.PoolOf(m.offer)
	return p.Varieties(w.candidates(m, !p.Budget.Unlimited()))
}

// varietyAlone is varieties for a machine with one unit of the class.
func (w *work) varietyAlone(offer int, t take) []int {
	key := lone{model: w.st.Offers[offer].Model, class: t.class, set: t.set}
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

// relaxations are the minValues of which the choices of a machine have fewer values.
func (w *work) relaxations(choices []int) []Relaxation {
	p := w.st.PoolOf(choices[0])
	if !w.st.AsksVariety(choices[0]) {
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

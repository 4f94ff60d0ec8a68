package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/cluster"
)

// survivors returns the offers that could each host all pods of the machine:
// those of its variant that every class accepts and that have the room.
func (w *work) survivors(m *machine) bitset {
	used, ports, v := m.used(w), m.podPorts(w.q), w.st.variantOf(m.offer)
	out := newBitset(len(w.st.offers))
	if v.from == v.to {
		return out
	}
	out.setRange(w.st.models[v.from].from, w.st.models[v.to-1].to)
	for i, t := range m.takes {
		if i == 0 || t.set != m.takes[i-1].set {
			out.and(w.accepts.sets[t.set])
		}
	}
	for _, model := range w.st.models[v.from:v.to] {
		last, good := -1, false // the shape that was judged last: mostly all offers of a model have one
		for o := model.from; o < model.to; o++ {
			if shape := w.st.offers[o].shape; shape != last {
				s := &w.st.shapes[shape]
				last, good = shape, !s.broken && used.fits(s.room) && !conflicts(ports, s.ports)
			}
			if !good {
				out.clear(o)
			}
		}
	}
	return out
}

// used returns what the pods on the machine ask for together.
func (m *machine) used(w *work) vector {
	used := make(vector, len(w.st.res))
	for _, t := range m.takes {
		used.take(w.q.classes[t.class].ask, -t.n)
	}
	return used
}

// podPorts returns the host ports of the pods on the machine, those of DaemonSets left out.
func (m *machine) podPorts(q *queue) (ports []cluster.HostPort) {
	for _, t := range m.takes {
		ports = append(ports, q.classes[t.class].ports...)
	}
	return ports
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

// diverse reports whether the machine with n more pods of the class would still
// have as many different offers as its pool's minValues ask for.
func (f *filler) diverse(m *machine, class, n int) bool {
	if len(f.st.poolOf(m.offer).least) == 0 {
		return true
	}
	more := *m
	more.takes = append(slices.Clone(m.takes), take{class: class, n: n, set: f.set(class)})
	return f.tooFew(&more) == ""
}

// tooFew returns the key with minValues of which the machine's choices have too
// few values, or "". Where the pool has limits it reckons with the choices that
// a tight limit leaves.
func (w *work) tooFew(m *machine) string {
	offers := newBitset(len(w.st.offers))
	p := w.st.poolOf(m.offer)
	for _, o := range w.candidates(m, !p.budget.unlimited()) {
		offers.set(o)
	}
	return p.missing(offers)
}

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

// cheapest returns the price of the cheapest offer that could host the machine's pods.
func (w *work) cheapest(m *machine) float64 {
	used, ports := m.used(w), m.podPorts(w.q)
	price := w.st.offers[m.offer].Price
	for _, o := range w.st.variantOf(m.offer).byPrice {
		if w.st.offers[o].Price >= price {
			break
		}
		if w.survives(o, m, used, ports) {
			return float64(w.st.offers[o].Price)
		}
	}
	return float64(price)
}

func (w *work) survives(o int, m *machine, used vector, ports []cluster.HostPort) bool {
	s := &w.st.shapes[w.st.offers[o].shape]
	if s.broken || !used.fits(s.room) || conflicts(ports, s.ports) {
		return false
	}
	for _, t := range m.takes {
		if !w.accepts.sets[t.set].has(o) {
			return false
		}
	}
	return true
}

package packing

import "github.com/joiner-sh/joiner/cluster"

// survivors returns the offers that could each host all pods of the machine:
// those of its variant that every class accepts and that have the room.
func (w *work) survivors(m *machine) bitset {
	used, ports, v := m.used(w), m.podPorts(w.q), w.st.variantOf(m.offer)
	out := newBitset(len(w.st.offers))
	if w.st.offers[m.offer].isReserved() {
		out.set(m.offer) // one instance is kept for it, and nothing else
		return out
	}
	if v.from == v.to {
		return out
	}
	out.setRange(w.st.models[v.from].from, w.st.models[v.to-1].to)
	for i, t := range m.takes {
		if i == 0 || t.set != m.takes[i-1].set {
			out.and(w.accepts.sets[t.set])
		}
	}
	out.andNot(w.st.reserved)
	for _, model := range w.st.models[v.from:v.to] {
		last, good := -1, false // the shape that was judged last
		for o := model.from; o < model.to; o++ {
			if shape := w.st.offers[o].shape; shape != last {
				s := &w.st.shapes[shape]
				last, good = shape, !s.broken && used.fits(s.room) && (len(ports) == 0 || !conflicts(ports, s.ports))
			}
			if !good {
				out.clear(o)
			} else if model.alike {
				break
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

// cheapest returns the price of the cheapest offer that could host the machine's pods.
func (w *work) cheapest(m *machine) float64 {
	price := w.st.offers[m.offer].Price
	if w.st.offers[m.offer].isReserved() {
		return float64(price)
	}
	used, ports := m.used(w), m.podPorts(w.q)
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

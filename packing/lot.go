package packing

import "slices"

// lot is a number of offers that make no difference to any pod of the moment:
// one model, one shape, accepted by the same classes. Only the cheapest needs
// to be looked at.
type lot struct {
	offer int     // the cheapest
	price float64 // in billionths of a dollar per hour
	key   float64 // a price per worth that filling it is not expected to beat
	mark  uint64  // which accept sets it is in: lots with the same are accepted by the same classes
}

// lots returns what these classes may buy from, each in the set that setOf gives.
func (w *work) lots(classes []int, setOf func(class int) int) []lot {
	sets := make([]int, len(classes))
	for i, c := range classes {
		sets[i] = setOf(c)
	}
	return w.lotsIn(sets)
}

// lotsIn returns what is in at least one of the accept sets.
func (w *work) lotsIn(sets []int) []lot {
	marks := make([]uint64, len(w.st.offers)) // which of the sets an offer is in, hashed
	seen := map[int]bool{}
	for _, n := range sets {
		if seen[n] {
			continue
		}
		seen[n] = true
		mark := scramble(uint64(n) + 1)
		w.accepts.sets[n].each(func(o int) { marks[o] ^= mark })
	}
	var out []lot
	for _, m := range w.st.models {
		first := len(out)
		for o := m.from; o < m.to; o++ {
			if marks[o] == 0 || w.st.shapes[w.st.offers[o].shape].broken || w.st.offers[o].isReserved() {
				continue
			}
			// Offers of a model are sorted by price: the first of its kind is the cheapest.
			alike := func(l lot) bool {
				return marks[l.offer] == marks[o] && w.st.offers[l.offer].shape == w.st.offers[o].shape
			}
			if !slices.ContainsFunc(out[first:], alike) {
				out = append(out, lot{offer: o, price: float64(w.st.offers[o].Price), mark: marks[o]})
			}
		}
	}
	return out
}

// scramble spreads the bits of x (the finisher of splitmix64), so that sets of
// sets can be told apart by a sum. Should two collide, a machine is looked at
// less than it could be; nothing that is planned becomes wrong.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// lotQueue is lots by key, then price, then number: a heap.
type lotQueue []lot

func (h lotQueue) Len() int { return len(h) }

func (h lotQueue) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.price != b.price:
		return a.price < b.price
	}
	return a.offer < b.offer
}

func (h lotQueue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds x, a lot, at the end: for container/heap.
func (h *lotQueue) Push(x any) { *h = append(*h, x.(lot)) }

// Pop removes the last: for container/heap.
func (h *lotQueue) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
)

// reserve is a capacity reservation that some pool may use. Its instances are
// paid for, so they are filled before anything is bought, as nodes that are
// there are; no machine that is bought by its price is ever one of them.
type reserve struct {
	left   int   // instances that no node has, or is about to have
	offers []int // those that take one: of several pools, or of the variants of one
}

// isReserved reports whether a machine of the offer takes an instance of a capacity reservation.
func (o *offer) isReserved() bool { return o.Reservation.ID != "" }

// split tells the offerings that can be bought any number of times from those of capacity reservations.
func (a *allowedType) split() (bought, reserved []*catalog.Offering) {
	for _, o := range a.offerings {
		if o.Reservation.ID == "" {
			bought = append(bought, o)
		} else {
			reserved = append(reserved, o)
		}
	}
	return bought, reserved
}

// findReserves numbers the capacity reservations of the offers. What EC2 counts
// as left may be promised already: to a claim for which nothing has been bought yet.
func (st *stock) findReserves(nodes []cluster.Node) {
	st.reserved = newBitset(len(st.offers))
	numbers := map[string]int{}
	for i := range st.offers {
		o := &st.offers[i]
		id := o.Reservation.ID
		if id == "" {
			continue
		}
		n, ok := numbers[id]
		if !ok {
			n = len(st.reserves)
			numbers[id] = n
			st.reserves = append(st.reserves, reserve{left: o.Reservation.Left})
		}
		r := &st.reserves[n]
		r.left = min(r.left, o.Reservation.Left)
		r.offers = append(r.offers, i)
		o.reserve = n
		st.reserved.set(i)
	}
	for i := range nodes {
		if n, ok := numbers[nodes[i].Labels[catalog.LabelReservationID]]; ok && !nodes[i].Joined && nodes[i].ProviderID == "" {
			st.reserves[n].left--
		}
	}
}

// unused returns how many instances of the capacity reservation the plan has not given away.
func (w *work) unused(reserve int) int {
	left := w.st.reserves[reserve].left
	for i := range w.machines {
		if w.st.offers[w.machines[i].offer].reserve == reserve {
			left -= w.machines[i].copies
		}
	}
	return max(left, 0)
}

// fillReserves puts pods of the active classes on instances of the capacity
// reservations that they accept.
func (w *work) fillReserves(active []int) {
	accepts := func(c int) bool { return w.accepts.sets[w.set(c)].meets(w.st.reserved) }
	if len(w.st.reserves) == 0 || !slices.ContainsFunc(active, accepts) {
		return
	}
	w.appraise(active)
	if w.fillFew(active) {
		return
	}
	f := filler{work: w, left: w.left}
	for i, classes := range w.byNeed(active) {
		if i > 0 {
			w.machines = f.topUp(w.machines, classes)
		}
		for w.steps <= w.effort {
			m, ok := f.fullest(classes)
			if !ok {
				break
			}
			w.assign(m, math.MaxInt)
		}
	}
}

// byNeed splits the classes into those that nothing else takes, those that
// prefer what is reserved to anything else, each by priority, and the others.
func (w *work) byNeed(classes []int) [][]int {
	var only, rather, others []int
	for _, c := range classes {
		class := &w.q.classes[c]
		isBought := func(set int) bool {
			bought := w.accepts.sets[set].clone()
			bought.andNot(w.st.reserved)
			return w.accepts.anyHosts(bought, class)
		}
		switch stages := class.stages[w.stage[c]:]; {
		case isBought(stages[0]):
			others = append(others, c)
		case slices.ContainsFunc(stages, isBought):
			rather = append(rather, c)
		default:
			only = append(only, c)
		}
	}
	return slices.Concat(w.tiersOf(only), w.tiersOf(rather), [][]int{others})
}

// fullest returns the machine of a capacity reservation that the pods fill
// best: the worth of its pods for its size decides.
func (f *filler) fullest(classes []int) (best machine, ok bool) {
	most := 0.0
	for n := range f.st.reserves {
		for _, o := range f.st.reserves[n].offers {
			shape := &f.st.shapes[f.st.offers[o].shape]
			if shape.broken || f.affordable(o, 1) == 0 {
				continue
			}
			m := f.holding(o, nil)
			f.fill(&m, f.shelve(f.accepting(o, classes)))
			if full := m.worth / max(f.bulk(shape.room), 1e-9); len(m.takes) > 0 && full > most {
				best, most = m, full
			}
		}
	}
	return best, len(best.takes) > 0
}

// affordable returns how many machines of the offer the limits of its pool, and
// the instances of its capacity reservation, allow, at most limit.
func (w *work) affordable(offer, limit int) int {
	if o := &w.st.offers[offer]; o.isReserved() {
		limit = min(limit, w.unused(o.reserve))
	}
	return w.budgets[w.st.variantOf(offer).pool].times(w.st.typeOf(offer).Capacity, limit)
}

// assign makes the machine part of the plan, as often as it can be had and there
// are pods for it, at most limit.
func (w *work) assign(m machine, limit int) {
	m.copies = w.affordable(m.offer, limit)
	for _, t := range m.takes {
		m.copies = min(m.copies, w.left[t.class]/t.n)
	}
	w.budgets[w.st.variantOf(m.offer).pool].spend(w.st.typeOf(m.offer).Capacity, m.copies)
	for _, t := range m.takes {
		w.left[t.class] -= t.n * m.copies
	}
	m.price = w.cheapest(&m)
	w.machines = append(w.machines, m)
}

package packing

import (
	"math"
	"slices"
)

// unused returns how many instances of the capacity reservation the plan has not given away.
func (w *work) unused(reserve int) int {
	left := w.st.Reserves[reserve].Left
	for i := range w.machines {
		if w.st.Offers[w.machines[i].offer].Reserve == reserve {
			left -= w.machines[i].copies
		}
	}
	return max(left, 0)
}

// fillReserves puts pods of the active classes on instances of the capacity
// reservations that they accept.
func (w *work) fillReserves(active []int) {
	accepts := func(c int) bool { return w.accepts.Sets[w.set(c)].Meets(w.st.Reserved) }
	if len(w.st.Reserves) == 0 || !slices.ContainsFunc(active, accepts) {
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
			bought := w.accepts.Sets[set].Clone()
			bought.AndNot(w.st.Reserved)
			return w.accepts.AnyTakes(bought, &class.Class)
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
	for n := range f.st.Reserves {
		for _, o := range f.st.Reserves[n].Offers {
			shape := f.st.ShapeOf(o)
			if shape.Broken || f.affordable(o, 1) == 0 {
				continue
			}
			m := f.laden(o, nil)
			f.fill(&m, f.shelve(f.accepting(o, classes)))
			if full := m.worth / max(f.bulk(shape.Room), 1e-9); len(m.takes) > 0 && full > most {
				best, most = m, full
			}
		}
	}
	return best, len(best.takes) > 0
}

// affordable returns how many machines of the offer the limits of its pool, and
// the instances of its capacity reservation, allow, at most limit.
func (w *work) affordable(offer, limit int) int {
	if o := &w.st.Offers[offer]; o.IsReserved() {
		limit = min(limit, w.unused(o.Reserve))
	}
	return w.budgets[w.st.VariantOf(offer).Pool].Times(w.st.TypeOf(offer).Capacity, limit)
}

// assign makes the machine part of the plan, as often as it can be had and there
// are pods for it, at most limit.
func (w *work) assign(m machine, limit int) {
	m.copies = w.affordable(m.offer, limit)
	for _, t := range m.takes {
		m.copies = min(m.copies, w.left[t.class]/t.n)
	}
	w.budgets[w.st.VariantOf(m.offer).Pool].Spend(w.st.TypeOf(m.offer).Capacity, m.copies)
	for _, t := range m.takes {
		w.left[t.class] -= t.n * m.copies
	}
	m.price = w.cheapest(&m)
	w.machines = append(w.machines, m)
}

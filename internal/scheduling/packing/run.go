package packing

import (
	"container/heap"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// run is one strategy at work.
type run struct {
	filler
	strategy strategy
	lots     []lot
	budgets  []offering.Budget
	machines []machine
	shelves  map[uint64]*shelf // by mark of lots, of the classes that are bought for
	known    map[int]machine   // by offer: its machine when it was filled last
}

// run returns a run of the strategy that has bought nothing; it alters left and budgets.
func (w *work) run(s strategy, left []int, budgets []offering.Budget) *run {
	return &run{filler: filler{work: w, careful: s.careful, apart: s.apart, left: left}, strategy: s, budgets: budgets}
}

// try buys for the active classes by one strategy; w is not altered but for its steps.
func (w *work) try(s strategy, active []int, lots []lot) outcome {
	defer func(worth []float64) { w.worth = worth }(w.worth)
	r := w.run(s, slices.Clone(w.left), cloneBudgets(w.budgets))
	r.lots = w.setOut(active, lots, s.hard)
	tiers := [][]int{active}
	if s.tiered {
		tiers = w.tiersOf(active)
	}
	often := legs
	if len(tiers) > mostPriced {
		often = 0
	}
	for _, tier := range tiers {
		r.machines = r.topUp(r.machines, tier)
		for range often {
			r.buy(tier, leg)
			r.lots = w.reprice(tier, r.left, r.lots, s.hard)
		}
		r.buy(tier, 0)
	}
	return r.outcome()
}

// Pods are priced anew each time that so large a part of what was to be bought is left, so often.
const (
	leg  = 0.4
	legs = 2

	mostPriced = 64 // of priorities: with more, few pods have the same
)

// buy buys the machine that gives most for its money, and again, until no more
// than that part of the worth is left, or none takes a pod.
func (r *run) buy(classes []int, part float64) {
	lots := lotQueue(slices.Clone(r.lots))
	heap.Init(&lots)
	r.steps += len(lots)
	r.shelves, r.known = map[uint64]*shelf{}, map[int]machine{}
	worth := 0.0 // of all that is left
	for _, c := range classes {
		worth += float64(r.left[c]) * r.worth[c]
	}
	rest := part * worth
	defer r.reckon()
	for bought := 1; (part == 0 || worth > rest) && r.steps <= r.effort; bought++ {
		m, ok := r.next(&lots, classes, worth)
		if !ok {
			return
		}
		worth -= r.apply(m)
		if bought%32 == 0 {
			for _, s := range r.shelves {
				s.drop(r.left)
			}
		}
	}
}

// reckon finds out what the machines cost that were bought since.
func (r *run) reckon() {
	parallel.Each(len(r.machines), func(i int) {
		if m := &r.machines[i]; m.price == 0 {
			m.price = r.cheapest(m)
		}
	})
}

// closeTo is by how much a machine may be dearer for its worth than the best that
// is conceivable, and be bought without a look at the rest.
const closeTo = 1.003

// next returns the machine with the lowest price per worth. A lot's key was
// its price per worth when it was last filled; as fewer pods are left, that
// only grows, and stays as long as the same machine can be bought again. So lots are
// looked at in the order of their keys, until no key promises better than what has been found.
func (r *run) next(lots *lotQueue, classes []int, total float64) (machine, bool) {
	var best machine
	var looked []lot
	ratio := math.Inf(1)
	for lots.Len() > 0 && (*lots)[0].key*closeTo < ratio {
		l := heap.Pop(lots).(lot)
		r.steps += 4 // a queue is a tree
		cost := r.cost(l)
		if promise := cost / max(total, 1e-300); promise >= ratio {
			l.key = max(l.key, promise)
			looked = append(looked, l)
			continue
		}
		m, ok := r.known[l.Offer]
		if !ok || !r.repeats(&m) {
			m = r.machine(l, classes, cost, ratio)
			if m.worth == 0 {
				continue // it takes none of those that are left
			}
			r.known[l.Offer] = m
		}
		l.key = cost / m.worth
		looked = append(looked, l)
		if l.key < ratio {
			best, ratio = m, l.key
		}
	}
	for _, l := range looked {
		heap.Push(lots, l)
	}
	return best, len(best.takes) > 0
}

// repeats reports whether the machine can be bought again as it is.
func (r *run) repeats(m *machine) bool {
	short := func(t take) bool { return r.left[t.class] < t.n }
	return !slices.ContainsFunc(m.takes, short) && r.affords(m.offer)
}

// affords reports whether the limits allow one more machine of the offer.
func (r *run) affords(offer int) bool {
	return r.budgets[r.st.VariantOf(offer).Pool].Times(r.st.TypeOf(offer).Capacity, 1) > 0
}

// cost is what a machine of the lot is reckoned to cost: its price, or, when
// limits are scarce, the share it takes of what is left of them, and then its price.
func (r *run) cost(l lot) float64 {
	price := max(l.Price, 1)
	if !r.strategy.scarce {
		return price
	}
	pool := r.st.VariantOf(l.Offer).Pool
	return price + priceless*r.budgets[pool].Share(r.st.TypeOf(l.Offer).Capacity)
}

// promising is how much more for its money a machine may give when it is filled with care.
const promising = 0.92

// machine fills a machine of the lot with pods of the classes; with care, if
// it might then have a lower price per worth than ratio.
func (r *run) machine(l lot, classes []int, cost, ratio float64) machine {
	shape := r.st.ShapeOf(l.Offer)
	m := machine{offer: l.Offer, copies: 1, free: shape.Room.Clone(), ports: taken(shape)}
	if r.affords(l.Offer) {
		s, ok := r.shelves[l.Mark]
		if !ok {
			s = r.shelve(r.accepting(l.Offer, classes))
			r.shelves[l.Mark] = s
		}
		r.q.welcome(&m) // before anybody is put onto a copy of it
		empty := m.clone()
		r.fill(&m, s)
		if r.careful && m.worth > 0 && cost/m.worth*promising < ratio {
			r.carefully(&m, empty, s)
		}
	}
	return m
}

// apply buys the machine as often as there are pods and budget for it, and
// returns what all those pods are worth.
func (r *run) apply(m machine) float64 {
	m.copies = math.MaxInt
	for _, t := range m.takes {
		m.copies = min(m.copies, r.left[t.class]/t.n)
	}
	pool, size := r.st.VariantOf(m.offer).Pool, r.st.TypeOf(m.offer).Capacity
	m.copies = r.budgets[pool].Times(size, m.copies)
	r.budgets[pool].Spend(size, m.copies)
	for _, t := range m.takes {
		r.left[t.class] -= t.n * m.copies
	}
	r.machines = append(r.machines, m)
	return m.worth * float64(m.copies)
}

func (r *run) outcome() outcome {
	r.know()
	o := outcome{strategy: r.strategy, machines: r.machines, left: r.left, budgets: r.budgets}
	for i := range r.machines {
		m := &r.machines[i]
		o.count += m.copies
		o.price += float64(m.copies) * m.price
		for _, t := range m.takes {
			o.crowded += m.copies * max(0, t.n-r.facts.share[t.class])
		}
	}
	return o
}

// accepting returns those of the classes that accept the offer.
func (f *filler) accepting(offer int, classes []int) []int {
	var out []int
	for _, c := range classes {
		if set := f.set(c); set >= 0 && f.left[c] > 0 && f.accepts.Sets[set].Has(offer) {
			out = append(out, c)
		}
	}
	return out
}

// topUp adds pods of the classes to machines that are to be bought anyway, as
// far as there is room, and returns the machines.
func (f *filler) topUp(machines []machine, classes []int) []machine {
	var out []machine
	classes = slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return f.left[c] == 0 })
	if len(classes) == 0 {
		return machines
	}
	for _, m := range machines {
		among := f.shelve(f.accepting(m.offer, classes))
		for m.copies > 0 {
			more := m.clone()
			if f.fill(&more, among) == 0 {
				out = append(out, m)
				break
			}
			for i, t := range more.takes {
				if added := t.n - m.held(i); added > 0 {
					more.copies = min(more.copies, f.left[t.class]/added)
				}
			}
			for i, t := range more.takes {
				f.left[t.class] -= (t.n - m.held(i)) * more.copies
			}
			more.price = f.cheapest(&more)
			out = append(out, more)
			m.copies -= more.copies
		}
	}
	return out
}

func (m *machine) clone() machine {
	out := *m
	out.free, out.takes, out.ports, out.host = m.free.Clone(), slices.Clone(m.takes), slices.Clip(m.ports), m.host.Clone()
	return out
}

// held returns the number of pods in the i-th take, 0 if there is none.
func (m *machine) held(i int) int {
	if i < len(m.takes) {
		return m.takes[i].n
	}
	return 0
}

package packing

import (
	"container/heap"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// strategyRun is one strategy that is being tried.
type strategyRun struct {
	filler
	strategy   strategy
	lots       []lot
	budgets    []offering.Budget
	planned    []plannedNode
	rowsByMark map[uint64]*candidateRows // by mark of lots: the candidate classes
	lastFilled map[int]plannedNode       // by offering: its node when it was last filled
}

// newRun returns a run of the strategy without nodes. It changes left and budgets.
func (pl *planner) newRun(s strategy, left []int, budgets []offering.Budget) *strategyRun {
	return &strategyRun{filler: filler{planner: pl, careful: s.careful, spreadOut: s.spreadOut, left: left}, strategy: s, budgets: budgets}
}

// runStrategy plans nodes for the active classes with one strategy. It changes nothing of pl but
// its steps.
func (pl *planner) runStrategy(s strategy, active []int, lots []lot) outcome {
	defer func(prices []float64) { pl.dualPrice = prices }(pl.dualPrice)
	r := pl.newRun(s, slices.Clone(pl.left), cloneBudgets(pl.budgets))
	r.lots = pl.priceLots(active, lots, s.hardPrices)
	tiers := [][]int{active}
	if s.byPriority {
		tiers = pl.tiersOf(active)
	}
	rounds := repriceRounds
	if len(tiers) > maxRepricedTiers {
		rounds = 0
	}
	for _, tier := range tiers {
		r.planned = r.topUp(r.planned, tier)
		for range rounds {
			r.addNodes(tier, repriceAt)
			r.lots = pl.repriceLots(tier, r.left, r.lots, s.hardPrices)
		}
		r.addNodes(tier, 0)
	}
	return r.outcome()
}

// repriceAt is the share of the value to place that is left when dual prices are computed again,
// repriceRounds how often that is done.
const (
	repriceAt     = 0.4
	repriceRounds = 2

	maxRepricedTiers = 64 // number of priorities above which prices are not computed again: few pods share a priority
)

// addNodes repeatedly adds the node with the lowest price per value. It stops when no more than
// that part of the value is left, or no node takes a pod.
func (r *strategyRun) addNodes(classes []int, part float64) {
	lots := lotQueue(slices.Clone(r.lots))
	heap.Init(&lots)
	r.steps += len(lots)
	r.rowsByMark, r.lastFilled = map[uint64]*candidateRows{}, map[int]plannedNode{}
	value := 0.0 // of all unplaced pods
	for _, c := range classes {
		value += float64(r.left[c]) * r.dualPrice[c]
	}
	rest := part * value
	defer r.computePrices()
	for count := 1; (part == 0 || value > rest) && r.steps <= r.effort; count++ {
		m, ok := r.bestNode(&lots, classes, value)
		if !ok {
			return
		}
		value -= r.addCopies(m)
		if count%32 == 0 {
			for _, candidates := range r.rowsByMark {
				candidates.dropPlaced(r.left)
			}
		}
	}
}

// computePrices sets the price of the nodes that have none yet.
func (r *strategyRun) computePrices() {
	parallel.Each(len(r.planned), func(i int) {
		if m := &r.planned[i]; m.price == 0 {
			m.price = r.cheapestPrice(m)
		}
	})
}

// acceptRatio is how much higher a node's price per value may be than the best conceivable, to be
// accepted without a check of the other lots.
const acceptRatio = 1.003

// bestNode returns the node with the lowest price per value.
//
// A lot's key was its price per value when it was last filled. It only grows as fewer pods are
// left, and stays the same while the same node can be added again. So lots are checked in order of
// their keys, until no key is lower than the best ratio found.
func (r *strategyRun) bestNode(lots *lotQueue, classes []int, total float64) (plannedNode, bool) {
	var best plannedNode
	var tried []lot
	ratio := math.Inf(1)
	for lots.Len() > 0 && (*lots)[0].key*acceptRatio < ratio {
		l := heap.Pop(lots).(lot)
		r.steps += 4 // the logarithm of the queue's length, about
		cost := r.scoreCost(l)
		if promise := cost / max(total, 1e-300); promise >= ratio {
			l.key = max(l.key, promise)
			tried = append(tried, l)
			continue
		}
		m, ok := r.lastFilled[l.Offer]
		if !ok || !r.canRepeat(&m) {
			m = r.fillNode(l, classes, cost, ratio)
			if m.value == 0 {
				continue // it takes none of the unplaced pods
			}
			r.lastFilled[l.Offer] = m
		}
		l.key = cost / m.value
		tried = append(tried, l)
		if l.key < ratio {
			best, ratio = m, l.key
		}
	}
	for _, l := range tried {
		heap.Push(lots, l)
	}
	return best, len(best.allocations) > 0
}

// canRepeat reports whether the node can be added again as it is.
func (r *strategyRun) canRepeat(m *plannedNode) bool {
	lacksUnits := func(a allocation) bool { return r.left[a.class] < a.n }
	return !slices.ContainsFunc(m.allocations, lacksUnits) && r.isWithinLimits(m.offer)
}

// isWithinLimits reports whether the limits allow one more node of the offering.
func (r *strategyRun) isWithinLimits(offer int) bool {
	return r.budgets[r.stock.VariantOf(offer).Pool].Times(r.stock.TypeOf(offer).Capacity, 1) > 0
}

// scoreCost returns the price of a node of the lot, for comparison. If limits must be saved, the
// share of the limits comes first and the price second.
func (r *strategyRun) scoreCost(l lot) float64 {
	price := max(l.Price, 1)
	if !r.strategy.sparing {
		return price
	}
	pool := r.stock.VariantOf(l.Offer).Pool
	return price + aboveAnyPrice*r.budgets[pool].Share(r.stock.TypeOf(l.Offer).Capacity)
}

// carefulGain is the factor by which refining a node can lower its price per value.
const carefulGain = 0.92

// fillNode fills a node of the lot with pods of the classes. It refines the node if that could
// bring its price per value below ratio.
func (r *strategyRun) fillNode(l lot, classes []int, cost, ratio float64) plannedNode {
	shape := r.stock.ShapeOf(l.Offer)
	m := plannedNode{offer: l.Offer, copies: 1, free: shape.Room.Clone(), ports: daemonPorts(shape)}
	if r.isWithinLimits(l.Offer) {
		candidates, ok := r.rowsByMark[l.Mark]
		if !ok {
			candidates = r.groupRows(r.accepting(l.Offer, classes))
			r.rowsByMark[l.Mark] = candidates
		}
		r.q.countDaemonPods(&m) // before pods are placed on a copy of it
		empty := m.clone()
		r.fill(&m, candidates)
		if r.careful && m.value > 0 && cost/m.value*carefulGain < ratio {
			r.refine(&m, empty, candidates)
		}
	}
	return m
}

// addCopies adds the node as often as pods and limits allow, and returns the dual price of all
// their pods.
func (r *strategyRun) addCopies(m plannedNode) float64 {
	m.copies = math.MaxInt
	for _, a := range m.allocations {
		m.copies = min(m.copies, r.left[a.class]/a.n)
	}
	pool, size := r.stock.VariantOf(m.offer).Pool, r.stock.TypeOf(m.offer).Capacity
	m.copies = r.budgets[pool].Times(size, m.copies)
	r.budgets[pool].Spend(size, m.copies)
	for _, a := range m.allocations {
		r.left[a.class] -= a.n * m.copies
	}
	r.planned = append(r.planned, m)
	return m.value * float64(m.copies)
}

func (r *strategyRun) outcome() outcome {
	r.refreshFacts()
	o := outcome{strategy: r.strategy, planned: r.planned, left: r.left, budgets: r.budgets}
	for i := range r.planned {
		m := &r.planned[i]
		o.count += m.copies
		o.price += float64(m.copies) * m.price
		for _, a := range m.allocations {
			o.crowded += m.copies * max(0, a.n-r.facts.maxShare[a.class])
		}
	}
	return o
}

// accepting returns those of the classes that accept the offering.
func (f *filler) accepting(offer int, classes []int) []int {
	var out []int
	for _, c := range classes {
		if set := f.currentSet(c); set >= 0 && f.left[c] > 0 && f.accepts.Sets[set].Has(offer) {
			out = append(out, c)
		}
	}
	return out
}

// topUp adds pods of the classes to planned nodes with free room, and returns the nodes.
func (f *filler) topUp(nodes []plannedNode, classes []int) []plannedNode {
	var out []plannedNode
	classes = slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return f.left[c] == 0 })
	if len(classes) == 0 {
		return nodes
	}
	for _, m := range nodes {
		candidates := f.groupRows(f.accepting(m.offer, classes))
		for m.copies > 0 {
			more := m.clone()
			if f.fill(&more, candidates) == 0 {
				out = append(out, m)
				break
			}
			for i, a := range more.allocations {
				if added := a.n - m.unitsAt(i); added > 0 {
					more.copies = min(more.copies, f.left[a.class]/added)
				}
			}
			for i, a := range more.allocations {
				f.left[a.class] -= (a.n - m.unitsAt(i)) * more.copies
			}
			more.price = f.cheapestPrice(&more)
			out = append(out, more)
			m.copies -= more.copies
		}
	}
	return out
}

func (m *plannedNode) clone() plannedNode {
	out := *m
	out.free, out.allocations, out.ports, out.host = m.free.Clone(), slices.Clone(m.allocations), slices.Clip(m.ports), m.host.Clone()
	return out
}

// unitsAt returns the number of units in the i-th allocation, 0 if there is none.
func (m *plannedNode) unitsAt(i int) int {
	if i < len(m.allocations) {
		return m.allocations[i].n
	}
	return 0
}

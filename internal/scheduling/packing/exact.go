package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// maxStates is the maximum number of states of a problem that is solved exactly. A state is a subset of the unplaced
// units: a count for each class. The state is a number that encodes these counts; see exactSolver.stride.
const maxStates = 256

// exactSolver computes the cheapest plan of a few pods by dynamic programming over all states. In this file, a unit is
// called a pod, and the pods of one node a part of a state.
type exactSolver struct {
	run        *strategyRun
	problem    *pending.Problem
	queue      *pending.Queue
	nodeOffers *nodeOffers
	prices     *pricer
	work       *work

	classes     []int
	stride      []int     // by index in classes: difference between the numbers of two states that differ by one pod of the class
	states      int       // number of states
	singlePrice []float64 // by state: the price of the cheapest single node for exactly these pods; +Inf if none
	singleOffer []int     // by state: the offering of that node
	minPrice    []float64 // by state: the lowest price of any plan for these pods
	firstPart   []int     // by state: the pods of one node of the plan with minPrice, as a state
}

// solveExactly returns the cheapest plan for the active classes. It reports false in these cases:
//
//   - the classes have too many pods (maxStates);
//   - the work limit is too low;
//   - a pod would be unplaced;
//   - the plan exceeds a NodePool limit.
func (nc nodeChooser) solveExactly(active []int, lots []lot) (outcome, bool) {
	run := nc.newRun(strategy{}, slices.Clone(nc.queue.Left), cloneRemaining(nc.sol.remaining))
	ex := newExactSolver(run, active)
	for _, c := range active {
		ex.stride = append(ex.stride, ex.states)
		if ex.states *= nc.queue.Left[c] + 1; ex.states > maxStates {
			return outcome{}, false
		}
	}
	if nc.work.steps+ex.states*(len(lots)+ex.states/2) > nc.work.limit { // the steps of priceStates and partition
		return outcome{}, false
	}
	ex.priceStates(lots)
	ex.partition()
	all := ex.states - 1
	if math.IsInf(ex.minPrice[all], 1) || !ex.addNodesFor(all) {
		return outcome{}, false
	}
	return run.outcome(), true
}

// newExactSolver returns an exactSolver whose strides and number of states the caller must set.
func newExactSolver(run *strategyRun, classes []int) *exactSolver {
	return &exactSolver{
		run: run, problem: run.problem, queue: run.queue, nodeOffers: run.sol.nodeOffers, prices: run.prices, work: run.work,
		classes: classes, states: 1,
	}
}

// priceStates sets singlePrice and singleOffer: the cheapest single node for every state.
func (ex *exactSolver) priceStates(lots []lot) {
	lots = slices.Clone(lots)
	slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(a.Price, b.Price) })
	for state := range ex.states {
		allocations := ex.allocationsOf(state)
		price, offer := math.Inf(1), -1
		i := slices.IndexFunc(lots, func(l lot) bool { return ex.fitsOn(l.Offer, allocations) })
		if i >= 0 && state > 0 {
			price, offer = lots[i].Price, lots[i].Offer
		}
		ex.work.steps += len(lots)
		ex.singlePrice, ex.singleOffer = append(ex.singlePrice, price), append(ex.singleOffer, offer)
	}
}

func (ex *exactSolver) allocationsOf(state int) []allocation {
	var out []allocation
	for i, c := range ex.classes {
		if n := ex.count(state, i); n > 0 {
			out = append(out, allocation{class: c, n: n, acceptSet: ex.queue.CurrentSet(c)})
		}
	}
	return out
}

// count returns the number of pods of the i-th class in a state.
func (ex *exactSolver) count(state, i int) int {
	return state / ex.stride[i] % (ex.run.filler.left[ex.classes[i]] + 1)
}

func (ex *exactSolver) fitsOn(offer int, allocations []allocation) bool {
	shape := ex.problem.Stock.ShapeOf(offer)
	pn := plannedNode{offer: offer, allocations: allocations, ports: daemonPorts(shape)}
	for _, a := range allocations {
		c := &ex.queue.Classes[a.class]
		if !ex.problem.Accepts.Sets[a.acceptSet].Has(offer) || len(c.Ports) > 0 && (a.n > 1 || ex.queue.HasPortConflict(c, pn.ports)) {
			return false
		}
		pn.ports = append(slices.Clip(pn.ports), c.PortLists...)
		if ex.run.filler.hostRuleRoom(&pn, a.class) < a.n {
			return false
		}
		ex.queue.AddToHostCounts(&pn.host, c, a.n)
	}
	return !shape.IsTooSmall && ex.nodeOffers.used(&pn).Fits(shape.Room) && ex.nodeOffers.keepsMinValues(&pn)
}

// partition sets minPrice and firstPart: the cheapest partition into nodes for every state.
func (ex *exactSolver) partition() {
	ex.minPrice, ex.firstPart = make([]float64, ex.states), make([]int, ex.states)
	for state := 1; state < ex.states; state++ {
		ex.minPrice[state] = math.Inf(1)
		for part := 1; part <= state; part++ {
			if math.IsInf(ex.singlePrice[part], 1) || !ex.isSubset(part, state) {
				continue
			}
			if price := ex.singlePrice[part] + ex.minPrice[state-part]; price < ex.minPrice[state] {
				ex.minPrice[state], ex.firstPart[state] = price, part
			}
		}
		ex.work.steps += state
	}
}

// isSubset reports whether state has all the pods of part.
func (ex *exactSolver) isSubset(part, state int) bool {
	for i := range ex.classes {
		if ex.count(part, i) > ex.count(state, i) {
			return false
		}
	}
	return true
}

// addNodesFor plans the nodes of the cheapest partition of a state, and reports whether the limits
// allow them.
func (ex *exactSolver) addNodesFor(state int) bool {
	for ; state > 0; state -= ex.firstPart[state] {
		part := ex.firstPart[state]
		offer := ex.singleOffer[part]
		pn := ex.nodeOffers.nodeWith(offer, ex.allocationsOf(part))
		pn.copies, pn.price, pn.value = 1, ex.singlePrice[part], ex.prices.valueOf(&pn)
		pool, size := ex.problem.Stock.VariantOf(offer).Pool, ex.problem.Stock.TypeOf(offer).Capacity
		if ex.run.remaining[pool].MaxNodes(size, 1) == 0 {
			return false
		}
		ex.run.remaining[pool].Subtract(size, 1)
		ex.run.planned = append(ex.run.planned, pn)
	}
	for _, c := range ex.classes {
		ex.run.filler.left[c] = 0
	}
	return true
}

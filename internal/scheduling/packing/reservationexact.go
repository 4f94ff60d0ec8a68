package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// reservationSearch decides which of a few pods to put on instances of capacity reservations, so that the whole plan is
// cheapest.
type reservationSearch struct {
	exact   *exactSolver
	sol     *solution
	problem *pending.Problem
	work    *work
	choices []instanceChoice // one for each usable instance; equal instances are adjacent
}

type instanceChoice struct {
	offer    []int     // by state: the offering of the reservation for exactly these pods; -1 if none
	minPrice []float64 // by state: the lowest price for these pods with this instance and the instances before it
	part     []int     // by state: the pods on the instance in the plan with minPrice, as a state; 0 if it is not used
}

// fillReservationsExactly fills capacity reservations so that the whole plan is cheapest. It does not place the pods
// that are cheaper on other nodes. It reports false, and places no pod, in these cases:
//
//   - the classes have too many pods (maxStates);
//   - the work limit is too low;
//   - a pod would be unplaced;
//   - the plan exceeds a NodePool limit.
func (rf reservationFiller) fillReservationsExactly(active []int) bool {
	ex := newExactSolver(newNodeChooser(rf.sol).newRun(strategy{}, slices.Clone(rf.queue.Left), nil), active)
	pods := 0
	for _, c := range active {
		ex.stride = append(ex.stride, ex.states)
		pods += rf.queue.Left[c]
		if ex.states *= rf.queue.Left[c] + 1; ex.states > maxStates {
			return false
		}
	}
	lots := lotsFor(rf.problem, active, rf.queue.CurrentSet)
	if rf.work.steps+ex.states*(len(lots)+ex.states*(1+len(rf.problem.Stock.Reservations))) > rf.work.limit {
		return false
	}
	ex.priceStates(lots)
	ex.partition()
	rs := &reservationSearch{exact: ex, sol: rf.sol, problem: rf.problem, work: rf.work}
	least := ex.minPrice
	for n := range rf.problem.Stock.Reservations {
		offer := rs.reservedOffers(n)
		for range min(rf.sol.unusedInstances(n), pods) {
			choice := rs.chooseFor(offer, least)
			if slices.Equal(choice.minPrice, least) {
				break // one more instance saves nothing
			}
			rs.choices, least = append(rs.choices, choice), choice.minPrice
		}
	}
	return !math.IsInf(least[ex.states-1], 1) && rs.addAll()
}

// reservedOffers returns, by state, an offering of the reservation that one node for exactly these pods can use; -1
// if there is none.
func (rs *reservationSearch) reservedOffers(reservation int) []int {
	out := make([]int, rs.exact.states)
	for state := range out {
		out[state] = -1
		allocations := rs.exact.allocationsOf(state)
		for _, o := range rs.problem.Stock.Reservations[reservation].Offers {
			if state > 0 && rs.sol.copiesAllowed(o, 1) > 0 && rs.exact.fitsOn(o, allocations) {
				out[state] = o
				break
			}
		}
	}
	return out
}

// chooseFor finds, for every state, the pods to put on one more instance. offer is as in instanceChoice; before is
// the lowest price of each state without this instance. Of choices with equal prices, it takes the one with the most
// pods on the instance.
func (rs *reservationSearch) chooseFor(offer []int, before []float64) instanceChoice {
	choice := instanceChoice{offer: offer, minPrice: slices.Clone(before), part: make([]int, rs.exact.states)}
	for state := 1; state < rs.exact.states; state++ {
		for part := 1; part <= state; part++ {
			if offer[part] < 0 || !rs.exact.isSubset(part, state) {
				continue
			}
			price := before[state-part] + float64(rs.problem.Stock.Offers[offer[part]].Price)
			isFuller := price == choice.minPrice[state] && choice.part[state] > 0 && rs.unitsIn(part) > rs.unitsIn(choice.part[state])
			if price < choice.minPrice[state] || isFuller {
				choice.minPrice[state], choice.part[state] = price, part
			}
		}
		rs.work.steps += state
	}
	return choice
}

func (rs *reservationSearch) unitsIn(state int) int {
	n := 0
	for i := range rs.exact.classes {
		n += rs.exact.count(state, i)
	}
	return n
}

// addAll adds the nodes on reserved instances to the plan. If a NodePool limit does not allow one of them, it adds none
// and reports false.
func (rs *reservationSearch) addAll() bool {
	sol := rs.sol
	planned, left := len(sol.planned), slices.Clone(sol.queue.Left)
	remaining := cloneRemaining(sol.remaining)
	state := rs.exact.states - 1
	for _, choice := range slices.Backward(rs.choices) {
		part := choice.part[state]
		if part == 0 {
			continue
		}
		if sol.copiesAllowed(choice.offer[part], 1) == 0 {
			sol.planned, sol.remaining = sol.planned[:planned], remaining
			copy(sol.queue.Left, left)
			return false
		}
		pn := sol.nodeOffers.nodeWith(choice.offer[part], rs.exact.allocationsOf(part))
		pn.value = sol.prices.valueOf(&pn)
		sol.addPlanned(pn, 1)
		state -= part
	}
	return true
}

package packing

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

type reservationFiller struct {
	problem *pending.Problem
	queue   *pending.Queue
	prices  *pricer
	work    *work
	sol     *solution
}

func newReservationFiller(sol *solution) reservationFiller {
	return reservationFiller{problem: sol.problem, queue: sol.queue, prices: sol.prices, work: sol.work, sol: sol}
}

// fillReservations places pods of the active classes on instances of the capacity reservations that these classes
// accept.
func (rf reservationFiller) fillReservations(active []int) {
	acceptsReserved := func(c int) bool {
		return rf.problem.Accepts.Sets[rf.queue.CurrentSet(c)].Intersects(rf.problem.Stock.Reserved)
	}
	if len(rf.problem.Stock.Reservations) == 0 || !slices.ContainsFunc(active, acceptsReserved) {
		return
	}
	rf.prices.priceClasses(active)
	if rf.fillReservationsExactly(active) {
		return
	}
	f := newFiller(rf.sol, rf.queue.Left)
	for i, classes := range rf.byReservationNeed(active) {
		if i > 0 {
			rf.sol.planned = f.topUp(rf.sol.planned, classes) // nodes planned for the earlier groups may have free room
		}
		for rf.work.steps <= rf.work.limit {
			pn, ok := f.bestReservedNode(classes)
			if !ok {
				break
			}
			rf.sol.addPlanned(pn, math.MaxInt)
		}
	}
}

// byReservationNeed groups the classes in the order in which reservations are filled:
//
//  1. classes that accept only reserved offerings, by priority;
//  2. classes that prefer reserved offerings, by priority;
//  3. all other classes, in one group.
func (rf reservationFiller) byReservationNeed(classes []int) [][]int {
	var reservedOnly, reservedFirst, others []int
	for _, c := range classes {
		class := &rf.queue.Classes[c]
		acceptsUnreserved := func(set int) bool {
			offers := rf.problem.Accepts.Sets[set].Clone()
			offers.AndNot(rf.problem.Stock.Reserved)
			return rf.problem.Accepts.AnyHasRoom(offers, &class.Class)
		}
		switch stages := class.Stages[rf.queue.Stage[c]:]; {
		case acceptsUnreserved(stages[0]):
			others = append(others, c)
		case slices.ContainsFunc(stages, acceptsUnreserved):
			reservedFirst = append(reservedFirst, c)
		default:
			reservedOnly = append(reservedOnly, c)
		}
	}
	return slices.Concat(rf.queue.TiersOf(reservedOnly), rf.queue.TiersOf(reservedFirst), [][]int{others})
}

// bestReservedNode returns the node on a reserved instance with the highest total dual price of its pods per bulk
// of its room. It returns false if no reserved instance can take a pod of the classes.
func (f *filler) bestReservedNode(classes []int) (best plannedNode, ok bool) {
	highest := 0.0
	for n := range f.problem.Stock.Reservations {
		for _, o := range f.problem.Stock.Reservations[n].Offers {
			shape := f.problem.Stock.ShapeOf(o)
			if shape.IsTooSmall || f.sol.copiesAllowed(o, 1) == 0 {
				continue
			}
			pn := f.sol.nodeOffers.nodeWith(o, nil)
			f.fill(&pn, f.facts.groupRows(f.acceptingClasses(o, classes)))
			if valuePerBulk := pn.value / max(f.problem.BulkOf(shape.Room), 1e-9); len(pn.allocations) > 0 && valuePerBulk > highest {
				best, highest = pn, valuePerBulk
			}
		}
	}
	return best, len(best.allocations) > 0
}

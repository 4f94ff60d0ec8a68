package packing

import (
	"math"
	"slices"
)

// unusedInstances returns how many instances of the capacity reservation the plan does not use yet.
func (pl *planner) unusedInstances(reserve int) int {
	left := pl.stock.Reserves[reserve].Left
	for i := range pl.planned {
		if pl.stock.Offers[pl.planned[i].offer].Reserve == reserve {
			left -= pl.planned[i].copies
		}
	}
	return max(left, 0)
}

// fillReservations places pods of the active classes on instances of the capacity reservations that
// they accept.
func (pl *planner) fillReservations(active []int) {
	accepts := func(c int) bool { return pl.accepts.Sets[pl.currentSet(c)].Meets(pl.stock.Reserved) }
	if len(pl.stock.Reserves) == 0 || !slices.ContainsFunc(active, accepts) {
		return
	}
	pl.priceClasses(active)
	if pl.fillReservationsExactly(active) {
		return
	}
	f := filler{planner: pl, left: pl.left}
	for i, classes := range pl.byReservationNeed(active) {
		if i > 0 {
			pl.planned = f.topUp(pl.planned, classes)
		}
		for pl.steps <= pl.effort {
			pn, ok := f.bestReservedNode(classes)
			if !ok {
				break
			}
			pl.addPlanned(pn, math.MaxInt)
		}
	}
}

// byReservationNeed orders the classes: first those that accept only reservations, then those that
// prefer them, each by priority, then the others.
func (pl *planner) byReservationNeed(classes []int) [][]int {
	var reservedOnly, reservedFirst, others []int
	for _, c := range classes {
		class := &pl.q.classes[c]
		acceptsUnreserved := func(set int) bool {
			offers := pl.accepts.Sets[set].Clone()
			offers.AndNot(pl.stock.Reserved)
			return pl.accepts.AnyTakes(offers, &class.Class)
		}
		switch stages := class.stages[pl.stage[c]:]; {
		case acceptsUnreserved(stages[0]):
			others = append(others, c)
		case slices.ContainsFunc(stages, acceptsUnreserved):
			reservedFirst = append(reservedFirst, c)
		default:
			reservedOnly = append(reservedOnly, c)
		}
	}
	return slices.Concat(pl.tiersOf(reservedOnly), pl.tiersOf(reservedFirst), [][]int{others})
}

// bestReservedNode returns the reserved node with the highest dual price of its pods relative to
// its size.
func (f *filler) bestReservedNode(classes []int) (best plannedNode, ok bool) {
	most := 0.0
	for n := range f.stock.Reserves {
		for _, o := range f.stock.Reserves[n].Offers {
			shape := f.stock.ShapeOf(o)
			if shape.Broken || f.copiesAllowed(o, 1) == 0 {
				continue
			}
			pn := f.nodeWith(o, nil)
			f.fill(&pn, f.groupRows(f.accepting(o, classes)))
			if full := pn.value / max(f.bulkOf(shape.Room), 1e-9); len(pn.allocations) > 0 && full > most {
				best, most = pn, full
			}
		}
	}
	return best, len(best.allocations) > 0
}

// copiesAllowed returns how many nodes of the offering the NodePool's limits and the reservation
// allow, at most limit.
func (pl *planner) copiesAllowed(offer, limit int) int {
	if o := &pl.stock.Offers[offer]; o.IsReserved() {
		limit = min(limit, pl.unusedInstances(o.Reserve))
	}
	return pl.budgets[pl.stock.VariantOf(offer).Pool].Times(pl.stock.TypeOf(offer).Capacity, limit)
}

// addPlanned makes the node part of the plan, with as many copies as limits and pods allow, at most
// limit.
func (pl *planner) addPlanned(pn plannedNode, limit int) {
	pn.copies = pl.copiesAllowed(pn.offer, limit)
	for _, a := range pn.allocations {
		pn.copies = min(pn.copies, pl.left[a.class]/a.n)
	}
	pl.budgets[pl.stock.VariantOf(pn.offer).Pool].Spend(pl.stock.TypeOf(pn.offer).Capacity, pn.copies)
	for _, a := range pn.allocations {
		pl.left[a.class] -= a.n * pn.copies
	}
	pn.price = pl.cheapestPrice(&pn)
	pl.planned = append(pl.planned, pn)
}

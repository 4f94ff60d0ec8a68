package offering

import "slices"

// Lot is a set of offerings that no class distinguishes: they have one model and one shape, and are in the same
// accept sets. Only the cheapest needs to be considered.
type Lot struct {
	Offer int     // the cheapest offer
	Price float64 // its price in billionths of a dollar per hour
	Mark  uint64  // hash of the given accept sets with the lot: the same pods accept lots with the same mark
}

// Lots returns the lots of the offers that are in at least one of the accept sets, except offers of capacity
// reservations.
func (a *Acceptance) Lots(sets []int) []Lot {
	marks := make([]uint64, len(a.Stock.Offers)) // by offer: hash of the sets that it is in; 0: none
	seen := map[int]bool{}
	for _, n := range sets {
		if seen[n] {
			continue
		}
		seen[n] = true
		mark := scramble(uint64(n) + 1)
		a.Sets[n].Each(func(o int) { marks[o] ^= mark })
	}
	var out []Lot
	for _, m := range a.Stock.Models {
		first := len(out)
		for o := m.from; o < m.to; o++ {
			if marks[o] == 0 || a.Stock.ShapeOf(o).IsTooSmall || a.Stock.Offers[o].IsReserved() {
				continue
			}
			// Offers of a model are sorted by price, so the first of a lot is the cheapest.
			alike := func(l Lot) bool {
				return marks[l.Offer] == marks[o] && a.Stock.Offers[l.Offer].shape == a.Stock.Offers[o].shape
			}
			if !slices.ContainsFunc(out[first:], alike) {
				out = append(out, Lot{Offer: o, Price: float64(a.Stock.Offers[o].Price), Mark: marks[o]})
			}
		}
	}
	return out
}

// scramble spreads the bits of x (the finisher of splitmix64), so that the exclusive or over the accept sets of an
// offer identifies these sets. If two different combinations of sets collide, Lots merges two lots: a plan may then be
// more expensive, but not invalid.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

// The rates of one kind also limit what the instances of another kind can hold. Suppose that at some rates no pod is
// worth more than f times its payment. Then the pods on an instance are worth at most f times the price of its whole
// room at these rates. The worth of a pod is its dual price. This file tries the rates of up to maxTriedRates kinds:
// those on which the pods with the largest total worth pay least. At these rates, pods pay little less than they are
// worth.

// maxTriedRates is the maximum number of kinds whose rates are tried on all other kinds.
const maxTriedRates = 16

// rounding exceeds 1 by more than the relative rounding errors of the sums.
const rounding = 1 + 1e-12

type kindRates struct {
	perUnit    []float64 // by resource: price of one unit
	profitable []ratio   // the classes that are worth more than they pay, highest ratio first
}

// ratio is the worth of a pod of a class divided by what the pod pays.
type ratio struct {
	class int
	value float64
}

// setDualPrices sets, in out, the dual prices of the pods, and the limit of each offer of the part.
func (a *ascent) setDualPrices(out *DualPrices) {
	for i := range a.classes {
		for _, d := range a.classes[i].demands {
			out.PerPod[d] = a.dualPrice[i]
		}
	}
	rates := a.cheapRates()
	perUnit := make([]float64, len(a.classes[0].ask))
	factors := make([]float64, len(rates))
	for i := range a.kinds {
		k, byOwnRates := &a.kinds[i], 0.0 // byOwnRates: the price of the whole room at the rates of the kind
		for r, room := range k.room {
			perUnit[r] = 0
			byOwnRates += k.rates[r]
			if room > 0 {
				perUnit[r] = k.rates[r] / room
			}
		}
		for n := range rates {
			factors[n] = rates[n].factor(k)
		}
		most := k.price
		for at, o := range k.offers { // the first offer dominates the others, so its limit holds for them too
			room := a.problem.Offers[o].Room
			out.PerNode[o] = lowestLimit(rates, factors, room, most)
			if at == 0 {
				most = out.PerNode[o]
			}
		}
		if most < byOwnRates {
			continue // the rates of the kind prove no lower limit
		}
		profit := a.profitLimit(k, perUnit, a.dualPrice)
		for _, o := range k.offers {
			out.PerNode[o] = min(out.PerNode[o], profit+roomPrice(perUnit, a.problem.Offers[o].Room))
		}
		for _, o := range k.offers[1:] {
			out.PerNode[o] = min(out.PerNode[o], out.PerNode[k.offers[0]])
		}
	}
}

// lowestLimit returns the lowest limit that any of the rates proves for the room, or most if that is lower.
func lowestLimit(rates []kindRates, factors []float64, room []int64, most float64) float64 {
	for n, f := range factors {
		if f < math.Inf(1) {
			most = min(most, f*roomPrice(rates[n].perUnit, room))
		}
	}
	return most
}

func roomPrice(perUnit []float64, room []int64) float64 {
	sum := 0.0
	for r, n := range room {
		sum += perUnit[r] * float64(max(n, 0))
	}
	return sum
}

// cheapRates returns the rates to try on all kinds.
func (a *ascent) cheapRates() []kindRates {
	worth, kinds := make([]float64, len(a.kinds)), make([]int, len(a.kinds)) // worth: of the pods that pay least on the kind
	for c, i := range a.cheapestKind {
		worth[i] += a.pods[c] * a.dualPrice[c]
	}
	for i := range kinds {
		kinds[i] = i
	}
	slices.SortFunc(kinds, func(x, y int) int { return cmp.Or(cmp.Compare(worth[y], worth[x]), cmp.Compare(x, y)) })
	var out []kindRates
	for _, i := range kinds[:min(len(kinds), maxTriedRates)] {
		if worth[i] > 0 {
			out = append(out, a.ratesOf(&a.kinds[i]))
		}
	}
	return out
}

// ratesOf returns the rates of the kind, with the ratios of the classes that are worth more than they pay.
func (a *ascent) ratesOf(k *kind) kindRates {
	out := kindRates{perUnit: make([]float64, len(k.room))}
	for r, room := range k.room {
		if room > 0 {
			out.perUnit[r] = k.rates[r] / room
		}
	}
	for c, dualPrice := range a.dualPrice {
		pays := 0.0
		for r, ask := range a.classes[c].ask {
			pays += out.perUnit[r] * ask
		}
		if dualPrice > pays*rounding {
			out.profitable = append(out.profitable, ratio{class: c, value: dualPrice / pays}) // infinite if the class pays nothing
		}
	}
	slices.SortFunc(out.profitable, func(x, y ratio) int { return cmp.Or(cmp.Compare(y.value, x.value), cmp.Compare(x.class, y.class)) })
	return out
}

// factor returns the highest ratio of worth to payment of the pods that the kind can hold, or rounding if none is worth
// more than it pays.
func (r *kindRates) factor(k *kind) float64 {
	for _, x := range r.profitable {
		if _, found := slices.BinarySearch(k.classes, x.class); found {
			return x.value
		}
	}
	return rounding
}

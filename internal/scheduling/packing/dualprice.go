package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/dualprice"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

type pricer struct {
	problem *pending.Problem
	queue   *pending.Queue
	solver  *dualprice.Pricer
	work    *work

	dualPrice []float64 // by class: the dual price of one unit, in billionths of a dollar per hour
}

// priceClasses sets the soft dual price (see strategy.hardPrices) of a unit of each active class: the unit's share of
// the lowest possible price of all active classes. All other classes get aboveAnyPrice: those that accept no offering
// must come first, because only an existing node can take their pods.
func (pc *pricer) priceClasses(active []int) {
	p := pc.solver.For(pc.queue.Demands(active), false)
	pc.setDualPrices(active, p, p.DualPrices(false).PerPod)
}

// setDualPrices gives each active class the dual price of its demand, at least Class.MinimalPrice. All other classes
// get aboveAnyPrice. prices is by index in p.Demands.
func (pc *pricer) setDualPrices(active []int, p *dualprice.Pricing, prices []float64) {
	index := p.Index()
	pc.dualPrice = slices.Repeat([]float64{aboveAnyPrice}, len(pc.queue.Classes))
	for _, c := range active {
		class, set := pc.queue.DemandOf(c)
		pc.dualPrice[c] = pc.queue.Classes[c].MinimalPrice()
		if i, ok := index[dualprice.Demand{Class: class, Set: set}]; ok {
			pc.dualPrice[c] = max(pc.dualPrice[c], prices[i])
		}
	}
}

// lotsWithKeys returns a copy of the lots with their keys set. A key is the lowest price that a node of the lot
// can have per total dual price of its pods. perNode is, by index in p.Lots, the highest such total.
func lotsWithKeys(pr *pending.Problem, lots []lot, p *dualprice.Pricing, perNode []float64) []lot {
	maxValue := make([]float64, len(pr.Stock.Models)) // by model: the highest of perNode
	for i, l := range p.Lots {
		m := pr.Stock.Offers[l.Offer].Model
		maxValue[m] = max(maxValue[m], perNode[i])
	}
	out := slices.Clone(lots)
	for i := range out {
		l := &out[i]
		l.key = l.Price / max(maxValue[pr.Stock.Offers[l.Offer].Model], 1e-9)
	}
	return out
}

// priceLots sets the dual prices of the active classes, hard or soft, from the last pricing, and returns the lots with
// their keys.
func (pc *pricer) priceLots(active []int, lots []lot, hard bool) []lot {
	prices := pc.solver.Last.DualPrices(hard)
	pc.setDualPrices(active, pc.solver.Last, prices.PerPod)
	return lotsWithKeys(pc.problem, lots, pc.solver.Last, prices.PerNode)
}

// repriceLots does the same as priceLots, but only for the unplaced units; left is by class. The placed pods took the
// cheapest combinations, so the remaining pods have other prices.
func (pc *pricer) repriceLots(active, left []int, lots []lot, hard bool) []lot {
	p := pc.solver.Last
	index, counts := p.Index(), make([]int, len(p.Demands)) // counts: units left, by demand
	for _, c := range active {
		class, set := pc.queue.DemandOf(c)
		if i, ok := index[dualprice.Demand{Class: class, Set: set}]; ok {
			counts[i] += left[c]
		}
	}
	prices := p.Reprice(counts, hard)
	pc.work.steps += len(p.Demands) * len(p.Lots) / 4 // Reprice takes about as long as this number of steps
	if hard {
		pc.work.steps += len(p.Demands) * len(p.Lots)
	}
	pc.setDualPrices(active, p, prices.PerPod)
	return lotsWithKeys(pc.problem, lots, p, prices.PerNode)
}

// aboveAnyPrice is above the dual price of any pod that accepts an offering: a million dollars per hour, in billionths
// of a dollar.
const aboveAnyPrice = 1e6 * float64(catalog.Dollar)

package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

type search struct {
	p *problem

	all       attempt       // the attempt in which all candidates are removed
	target    catalog.Price // price of the nodes that would be launched if all candidates were removed
	scarce    bool          // free capacity is scarce: see isScarce
	bestTypes []string      // instance types of the nodes that would be launched if all candidates were removed
	wasteful  int           // number of candidates with any waste: see byWaste

	plans       int     // number of plans so far
	plansBefore int     // number of plans before the search with the current threshold
	threshold   float64 // minimum worth of a move: see thresholds

	prefixes map[int]attempt // cache of tryPrefix, by length of the prefix
	bundled  *attempt        // cache of replaceBundles; nil: not planned yet

	declined     map[string]Move // by name of the first node of the move: see decline
	arrivalOrder arrivalOrder    // the order in which moved pods are assumed to arrive

	// Slices of the previous snapshot, whose memory the next snapshot reuses.
	scratchNodes []cluster.Node
	scratchPods  []cluster.Pod
}

// newSearch prepares a search. It makes the first plan: for the pending pods, while all candidates stay.
func newSearch(in Input) *search {
	s := &search{p: newProblem(in), declined: map[string]Move{}, prefixes: map[int]attempt{}}
	s.p.pendingPlan = s.solve(in.Snapshot)
	return s
}

func (s *search) solve(snapshot cluster.Snapshot) packing.Plan {
	s.plans++
	return packing.Solve(snapshot, s.p.in.Market, packing.DefaultEffort)
}

// snapshotWithout returns the snapshot in which the candidates in gone are terminating and their pods are pending; gone
// has one entry per candidate. The result is valid until the next call of snapshotWithout, scratch or
// sequence.snapshotWith.
func (s *search) snapshotWithout(gone []bool) cluster.Snapshot {
	out := s.scratch(s.p.in.Snapshot)
	for i, isGone := range gone {
		if !isGone {
			continue
		}
		c := &s.p.candidates[i]
		out.Nodes[c.at] = c.drained
		s.p.removeFromPool(&out, c)
	}
	// Merge the pods of the candidates with the pending pods: both lists are sorted, and so must be the result.
	pods, pending := s.scratchPods[:0], out.Pods
	for i := range s.p.pods {
		r := &s.p.pods[i]
		if !gone[r.candidate] {
			continue
		}
		for len(pending) > 0 && cluster.ComparePods(pending[0], r.pod) < 0 {
			pods, pending = append(pods, pending[0]), pending[1:]
		}
		pods = append(pods, r.pod)
	}
	s.scratchPods = append(pods, pending...)
	out.Pods = s.scratchPods
	return out
}

// scratch returns a copy of the snapshot whose nodes and pools may be changed. It is valid until the next call of
// scratch, or of a method that calls it.
func (s *search) scratch(of cluster.Snapshot) cluster.Snapshot {
	s.scratchNodes = append(s.scratchNodes[:0], of.Nodes...)
	of.Nodes, of.Pools = s.scratchNodes, slices.Clone(of.Pools)
	return of
}

// planAll plans the removal of all candidates, and sets the fields all, target, scarce and bestTypes. target is the
// price of the planned nodes, without those for the pending pods.
func (s *search) planAll() {
	all := make([]bool, len(s.p.candidates))
	for i := range all {
		all[i] = true
	}
	s.all = s.plan(all)
	s.target = max(priceOf(s.all.plan.PlannedNodes)-priceOf(s.p.pendingPlan.PlannedNodes), 0)
	s.scarce = s.isScarce()
	for i := range s.all.plan.PlannedNodes {
		s.bestTypes = append(s.bestTypes, s.all.plan.PlannedNodes[i].Offerings[0].InstanceType)
	}
}

// thresholds returns the thresholds to try: minimum worths of a move, highest first. A lower threshold is tried only if
// no move meets the higher one, because moving pods for a small saving now can prevent a larger saving later.
func (s *search) thresholds() []float64 {
	if high := initialThresholdFactor * s.p.priceShare(s.p.price-s.target); high > minThresholdRatio*s.p.lowestThreshold() {
		return []float64{high, s.p.lowestThreshold()}
	}
	return []float64{s.p.lowestThreshold()}
}

// lowestThreshold returns the lowest threshold of a search. Only the exchange of a node for one new node may be worth
// less (MinWorthExchange).
func (p *problem) lowestThreshold() float64 { return MinWorth * p.churnFactor() }

func (p *problem) churnFactor() float64 {
	if p.in.HighChurn {
		return HighChurnFactor
	}
	return 1
}

func (s *search) isLowest() bool { return s.threshold <= s.p.lowestThreshold() }

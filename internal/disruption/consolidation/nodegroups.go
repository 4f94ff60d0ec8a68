package consolidation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

const (
	maxGroupNodes      = 3          // maximum number of nodes of a nodeGroup
	maxPodsOfGroupNode = 12         // maximum number of pods of a node in a group
	maxPairedNodes     = 256        // maximum number of nodes for which all pairs are estimated
	maxExtendedPairs   = 100        // maximum number of pairs that are extended by a third node
	maxEstimateWork    = 40_000_000 // estimates × estimator.size, for pairs and again for triples; it takes tenths of a second
	maxGroupPlans      = 48         // plan limit if there are few candidates
	minGroupPlans      = 4          // plan limit if there are many candidates
	groupPlanNodes     = 10_000     // plan limit × candidates, unless minimum or maximum applies (see planLimit)
	extraPodHeadroom   = 4          // percent added to the pods' requests if a plan without it fails
)

// nodeGroup is a group of up to three nodes to remove together.
type nodeGroup struct {
	nodes []int           // candidates
	pods  []estimateGroup // by index into nodes
	price catalog.Price   // of the nodes
	cost  float64         // of moving the pods

	saving        catalog.Price // estimated
	savingPerCost float64       // as Move.savingPerCost, with the estimated saving
}

// tryNodeGroups adds moves of groups of up to three nodes with few pods. If a node has few large pods, its free room
// depends on the combination of these pods. So other instance types, or one node less, may be sufficient for the pods
// of some groups. There are far too many groups to plan each. So the price of new nodes is estimated for each group,
// and the simulation checks the groups with the highest estimated saving per cost. About one group in a hundred passes
// this check, and is planned.
func (x *extension) tryNodeGroups(order []int) {
	nodes := x.withFewPods(order)
	if len(nodes) == 0 {
		return
	}
	l := x.s.newGroupSearch(nodes)
	singlesAndPairs, pairs := l.singlesAndPairs()
	if x.tryBest(l, singlesAndPairs) == 0 {
		x.tryBest(l, l.triples(pairs))
	}
}

// tryBest tries the groups, best first, and returns how many groups lost at least one node.
func (x *extension) tryBest(l *groupSearch, all []nodeGroup) (removed int) {
	slices.SortStableFunc(all, groupsBySavingPerCost)
	var failed []*nodeGroup
	plansLeft := x.p.planLimit(groupPlanNodes, minGroupPlans, maxGroupPlans)
	for i, checks := 0, 0; i < len(all) && plansLeft > 0 && checks < maxNodeChecks; i++ {
		group := &all[i]
		if slices.ContainsFunc(failed, group.isEquivalent) || !x.mayRemove(x.p.nodeNames(group.nodes)) {
			continue
		}
		checks += x.p.podCount(group.nodes) * len(x.sim.nodes) * x.sim.maxTries()
		if !x.wouldSchedule(group.nodes, l.estimator.plannedNodes(group.pods)) {
			continue
		}
		plansLeft--
		if x.try(group.nodes, headroom{}) == 0 && x.try(group.nodes, headroom{pods: extraPodHeadroom}) == 0 {
			failed = append(failed, group)
		} else {
			if removed++; x.sim.order == oneAtATime {
				break // a move with an EvictionOrder is the only move of its result
			}
		}
	}
	return removed
}

func groupsBySavingPerCost(a, b nodeGroup) int { return cmp.Compare(b.savingPerCost, a.savingPerCost) }

// isEquivalent reports whether both groups have equal pods and the same price: if one group fails, so does the other.
func (g *nodeGroup) isEquivalent(other *nodeGroup) bool {
	return g.price == other.price && samePods(g.pods, other.pods)
}

// withFewPods returns the first candidates of the order that have few pods and may be removed, at most maxPairedNodes.
func (x *extension) withFewPods(order []int) []int {
	var out []int
	for _, c := range order {
		n := x.p.candidates[c].node
		if len(n.Pods) > 0 && len(n.Pods) <= maxPodsOfGroupNode && len(out) < maxPairedNodes && !x.isTaken(c) &&
			x.removalsLeft(n.Pool) > 0 && !slices.ContainsFunc(n.Pods, x.isExcluded) {
			out = append(out, c)
		}
	}
	return out
}

func (x *extension) isExcluded(p cluster.Pod) bool {
	return isNotSimulated(p) || x.sim.order == oneAtATime && !isEvictedInSequence(&p)
}

type groupSearch struct {
	s            *search
	p            *problem
	estimator    *estimator
	nodes        []int                 // candidates
	pods         map[int]estimateGroup // by candidate
	maxEstimates int                   // maximum number of estimates for pairs, and again for triples
}

// newGroupSearch prepares the estimates. In an estimate, several pods share a new node only if its instance type is
// that of a candidate with few pods, or would be launched if all candidates were removed. If estimates take long, only
// the first nodes are used: n nodes have about n²/2 pairs.
func (s *search) newGroupSearch(nodes []int) *groupSearch {
	types, gone := map[string]bool{}, make([]bool, len(s.p.candidates))
	for _, name := range s.bestTypes {
		types[name] = true
	}
	for i := range s.p.candidates {
		if n := s.p.candidates[i].node; len(n.Pods) <= maxPodsOfGroupNode {
			types[n.Labels[catalog.LabelInstanceType]] = true
		}
	}
	for _, c := range nodes {
		gone[c] = true
	}
	l := &groupSearch{s: s, p: s.p, estimator: newEstimator(s.snapshotWithout(gone), s.p.in.Market, types), pods: map[int]estimateGroup{}}
	l.maxEstimates = maxEstimateWork / l.estimator.size()
	l.nodes = nodes[:min(len(nodes), int(math.Sqrt(float64(2*l.maxEstimates))))]
	for _, c := range l.nodes {
		l.pods[c] = l.estimator.group(s.p.candidates[c].node.Pods)
	}
	return l
}

// singlesAndPairs returns the single nodes and pairs of nodes that may meet the threshold, and all pairs that save
// anything.
func (l *groupSearch) singlesAndPairs() (promising, savingPairs []nodeGroup) {
	for i, c := range l.nodes {
		if group, ok := l.estimate(c); ok && l.mayMeetThreshold(&group) {
			promising = append(promising, group)
		}
		for _, with := range l.nodes[:i] {
			if group, ok := l.estimate(with, c); ok {
				savingPairs = append(savingPairs, group)
			}
		}
	}
	for i := range savingPairs {
		if l.mayMeetThreshold(&savingPairs[i]) {
			promising = append(promising, savingPairs[i])
		}
	}
	return promising, savingPairs
}

// triples extends the pairs with the highest saving per cost by each further node, and returns the triples that may
// meet the threshold.
func (l *groupSearch) triples(pairs []nodeGroup) []nodeGroup {
	slices.SortStableFunc(pairs, groupsBySavingPerCost)
	var out []nodeGroup
	for _, pair := range pairs[:min(len(pairs), maxExtendedPairs, l.maxEstimates/max(len(l.nodes), 1))] {
		for _, c := range l.nodes {
			if slices.Contains(pair.nodes, c) {
				continue
			}
			if group, ok := l.estimate(pair.nodes[0], pair.nodes[1], c); ok && l.mayMeetThreshold(&group) {
				out = append(out, group)
			}
		}
	}
	return out
}

// estimate estimates the saving of removing the nodes together. It returns false if their removal saves nothing.
func (l *groupSearch) estimate(nodes ...int) (nodeGroup, bool) {
	group := nodeGroup{}
	var groups [maxGroupNodes]estimateGroup
	for i, c := range nodes {
		groups[i] = l.pods[c]
		group.price, group.cost = group.price+l.p.candidates[c].price, group.cost+l.p.candidates[c].cost
	}
	price, ok := l.estimator.estimate(groups[:len(nodes)])
	if !ok || price >= group.price {
		return group, false
	}
	group.saving, group.savingPerCost = group.price-price, (group.price-price).Dollars()/(group.cost+1)
	group.nodes, group.pods = slices.Clone(nodes), slices.Clone(groups[:len(nodes)])
	return group, true
}

// mayMeetThreshold reports whether the group may meet the threshold, according to its estimated saving.
func (l *groupSearch) mayMeetThreshold(group *nodeGroup) bool {
	threshold := l.s.threshold
	if l.s.isLowest() { // in Revalidate, the threshold is 0
		threshold = l.p.lowestThreshold()
	}
	return l.p.priceShare(group.saving) >= threshold*l.p.costShare(group.cost)
}

// wouldSchedule reports whether kube-scheduler would find room for the pods of the nodes on the estimated new nodes and
// on other existing nodes.
func (x *extension) wouldSchedule(nodes []int, plannedNodes []estimatedNode) bool {
	before := len(x.sim.nodes)
	var pods []incomingPod
	for _, c := range nodes {
		n := x.p.candidates[c].node
		for i := range n.Pods {
			pods = append(pods, incomingPod{pod: &n.Pods[i], from: n.Name})
		}
	}
	x.cordon(nodes, true)
	for i := range plannedNodes {
		x.sim.add(fmt.Sprint("~", i), simNodeOfEstimate(&plannedNodes[i]))
	}
	fits := x.sim.schedule(pods) == nil
	if fits {
		x.sim.unbind(pods)
	}
	x.sim.truncate(before)
	x.cordon(nodes, false)
	return fits
}

func simNodeOfEstimate(m *estimatedNode) simNode {
	return simNode{
		isPlanned:   true,
		labels:      labelsOf(m.Type, m.Labels, m.Offering.Zone, m.Offering.CapacityType),
		taints:      m.Taints,
		allocatable: m.Type.Allocatable,
		free:        m.Room,
	}
}

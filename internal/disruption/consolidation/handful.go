package consolidation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// How far handfuls looks.
const (
	maxGroupNodes      = 3          // of a handful
	maxPodsOfGroupNode = 12         // of a node that has few
	maxPairedNodes     = 256        // nodes of which each is looked at with each
	maxExtendedPairs   = 100        // pairs that are looked at with each
	maxEstimateWork    = 40_000_000 // numbers for pairs, and as many for threes: some tenths of a second
	maxGroupPlans      = 48         // plans that are made
	minGroupPlans      = 4          // and where there are many nodes, as each plan takes longer then
	groupPlanNodes     = 10_000     // nodes, counted once for each plan, between the two
	extraPodHeadroom   = 4          // percent that pods are taken for larger where they find no places otherwise
)

// handful is up to three nodes that go together.
type nodeGroup struct {
	nodes []int
	pods  []estimateGroup // by node
	price catalog.Price   // of the nodes
	cost  float64

	saving catalog.Price // about
	worth  float64       // that, for what it takes to move the pods
}

// handfuls adds moves of up to three nodes that have few pods. These are as many large pieces, and what is left free beside them depends on which of
// them came together, so that nodes of other sizes, or one less, may do for those of some nodes. Only very few of all handfuls are worth
// it, of far too many for plans: what each may come to is estimated, and of those that may be worth it, the best first, it is looked whether
// kube-scheduler would find places for the pods on the machines of the estimate. Hardly one in a hundred is left, and planned for.
func (f *extension) tryNodeGroups(order []int) {
	nodes := f.withFewPods(order)
	if len(nodes) == 0 {
		return
	}
	l := f.s.newGroupSearch(nodes)
	all, pairs := l.singlesAndPairs()
	if f.tryBest(l, all) == 0 {
		f.tryBest(l, l.triples(pairs))
	}
}

// wager tries the handfuls, the best first, keeps those that are worth it, and returns how many that were.
func (f *extension) tryBest(l *groupSearch, all []nodeGroup) (kept int) {
	slices.SortStableFunc(all, byGroupWorth)
	var failed []*nodeGroup
	left := f.p.planLimit(groupPlanNodes, minGroupPlans, maxGroupPlans)
	for i, deals := 0, 0; i < len(all) && left > 0 && deals < maxNodeChecks; i++ {
		h := &all[i]
		if slices.ContainsFunc(failed, h.isEquivalent) || !f.mayRemove(f.p.nodeNames(h.nodes)) {
			continue
		}
		deals += f.p.podCount(h.nodes) * len(f.sim.nodes) * f.sim.tries()
		if !f.wouldSchedule(h.nodes, l.estimator.plannedNodes(h.pods)) {
			continue
		}
		left--
		if f.try(h.nodes, headroom{}) == 0 && f.try(h.nodes, headroom{pods: extraPodHeadroom}) == 0 {
			failed = append(failed, h)
		} else {
			if kept++; f.sim.order == oneAtATime {
				break
			}
		}
	}
	return kept
}

func byGroupWorth(a, b nodeGroup) int { return cmp.Compare(b.worth, a.worth) }

// isLike reports whether both have the same pods at the same price: where one comes to nothing, so does the other.
func (h *nodeGroup) isEquivalent(other *nodeGroup) bool {
	return h.price == other.price && samePods(h.pods, other.pods)
}

// fewPods returns the first of the order that have few pods, and may go.
func (f *extension) withFewPods(order []int) []int {
	var out []int
	for _, c := range order {
		n := f.p.candidates[c].node
		if len(n.Pods) > 0 && len(n.Pods) <= maxPodsOfGroupNode && len(out) < maxPairedNodes && !f.mustStay(c) && f.removalsLeft(n.Pool) > 0 && !slices.ContainsFunc(n.Pods, f.isExcluded) {
			out = append(out, c)
		}
	}
	return out
}

// isOut reports whether nodes with such a pod are not looked at.
func (f *extension) isExcluded(p cluster.Pod) bool {
	return isNotSimulated(p) || f.sim.order == oneAtATime && !isEvictedInSequence(&p)
}

// systemCritical is the least priority of what a cluster cannot do without: users' classes have at most half of it.
const systemCritical = 2_000_000_000

// takesTurns reports whether the pod leaves when it is told to, and its successor comes at once under another name, as those of a ReplicaSet do: others
// make theirs only when the old one has ended. Pods that are critical leave after all others of their node, those that tolerate that it leaves never.
func isEvictedInSequence(p *cluster.Pod) bool {
	leaving := requirements.Taint{Key: disruptedTaint, Effect: requirements.NoSchedule}
	return (p.Owner == "" || strings.HasPrefix(p.Owner, "ReplicaSet/")) && p.Priority < systemCritical && !requirements.Tolerated(leaving, p.Tolerations)
}

// karpenterDisrupted is the taint of nodes that leave.
const disruptedTaint = "karpenter.sh/disrupted"

// lens is what handfuls are estimated with.
type groupSearch struct {
	s            *search
	p            *problem
	estimator    *estimator
	nodes        []int
	pods         map[int]estimateGroup // by node
	maxEstimates int                   // estimates
}

// newLens knows the pods of the nodes, and lets them share machines of the types that these are, or that would be bought if all nodes went. Where an
// estimate takes long, only the first of the nodes are looked at.
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

// pairs returns each node, and each with each, as far as it may be worth it; and all pairs that save anything.
func (l *groupSearch) singlesAndPairs() (worth, saving []nodeGroup) {
	for i, c := range l.nodes {
		if h, ok := l.estimate(c); ok && l.mayBeWorth(&h) {
			worth = append(worth, h)
		}
		for _, with := range l.nodes[:i] {
			if h, ok := l.estimate(with, c); ok {
				saving = append(saving, h)
			}
		}
	}
	for i := range saving {
		if l.mayBeWorth(&saving[i]) {
			worth = append(worth, saving[i])
		}
	}
	return worth, saving
}

// threes returns those of the pairs that save most, each with each other node, as far as it may be worth it.
func (l *groupSearch) triples(pairs []nodeGroup) []nodeGroup {
	slices.SortStableFunc(pairs, byGroupWorth)
	var out []nodeGroup
	for _, pair := range pairs[:min(len(pairs), maxExtendedPairs, l.maxEstimates/max(len(l.nodes), 1))] {
		for _, c := range l.nodes {
			if slices.Contains(pair.nodes, c) {
				continue
			}
			if h, ok := l.estimate(pair.nodes[0], pair.nodes[1], c); ok && l.mayBeWorth(&h) {
				out = append(out, h)
			}
		}
	}
	return out
}

// look estimates what the nodes may come to together, and reports whether that saves anything.
func (l *groupSearch) estimate(nodes ...int) (nodeGroup, bool) {
	h := nodeGroup{}
	var its [maxGroupNodes]estimateGroup
	for i, c := range nodes {
		its[i] = l.pods[c]
		h.price, h.cost = h.price+l.p.candidates[c].Price, h.cost+l.p.candidates[c].Cost
	}
	price, ok := l.estimator.estimate(its[:len(nodes)])
	if !ok || price >= h.price {
		return h, false
	}
	h.saving, h.worth = h.price-price, (h.price-price).Dollars()/(h.cost+1)
	h.nodes, h.pods = slices.Clone(nodes), slices.Clone(its[:len(nodes)])
	return h, true
}

// isWager reports whether the handful may be worth as much as the bar asks for.
func (l *groupSearch) mayBeWorth(h *nodeGroup) bool {
	bar := l.s.threshold
	if l.s.isLowest() {
		bar = l.p.lowestThreshold()
	}
	return l.p.priceShare(h.saving) >= bar*l.p.costShare(h.cost)
}

// wouldFit reports whether kube-scheduler would find places for the pods of the nodes on those machines, and on what other nodes have left.
func (f *extension) wouldSchedule(nodes []int, machines []estimatedNode) bool {
	before := len(f.sim.nodes)
	var pods []incomingPod
	for _, c := range nodes {
		n := f.p.candidates[c].node
		for i := range n.Pods {
			pods = append(pods, incomingPod{pod: &n.Pods[i], from: n.Name})
		}
	}
	f.cordon(nodes, true)
	for i := range machines {
		f.sim.add(fmt.Sprint("~", i), simNodeOfEstimate(&machines[i]))
	}
	fits := f.sim.schedule(pods) == nil
	if fits {
		f.sim.unbind(pods)
	}
	f.sim.truncate(before)
	f.cordon(nodes, false)
	return fits
}

func simNodeOfEstimate(m *estimatedNode) simNode {
	return simNode{planned: true, labels: labelsOf(m.Type, m.Labels, m.Offering.Zone, m.Offering.CapacityType), taints: m.Taints, allocatable: m.Type.Allocatable, free: m.Room}
}

func (p *problem) podCount(candidates []int) int {
	n := 0
	for _, c := range candidates {
		n += len(p.candidates[c].node.Pods)
	}
	return n
}

func (p *problem) nodeNames(candidates []int) []string {
	out := make([]string, len(candidates))
	for i, c := range candidates {
		out[i] = p.candidates[c].node.Name
	}
	return out
}

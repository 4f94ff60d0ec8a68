package consolidation

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// minSpotTypes is the minimum number of instance types that can replace a spot instance. With fewer types,
// consolidation would tend to the cheapest spot type, which is soon interrupted. The value is Karpenter's.
const minSpotTypes = 15

// evaluate returns the move's part of the score of an attempt, and whether the move is worth it. stuck are candidates
// that cannot be removed. evaluate sets Move.Worth, and removes offerings of planned nodes with which the move would
// not save money. It records a move that saves less than MinWorth or its pools require (decline).
func (s *search) evaluate(m *Move, stuck map[int]bool) (score float64, ok bool) {
	if m.Saving <= 0 || s.p.price == 0 {
		return 0, false
	}
	for _, name := range m.Nodes {
		if stuck[s.p.byNode[name]] {
			return 0, false
		}
	}
	if share := s.p.costShare(m.Cost); share > 0 {
		m.Worth = s.p.priceShare(m.Saving) / share
	}
	if m.Saving < s.p.riskOf(m) {
		return 0, false
	}
	if !s.p.meetsRules(m) {
		s.decline(m)
		return 0, false
	}
	threshold := s.threshold
	if s.isLowest() { // the exchange of one node may be worth less
		threshold = min(threshold, s.p.minWorth(m))
	}
	score = s.p.priceShare(m.Saving) - threshold*s.p.costShare(m.Cost)
	return score, score >= 0 && s.p.keepSavingOfferings(m)
}

// minWorth returns the minimum worth of the move without the rules of its pools.
func (p *problem) minWorth(m *Move) float64 {
	if len(m.Nodes) == 1 && len(m.PlannedNodes) == 1 && len(m.Placements) == 0 {
		return MinWorthExchange * p.churnFactor()
	}
	return p.lowestThreshold()
}

func (p *problem) priceShare(amount catalog.Price) float64 { return float64(amount) / float64(p.price) }

// costShare returns cost as a share of the cost of moving the pods of all candidates, 0 if that cost is 0.
func (p *problem) costShare(cost float64) float64 {
	if p.cost == 0 {
		return 0
	}
	return cost / p.cost
}

// riskOf returns the minimum saving of a move with constrained pods that launches nodes, or with pods whose nodes the
// simulation cannot predict (isNotSimulated): the price of the cheapest node for one of these pods, the most expensive
// one. kube-scheduler may leave such a pod pending, and a node is launched for it. riskOf returns 0 for other moves.
func (p *problem) riskOf(m *Move) catalog.Price {
	var risk catalog.Price
	for _, name := range m.Nodes {
		n := p.candidates[p.byNode[name]].node
		for i := range n.Pods {
			if pod := &n.Pods[i]; isNotSimulated(*pod) || len(m.PlannedNodes) > 0 && isConstrained(pod) {
				risk = max(risk, p.cheapestNode(n, pod))
			}
		}
	}
	return risk
}

// cheapestNode returns the lowest price among the offerings for the node's NodePool that have room for the pod; 0 if
// there are none.
func (p *problem) cheapestNode(n *cluster.Node, pod *cluster.Pod) catalog.Price {
	key := nodeKey{n.NodeClass, n.Pool, pod.Requests.CPU, pod.Requests.Memory}
	lowest, known := p.cheapest[key]
	if known {
		return lowest
	}
	for _, t := range p.in.Market.Types(n.NodeClass, n.Pool) {
		if !pod.Requests.Fits(t.Allocatable) {
			continue
		}
		for _, o := range t.Offerings {
			if lowest == 0 || o.Price < lowest {
				lowest = o.Price
			}
		}
	}
	p.cheapest[key] = lowest
	return lowest
}

// nodeKey is the key of problem.cheapest: where the node is launched, and what the pod requests.
type nodeKey struct {
	nodeClass, pool string
	cpu, memory     int64
}

// meetsRules reports whether the move meets the rules of the pools of all of its nodes.
func (p *problem) meetsRules(m *Move) bool {
	for _, name := range m.Nodes {
		rule := p.in.Rules[p.candidates[p.byNode[name]].node.Pool]
		least := max(rule.LeastWorth, p.minWorth(m))
		if m.Saving < rule.MinSaving || float64(m.Saving) < rule.MinSavingShare*float64(m.Price) ||
			p.priceShare(m.Saving) < least*p.costShare(m.Cost) {
			return false
		}
	}
	return true
}

// keepSavingOfferings removes the offerings with which the move might not save money. The price of each planned node
// may rise by an equal part of the saving, so that the move saves with any combination of the remaining offerings.
// keepSavingOfferings reports whether each planned node keeps enough offerings.
func (p *problem) keepSavingOfferings(m *Move) bool {
	spot := p.isSpotToSpot(m)
	for i := range m.PlannedNodes {
		plannedNode := &m.PlannedNodes[i]
		limit := plannedNode.Price() + m.Saving/catalog.Price(len(m.PlannedNodes))
		kept := slices.DeleteFunc(slices.Clone(plannedNode.Offerings), func(c packing.Choice) bool {
			return c.Price >= limit || spot && c.CapacityType == catalog.Spot && !p.in.SpotToSpot
		})
		if spot && p.in.SpotToSpot {
			if len(m.Nodes) == 1 && instanceTypeCount(kept) < minSpotTypes { // Karpenter, too, checks only single nodes
				return false
			}
			kept = cheapestTypes(kept, minSpotTypes)
		}
		if len(kept) == 0 || kept[0].Price > plannedNode.Price() {
			return false // the cheapest offering was removed, and the saving is based on its price
		}
		narrowed, ok := narrow(*plannedNode, kept)
		if !ok {
			return false
		}
		*plannedNode = narrowed
	}
	return true
}

// isSpotToSpot reports whether the move replaces only spot instances and may launch one.
func (p *problem) isSpotToSpot(m *Move) bool {
	for _, name := range m.Nodes {
		if p.candidates[p.byNode[name]].node.Labels[catalog.LabelCapacityType] != catalog.Spot {
			return false
		}
	}
	return slices.ContainsFunc(m.PlannedNodes, func(planned packing.PlannedNode) bool {
		return slices.ContainsFunc(planned.Offerings, func(c packing.Choice) bool { return c.CapacityType == catalog.Spot })
	})
}

func instanceTypeCount(choices []packing.Choice) int {
	types := map[string]bool{}
	for i := range choices {
		types[choices[i].InstanceType] = true
	}
	return len(types)
}

// cheapestTypes returns the choices of the n cheapest instance types. The choices must be sorted by price.
func cheapestTypes(choices []packing.Choice, n int) []packing.Choice {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(choices), func(c packing.Choice) bool {
		if !seen[c.InstanceType] && len(seen) == n {
			return true
		}
		seen[c.InstanceType] = true
		return false
	})
}

// narrow returns the planned node with only the offerings in kept. It returns false if these have too few values for a
// minValues of its pool.
func narrow(planned packing.PlannedNode, kept []packing.Choice) (packing.PlannedNode, bool) {
	values := map[string]map[string]bool{catalog.LabelInstanceType: {}, catalog.LabelZone: {}, catalog.LabelCapacityType: {}}
	for i := range kept {
		values[catalog.LabelInstanceType][kept[i].InstanceType] = true
		values[catalog.LabelZone][kept[i].Zone] = true
		values[catalog.LabelCapacityType][kept[i].CapacityType] = true
	}
	keepsAll := len(kept) == len(planned.Offerings)
	planned.Offerings, planned.Requirements = kept, slices.Clone(planned.Requirements)
	for i := range planned.Requirements {
		r := &planned.Requirements[i]
		left, ok := values[r.Key]
		if !ok || r.Operator != requirements.In {
			if !keepsAll && r.MinValues > 0 {
				return planned, false // the remaining types' values of other labels are not known here
			}
			continue
		}
		r.Values = slices.DeleteFunc(slices.Clone(r.Values), func(v string) bool { return !left[v] })
		if len(r.Values) < r.MinValues {
			return planned, false
		}
	}
	return planned, true
}

package fairness

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

const (
	// rulesFactor multiplies the cost of pods that cost more than 1, because the solver also compares their rules with
	// each other.
	rulesFactor = 4
	// soleResourceCost is added for each extended resource that no other kind of pods requests, because the resource
	// adds a dimension to all resource vectors of the plan.
	soleResourceCost = 8
)

// maxCountedRules is the maximum number of rules and host ports of a pod of which Cost also counts the details. A pod
// with more of them costs more than Share.CostlyAbove in any case.
const maxCountedRules = 1000

// Cost returns what the pod costs in a plan, in units of Share. It does not include soleResourceCost, which depends on
// the other pods. Cost takes time in proportion to the number of the pod's rules, up to maxCountedRules.
func Cost(p *cluster.Pod) int {
	rules := len(p.Required) + len(p.Preferred) + len(p.HostPorts) + len(p.Spread) + len(p.Affinity) + len(p.AntiAffinity)
	if rules > maxCountedRules {
		return rules
	}
	if cost := podgroup.Cost(p); cost > 1 {
		return cost * rulesFactor
	}
	return 1
}

// costOf returns what the pod costs. known has the costs of pods by UID. users has, by extended resource, how many
// kinds of pods request it.
func costOf(p *cluster.Pod, known, users map[string]int) int {
	cost, ok := known[p.UID]
	if !ok {
		cost = Cost(p)
	}
	for _, e := range p.Requests.Extended {
		if users[e.Name] == 1 {
			cost += soleResourceCost
		}
	}
	return cost
}

package fairness

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

const (
	// costlyFactor is how much more a unit of cost counts for pods that cost more than an ordinary one: their rules are also
	// compared with each other.
	costlyFactor = 4
	// ownResourceCost is for an extended resource that no other pod asks for: each one makes all amounts of the plan longer.
	ownResourceCost = 8
)

// certain is how many demands make a pod cost more than any share: their details are not counted.
const certain = 1000

// Cost returns what the pod costs in a plan, but for what it asks for that no other pod does. It takes time in proportion to the
// pod's rules, and at most that of some thousand.
func Cost(p *cluster.Pod) int {
	if n := len(p.Required) + len(p.Preferred) + len(p.HostPorts) + len(p.Spread) + len(p.Affinity) + len(p.AntiAffinity); n > certain {
		return n
	}
	if cost := podgroup.Cost(p); cost > 1 {
		return cost * costlyFactor
	}
	return 1
}

// costOf returns what the pod costs. Known are costs of pods by UID; users are how many kinds of pods ask for each extended resource.
func costOf(p *cluster.Pod, known, users map[string]int) int {
	cost, ok := known[p.UID]
	if !ok {
		cost = Cost(p)
	}
	for _, e := range p.Requests.Extended {
		if users[e.Name] == 1 {
			cost += ownResourceCost
		}
	}
	return cost
}

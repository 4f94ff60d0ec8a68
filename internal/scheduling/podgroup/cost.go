package podgroup

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// What one demand costs the solver, in points. They are measured ratios, rounded: a rule about other pods is matched with
// labels and counted on nodes; a host port or an extended resource is compared on each node; a value is only looked up.
const (
	rulePoints       = 8 // a spread constraint, affinity term or anti-affinity term
	volumePoints     = 8 // a shared volume claim
	preferencePoints = 4 // a preferred node affinity term
	resourcePoints   = 4 // an extended resource
	termPoints       = 2 // a required node affinity term
	portPoints       = 2 // a host port
	keyPoints        = 1 // a label in a term or selector
	tolerationPoints = 1 // a toleration
	valuesPerPoint   = 8 // values of a label, or namespaces of a term

	ordinaryPoints = 64 // what the demands of an ordinary pod come to at most
	unitPoints     = 16 // what each further unit of cost stands for
)

// Cost returns about what the pod costs the solver, in units: 1 for an ordinary pod, and 1 more for each 16 points of demands
// beyond the 64 that ordinary pods have at most. A pod with 50 anti-affinity terms costs about 28, one with 200 host ports 22,
// one with 10,000 node affinity terms 1,872. The function is pure and takes time in proportion to the number of the pod's terms.
//
// Pods that share their demands (cluster.Pod.SharesDemands) are one class: the class costs the solver this once, and each further
// pod next to nothing.
func Cost(p *cluster.Pod) int {
	points := demandPoints(p)
	return 1 + max(0, points-ordinaryPoints)/unitPoints
}

// demandPoints returns what all demands of the pod cost together.
func demandPoints(p *cluster.Pod) int {
	points := len(p.Tolerations)*tolerationPoints + len(p.HostPorts)*portPoints +
		len(p.Requests.Extended)*resourcePoints + len(p.Volumes)*volumePoints
	for _, r := range p.Required {
		points += termPoints + requirementPoints(r)
	}
	for i := range p.Preferred {
		points += preferencePoints + requirementPoints(p.Preferred[i].Requirements)
	}
	for i := range p.Spread {
		points += rulePoints + requirementPoints(p.Spread[i].Selector.Labels)
	}
	for _, terms := range [...][]cluster.Term{p.Affinity, p.AntiAffinity} {
		for i := range terms {
			points += rulePoints + requirementPoints(terms[i].Selector.Labels) + len(terms[i].Namespaces)/valuesPerPoint
		}
	}
	return points
}

// requirementPoints returns what it costs to match labels with the requirements.
func requirementPoints(r requirements.Requirements) int {
	points := len(r) * keyPoints
	for _, v := range r {
		points += len(v.Listed) / valuesPerPoint
	}
	return points
}

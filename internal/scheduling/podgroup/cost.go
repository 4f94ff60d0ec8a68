package podgroup

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// These constants are the cost of one requirement of a pod for the solver, in points. They are measured ratios,
// rounded. A rule about other pods costs most, because the solver matches it with labels and counts pods for it on
// nodes. A host port or an extended resource costs less: the solver compares it on each node. A label or a toleration
// costs least: the solver only looks it up.
const (
	rulePoints       = 8 // a spread constraint, affinity term or anti-affinity term
	volumePoints     = 8 // a shared volume claim
	preferencePoints = 4 // a preferred node affinity term
	resourcePoints   = 4 // an extended resource
	termPoints       = 2 // a required node affinity term
	portPoints       = 2 // a host port
	keyPoints        = 1 // a label in a term or selector
	tolerationPoints = 1 // a toleration
	valuesPerPoint   = 8 // this many values of a label, or namespaces of a term, are one point

	ordinaryPoints = 64 // an ordinary pod has at most this many points
	unitPoints     = 16 // points for each further unit of cost, beyond ordinaryPoints
)

// Cost estimates the cost of the pod for the solver, in units: 1 for an ordinary pod of at most 64 points, and 1 more
// for each further 16 points. Examples:
//
//   - a pod with 50 anti-affinity terms of two labels each: 28
//   - a pod with 200 host ports: 22
//   - a pod with 10,000 node affinity terms of one label each: 1,872
//
// Cost is a pure function. Its time is proportional to the number of the pod's terms.
//
// Pods that share their requirements (cluster.Pod.SharesConstraints) are one class. The class has this cost once, and
// each further pod of the class costs almost nothing.
func Cost(p *cluster.Pod) int {
	points := podPoints(p)
	return 1 + max(0, points-ordinaryPoints)/unitPoints
}

func podPoints(p *cluster.Pod) int {
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

func requirementPoints(r requirements.Requirements) int {
	points := len(r) * keyPoints
	for _, v := range r {
		points += len(v.Listed) / valuesPerPoint
	}
	return points
}

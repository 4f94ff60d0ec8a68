package provisioner

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/scheduling/fairness"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Plan is the nodestate.Solver of the controller.
func Plan(s cluster.Snapshot, market catalog.Market) packing.Plan {
	return packing.Solve(s, market, packing.DefaultEffort)
}

// BoundedSolver returns a Solver for loops that need only an approximate plan. Its plans refuse the pods whose rules
// exceed their share of a plan. A move that needs a place for a refused pod is not continued.
func BoundedSolver(solve nodestate.Solver) nodestate.Solver {
	return func(s cluster.Snapshot, market catalog.Market) packing.Plan {
		division := fairness.Divide(s.Pods, fairness.SliceState{}, fairness.DefaultShare())
		if len(division.Now) == len(s.Pods) {
			return solve(s, market)
		}
		costly := except(s.Pods, division.Now)
		s.Pods = division.Now
		plan := solve(s, market)
		for i := range costly {
			reason := packing.Reason{Code: packing.EffortSpent, Count: 1, Detail: "the pod's scheduling rules exceed its share of one plan"}
			plan.Refusals = append(plan.Refusals, packing.Refusal{Pod: costly[i].ID(), Reasons: []packing.Reason{reason}})
		}
		slices.SortStableFunc(plan.Refusals, func(a, b packing.Refusal) int { return strings.Compare(a.Pod, b.Pod) })
		return plan
	}
}

// JoinFacts has the facts about the cluster that an instance needs to join.
type JoinFacts = bootstrap.Cluster

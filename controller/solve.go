package controller

import (
	"github.com/joiner-sh/joiner/bootstrap"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/packing"
)

// Plan is the Solver that the controller runs with.
func Plan(s cluster.Snapshot, market catalog.Market) packing.Plan {
	return packing.Solve(s, market, packing.Usual)
}

// JoinFacts are what an instance must know of its cluster to join it.
type JoinFacts = bootstrap.Cluster

package nodestate

import (
	"context"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Snapshots reads the state of the cluster.
type Snapshots interface {
	Snapshot(ctx context.Context, now time.Time, market catalog.Market) (cluster.Snapshot, error)
}

// Markets returns the available offerings. The market is nil until the offerings are known.
type Markets interface {
	Market(now time.Time) catalog.Market
}

// Solver computes a plan: packing.Solve with the effort that the controller allows.
type Solver func(cluster.Snapshot, catalog.Market) packing.Plan

// InstanceTypesOf returns the instance types of the node's offerings in their order, at most maxTypes.
func InstanceTypesOf(n packing.PlannedNode, maxTypes int) []string {
	var out []string
	for _, o := range n.Offerings {
		if !slices.Contains(out, o.InstanceType) && len(out) < maxTypes {
			out = append(out, o.InstanceType)
		}
	}
	return out
}

package poolhealth

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Marked returns a copy of the pools in which pools that wait at now are marked as unusable.
func (h *LaunchBackoff) Marked(pools []cluster.Pool, now time.Time) []cluster.Pool {
	pools = slices.Clone(pools)
	for i, pool := range pools {
		until, why := h.Held(now, pool.Name)
		if until.IsZero() || pool.Unusable != "" {
			continue
		}
		pools[i].Unusable = why + "; the next try is at " + until.UTC().Format(time.TimeOnly) + " UTC"
	}
	return pools
}

// Allows reports whether all of the planned nodes may be launched at now. For a pool whose canary is due, only one node
// may be launched. If the result is true, the nodes are recorded as launched.
func (h *LaunchBackoff) Allows(machines []packing.PlannedNode, now time.Time) bool {
	wanted := map[string]int{}
	for i := range machines {
		wanted[machines[i].Pool]++
	}
	for pool, n := range wanted {
		if until, _ := h.Held(now, pool); !until.IsZero() || n > 1 && h.IsCanaryDue(now, pool) {
			return false
		}
	}
	for pool := range wanted {
		h.Sent(now, pool)
	}
	return true
}

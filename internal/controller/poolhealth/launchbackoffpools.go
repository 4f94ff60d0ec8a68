package poolhealth

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// MarkHeld returns a copy of pools that marks those that wait at now as unusable.
func (h *LaunchBackoff) MarkHeld(pools []cluster.Pool, now time.Time) []cluster.Pool {
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

// Admit reports whether all of the planned nodes may be launched at now, and if so records them as launched. For a pool
// whose canary is due, only one node may be launched.
func (h *LaunchBackoff) Admit(planned []packing.PlannedNode, now time.Time) bool {
	count := map[string]int{} // planned nodes by pool
	for i := range planned {
		count[planned[i].Pool]++
	}
	for pool, n := range count {
		if until, _ := h.Held(now, pool); !until.IsZero() || n > 1 && h.IsCanaryDue(now, pool) {
			return false
		}
	}
	for pool := range count {
		h.NoteLaunch(now, pool)
	}
	return true
}

package verify

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// checkLimits checks that the pools' limits hold whichever offering each planned node is launched as.
func (c *checker) checkLimits() {
	for i := range c.snapshot.Pools {
		pool := &c.snapshot.Pools[i]
		if len(pool.Limits.Ceiling) == 0 && pool.Limits.Nodes == nil {
			continue
		}
		used, planned := pool.Usage, 0
		for _, p := range c.places {
			if len(p.offers) > 0 && p.offers[0].pool == pool {
				planned++
				used = used.Add(largestCapacity(p.offers))
			}
		}
		if planned > 0 {
			c.checkLimit(pool, used, planned)
		}
	}
}

// largestCapacity returns the maximum capacity over the offers, for each resource by itself.
func largestCapacity(offers []*offer) resources.Amounts {
	var most resources.Amounts
	var last *catalog.Type // skips further offers of the same type
	for _, o := range offers {
		if o.typ != last {
			most = most.Max(o.typ.Capacity)
			last = o.typ
		}
	}
	return most
}

// checkLimit checks the limits of one pool, with that number of planned nodes. used is the capacity of all its nodes. A
// resource that exceeds its limit already without planned nodes is a violation only if planned nodes add to it.
func (c *checker) checkLimit(pool *cluster.Pool, used resources.Amounts, planned int) {
	if limit := pool.Limits.Nodes; limit != nil && pool.Nodes+planned > *limit {
		c.report("pool %s would have %d nodes, its limit is %d", pool.Name, pool.Nodes+planned, *limit)
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Limits.Ceiling)) {
		limit := pool.Limits.Ceiling[name]
		if n := used.Of(name); n > limit && n > pool.Usage.Of(name) {
			c.report("pool %s could have %s of %s, its limit is %s", pool.Name,
				resources.Format(name, n), name, resources.Format(name, limit))
		}
	}
}

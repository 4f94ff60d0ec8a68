package verify

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// limits checks that the pools' limits hold whichever offering each planned node is launched as.
func (c *checker) limits() {
	for i := range c.snapshot.Pools {
		pool := &c.snapshot.Pools[i]
		if len(pool.Limits.Ceiling) == 0 && pool.Limits.Nodes == nil {
			continue
		}
		used, bought := pool.Usage, 0
		for _, at := range c.places {
			if len(at.offers) > 0 && at.offers[0].pool == pool {
				bought++
				used = used.Add(largest(at.offers))
			}
		}
		if bought > 0 {
			c.limit(pool, used, bought)
		}
	}
}

// largest returns the maximum of each resource over the offers.
func largest(offers []*offer) resources.Amounts {
	var most resources.Amounts
	var last *catalog.Type
	for _, o := range offers {
		if o.typ != last {
			most = most.Max(o.typ.Capacity)
			last = o.typ
		}
	}
	return most
}

func (c *checker) limit(pool *cluster.Pool, used resources.Amounts, bought int) {
	if most := pool.Limits.Nodes; most != nil && pool.Nodes+bought > *most {
		c.broken("pool %s would have %d nodes, its limit is %d", pool.Name, pool.Nodes+bought, *most)
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Limits.Ceiling)) {
		most := pool.Limits.Ceiling[name]
		if n := used.Of(name); n > most && n > pool.Usage.Of(name) {
			c.broken("pool %s could have %s of %s, its limit is %s", pool.Name,
				resources.Format(name, n), name, resources.Format(name, most))
		}
	}
}

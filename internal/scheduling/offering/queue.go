package offering

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Queue returns the pods of the snapshot to place. It passes the extended resources of the market to podgroup.NewFor.
func Queue(s cluster.Snapshot, market catalog.Market) *podgroup.Queue {
	return podgroup.NewFor(s, func() map[string]bool {
		out := map[string]bool{}
		add := func(types []catalog.Type) {
			for i := range types {
				for _, e := range types[i].Allocatable.Extended {
					out[e.Name] = true
				}
			}
		}
		for _, c := range market {
			add(c.Types)
			for _, types := range c.Pools {
				add(types)
			}
		}
		return out
	})
}

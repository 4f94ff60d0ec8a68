package offering

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Queue returns the pods of the snapshot to place, with this market.
func Queue(s cluster.Snapshot, market catalog.Market) *podgroup.Queue {
	return podgroup.NewFor(s, func() map[string]bool {
		out := map[string]bool{}
		note := func(types []catalog.Type) {
			for i := range types {
				for _, e := range types[i].Allocatable.Extended {
					out[e.Name] = true
				}
			}
		}
		for _, c := range market {
			note(c.Types)
			for _, types := range c.Pools {
				note(types)
			}
		}
		return out
	})
}

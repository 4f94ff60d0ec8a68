package consolidation

import (
	"cmp"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// bound returns a lower bound on the price of nodes for all current pods. It plans running and pending pods alike, as
// pending pods of a cluster without nodes.
func bound(f *fleet.Fleet) catalog.Price {
	s := f.Objects().Snapshot(f.View())
	pending := cluster.Snapshot{Taken: s.Taken, Pools: s.Pools, Daemons: s.Daemons}
	seen := map[string]bool{} // a pod that is being moved may be listed on its old and its new node
	add := func(pods []cluster.Pod) {
		for _, p := range pods {
			if id := p.ID(); !seen[id] {
				seen[id], p.Node = true, ""
				pending.Pods = append(pending.Pods, p)
			}
		}
	}
	add(s.Pods)
	for i := range s.Nodes {
		add(s.Nodes[i].Pods)
	}
	slices.SortFunc(pending.Pods, func(a, b cluster.Pod) int { return cmp.Compare(a.ID(), b.ID()) })
	return packing.Solve(pending, f.Market, packing.DefaultEffort).LowerBound
}

// boundOverTime returns the lower bound of a fleet over time, sampled at scanInterval during churnTime, while pods come
// and go. It advances the fleet without a controller, because a controller does not change which pods exist.
func boundOverTime(f *fleet.Fleet, churnTime time.Duration) []fleet.Step {
	var out []fleet.Step
	changes := -1 // value of f.Changes at the last sample; -1: no sample yet
	for at := time.Duration(0); at < churnTime; at += scanInterval {
		if f.Advance(fleet.Start.Add(at)); f.Changes() != changes {
			out, changes = append(out, fleet.Step{From: at, Price: bound(f)}), f.Changes()
		}
	}
	return out
}

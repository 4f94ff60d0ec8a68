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

// bound is the least that the pods could cost which are there now, those included that wait.
func bound(f *fleet.Fleet) catalog.Price {
	s := f.Objects().Snapshot(f.View())
	all := cluster.Snapshot{Taken: s.Taken, Pools: s.Pools, Daemons: s.Daemons}
	seen := map[string]bool{} // a pod that moves may be where it is, and where it will be
	add := func(pods []cluster.Pod) {
		for _, p := range pods {
			if id := p.ID(); !seen[id] {
				seen[id], p.Node = true, ""
				all.Pods = append(all.Pods, p)
			}
		}
	}
	add(s.Pods)
	for i := range s.Nodes {
		add(s.Nodes[i].Pods)
	}
	slices.SortFunc(all.Pods, func(a, b cluster.Pod) int { return cmp.Compare(a.ID(), b.ID()) })
	return packing.Solve(all, f.Market, packing.Usual).LowerBound
}

// leastOf is the bound of a fleet that nobody is in charge of, as its pods come and go for so long: which of them are there depends on
// nobody. It is looked at as often as the sides look, so what it sums up to is a sample.
func leastOf(f *fleet.Fleet, lasts time.Duration) []fleet.Step {
	var out []fleet.Step
	changes := -1
	for at := time.Duration(0); at < lasts; at += looking {
		if f.Advance(fleet.Start.Add(at)); f.Changes() != changes {
			out, changes = append(out, fleet.Step{From: at, Price: bound(f)}), f.Changes()
		}
	}
	return out
}

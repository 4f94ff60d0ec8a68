package consolidation_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestMovesOfConstrainedPods: a node for 4 cents is replaced with one for 3 cents. The move of a constrained pod must
// save 3 cents, the price of the cheapest node for this pod.
func TestMovesOfConstrainedPods(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: 3 * cent}, 1)
	term := cluster.Term{Key: "kubernetes.io/hostname", Namespaces: []string{"x"}, Selector: cluster.Selector{MatchesNothing: true}}
	preference, zonal := term, term
	preference.Weight, zonal.Key = 1, catalog.LabelZone
	for name, c := range map[string]struct {
		price  catalog.Price // of the node
		change func(*cluster.Pod)
		moves  int
	}{
		"unconstrained":               {price: 4 * cent, change: func(*cluster.Pod) {}, moves: 1},
		"preference":                  {price: 4 * cent, change: func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{preference} }, moves: 1},
		"anti-affinity":               {price: 4 * cent, change: func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{term} }},
		"anti-affinity, large saving": {price: 6 * cent, change: func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{term} }, moves: 1},
		"in zones":                    {price: 4 * cent, change: func(p *cluster.Pod) { p.AntiAffinity = []cluster.Term{zonal} }},
		"volume":                      {price: 4 * cent, change: func(p *cluster.Pod) { p.Volumes = []string{"x/data"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleetOf(market, nodeSpec{4, catalog.OnDemand, c.price, []int64{500}})
			in.Snapshot.Nodes[0].Labels["kubernetes.io/hostname"] = "n0"
			c.change(&in.Snapshot.Nodes[0].Pods[0])
			if out := consolidation.Find(in); len(out.Moves) != c.moves {
				t.Errorf("%d moves, want %d: %+v", len(out.Moves), c.moves, out.Moves)
			}
		})
	}
}

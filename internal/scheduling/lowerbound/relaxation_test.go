package lowerbound_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

// dice is a small random generator that returns the same numbers in every run.
type dice uint64

func (d *dice) roll(n int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int(uint64(*d) >> 33 % uint64(n))
}

// newProblem returns a problem with offers like those of a cloud provider: families with different
// memory per core, sizes that double, and prices roughly in proportion. The resources are CPU in millicores, memory in
// MiB, pods and devices.
func newProblem(seed uint64, offers, demands, sets, groups int, devices bool) lowerbound.Problem {
	d := dice(seed)
	var p lowerbound.Problem
	for range offers {
		cores := int64(2) << d.roll(6)
		room := []int64{cores*980 - 60, cores * (1 << (10 + d.roll(4))) * 93 / 100, 8 + 25*min(cores, 8), 0}
		price := (24*cores + 3*room[1]/1024) * int64(85+d.roll(30))
		if devices && d.roll(3) == 0 {
			room[3] = max(cores/8, 1)
			price += room[3] * 40_000
		}
		p.Offers = append(p.Offers, lowerbound.Offer{Price: catalog.Price(price) * catalog.Dollar / 100_000, Room: room})
	}
	for s := range sets {
		var set []int
		for o := range offers {
			if s == 0 || d.roll(sets) < sets/2 {
				set = append(set, o)
			}
		}
		p.Sets = append(p.Sets, set)
	}
	for range groups {
		p.Caps = append(p.Caps, 1+d.roll(2)*d.roll(3))
	}
	for i := range demands {
		ask := []int64{int64(50 * (1 + d.roll(60))), int64(64 * (1 + d.roll(100))), 1, 0}
		if d.roll(3) == 0 {
			ask[0], ask[1] = ask[0]/10+10, ask[1]/8
		}
		if devices && d.roll(5) == 0 {
			ask[3] = 1
		}
		demand := lowerbound.Demand{Count: 1 + d.roll(40), Ask: ask, Set: d.roll(sets)}
		if groups > 0 && d.roll(4) > 0 {
			demand.Groups = []int{i % groups}
		}
		p.Demands = append(p.Demands, demand)
	}
	return p
}

// TestBoundIsNearRelaxation checks that on average the bound is within 0.1 % of the optimum of the linear
// relaxation. The bound of the ascent alone, which larger problems use, must be within 0.3 %.
func TestBoundIsNearRelaxation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                          string
		offers, demands, sets, groups int
		devices                       bool
	}{
		{"plain", 12, 12, 1, 0, false},
		{"many", 16, 24, 1, 0, false},
		{"sets", 12, 16, 4, 0, false},
		{"devices", 12, 16, 2, 0, true},
		{"one group per demand", 10, 12, 1, 12, false},
		{"groups of several demands", 10, 12, 1, 4, false},
		{"everything", 10, 14, 3, 8, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var sum, worst, alone float64
			const seeds = 20
			for seed := range uint64(seeds) {
				p := newProblem(seed+1, c.offers, c.demands, c.sets, c.groups, c.devices)
				best := relaxation(p)
				loss := max(1-float64(lowerbound.Compute(p).Price)/best, 0)
				sum, worst = sum+loss, max(worst, loss)
				p.Effort = 1 // too little for column generation
				alone += max(1-float64(lowerbound.Compute(p).Price)/best, 0)
			}
			summary := fmt.Sprintf("%.3f %% below the optimum on average (limit 0.1), %.3f %% at worst, %.3f %% without column generation (limit 0.3)",
				100*sum/seeds, 100*worst, 100*alone/seeds)
			if sum/seeds > 0.001 || alone/seeds > 0.003 {
				t.Error(summary)
			}
			t.Log(summary)
		})
	}
}

package lowerbound_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

// smallProblem draws a problem that is small enough to try every plan. It returns the problem and its pods, each as a
// Demand.
func smallProblem(t *rapid.T) (lowerbound.Problem, []lowerbound.Demand) {
	var p lowerbound.Problem
	for range rapid.IntRange(1, 4).Draw(t, "offers") {
		p.Offers = append(p.Offers, lowerbound.Offer{
			Price: catalog.Price(rapid.IntRange(0, 50).Draw(t, "price")) * catalog.Dollar / 10,
			Room: []int64{int64(rapid.IntRange(0, 8).Draw(t, "cpu")), int64(rapid.IntRange(0, 8).Draw(t, "mem")),
				int64(rapid.IntRange(0, 2).Draw(t, "gpu"))},
		})
	}
	for range 2 {
		p.Sets = append(p.Sets, rapid.SliceOfNDistinct(rapid.IntRange(0, len(p.Offers)-1), 0, len(p.Offers), rapid.ID).Draw(t, "set"))
	}
	p.Caps = rapid.SliceOfN(rapid.IntRange(0, 3), 2, 2).Draw(t, "caps")
	var pods []lowerbound.Demand
	for range rapid.IntRange(1, 4).Draw(t, "demands") {
		d := lowerbound.Demand{
			Count: rapid.IntRange(0, 3).Draw(t, "count"), Set: rapid.IntRange(0, 1).Draw(t, "set"),
			Ask: []int64{
				int64(rapid.IntRange(0, 5).Draw(t, "askCPU")), int64(rapid.IntRange(0, 5).Draw(t, "askMem")),
				int64(rapid.IntRange(0, 1).Draw(t, "askGPU")),
			},
			Groups: rapid.SampledFrom([][]int{nil, nil, {0}, {1}, {0, 1}}).Draw(t, "groups"),
		}
		p.Demands = append(p.Demands, d)
		for range d.Count {
			if len(pods) < 7 {
				pods = append(pods, d)
			} else {
				p.Demands[len(p.Demands)-1].Count--
			}
		}
	}
	return p, pods
}

// TestBoundIsBelowEveryPlan compares the bound with the cheapest of all plans for a few pods, and
// the dual prices with all sets of pods that fit on an instance.
func TestBoundIsBelowEveryPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, pods := smallProblem(t)
		got := lowerbound.Compute(p)
		if best := cheapest(p, pods); !math.IsInf(best, 1) && float64(got.Price) > best {
			t.Errorf("the bound is %s, but a plan costs %.9f dollars", got.Price, best/1e9)
		}
		checkDualPrices(t, p, got.Soft)
		checkDualPrices(t, p, got.Hard)
	})
}

// TestConcurrentCalls checks that concurrent calls of Bound and DualPrices return the same as sequential calls.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, _ := smallProblem(t)
		counts := make([]int, len(p.Demands))
		for i := range counts {
			counts[i] = rapid.IntRange(0, p.Demands[i].Count).Draw(t, "count")
		}
		s := lowerbound.New(p)
		result := make(chan lowerbound.Result)
		go func() { result <- s.Bound() }()
		dualPrices := s.DualPrices(counts, true)
		if got, want := <-result, lowerbound.Compute(p); !reflect.DeepEqual(got, want) {
			t.Errorf("concurrent bound %v, want the sequential bound %v", got, want)
		}
		if sequential := lowerbound.New(p).DualPrices(counts, true); !reflect.DeepEqual(dualPrices, sequential) {
			t.Errorf("concurrent dual prices %v, want the sequential dual prices %v", dualPrices, sequential)
		}
	})
}

// TestRepeatedDualPrices checks that repeated calls of DualPrices on one solver return the same as a new solver.
func TestRepeatedDualPrices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, _ := smallProblem(t)
		s := lowerbound.New(p)
		for range 3 {
			counts := make([]int, len(p.Demands))
			for i := range counts {
				counts[i] = rapid.IntRange(0, p.Demands[i].Count).Draw(t, "count")
			}
			hard := rapid.Bool().Draw(t, "hard")
			dualPrices := s.DualPrices(counts, hard)
			checkDualPrices(t, p, dualPrices)
			if want := lowerbound.New(p).DualPrices(counts, hard); !slices.Equal(dualPrices.PerPod, want.PerPod) ||
				!slices.Equal(dualPrices.PerNode, want.PerNode) {
				t.Errorf("the solver returns %v, want the same as a new solver: %v", dualPrices, want)
			}
		}
	})
}

// checkDualPrices checks that the pods on an instance are worth at most PerNode, and that PerNode is at most the price.
func checkDualPrices(t *rapid.T, p lowerbound.Problem, prices lowerbound.DualPrices) {
	for o, offer := range p.Offers {
		if prices.PerNode[o] > float64(offer.Price)*(1+1e-9) {
			t.Errorf("offer %d costs %s, its PerNode is %.0f billionths of a dollar, want at most the price",
				o, offer.Price, prices.PerNode[o])
		}
		if full := fullest(p, prices.PerPod, o); full > prices.PerNode[o]*(1+1e-9)+1e-3 {
			t.Errorf("offer %d holds pods worth %.0f billionths, want at most PerNode, %.0f", o, full, prices.PerNode[o])
		}
	}
}

// cheapest returns the price of the cheapest plan. It tries every partition of the pods and, like the bound, ignores
// pods that fit no offer.
func cheapest(p lowerbound.Problem, pods []lowerbound.Demand) float64 {
	pods = slices.DeleteFunc(slices.Clone(pods), func(d lowerbound.Demand) bool {
		return math.IsInf(cheapestOffer(p, []lowerbound.Demand{d}), 1)
	})
	var nodes [][]lowerbound.Demand
	best := math.Inf(1)
	var assign func(i int, spent float64)
	assign = func(i int, spent float64) {
		if i == len(pods) {
			best = min(best, spent)
			return
		}
		for m := range nodes {
			before := cheapestOffer(p, nodes[m])
			nodes[m] = append(nodes[m], pods[i])
			if after := cheapestOffer(p, nodes[m]); spent+after-before < best {
				assign(i+1, spent+after-before)
			}
			nodes[m] = nodes[m][:len(nodes[m])-1]
		}
		nodes = append(nodes, []lowerbound.Demand{pods[i]})
		assign(i+1, spent+cheapestOffer(p, pods[i:i+1]))
		nodes = nodes[:len(nodes)-1]
	}
	assign(0, 0)
	return best
}

// cheapestOffer returns the price of the cheapest offer that holds these pods together; infinite if none does.
func cheapestOffer(p lowerbound.Problem, pods []lowerbound.Demand) float64 {
	best := math.Inf(1)
	for o, offer := range p.Offers {
		if fits(p, pods, o) {
			best = min(best, float64(offer.Price))
		}
	}
	return best
}

func fits(p lowerbound.Problem, pods []lowerbound.Demand, o int) bool {
	used, inGroup := make([]int64, len(p.Offers[o].Room)), make([]int, len(p.Caps))
	for _, d := range pods {
		if !slices.Contains(p.Sets[d.Set], o) {
			return false
		}
		for r, a := range d.Ask {
			if used[r] += a; used[r] > p.Offers[o].Room[r] {
				return false
			}
		}
		for _, g := range d.Groups {
			if inGroup[g]++; inGroup[g] > p.Caps[g] {
				return false
			}
		}
	}
	return true
}

// fullest returns the highest worth of pods that fit on one instance.
func fullest(p lowerbound.Problem, dualPrice []float64, o int) float64 {
	var pods []lowerbound.Demand
	best := 0.0
	var fill func(i int, sum float64)
	fill = func(i int, sum float64) {
		best = max(best, sum)
		if i == len(p.Demands) {
			return
		}
		had := len(pods)
		for n := 0; n <= p.Demands[i].Count && fits(p, pods, o); n++ {
			fill(i+1, sum+float64(n)*dualPrice[i])
			pods = append(pods, p.Demands[i])
		}
		pods = pods[:had]
	}
	fill(0, 0)
	return best
}

// TestBoundIsBelowFirstFit compares the bound of larger problems with plans of a
// first-fit heuristic.
func TestBoundIsBelowFirstFit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		d := dice(seed)
		offers, demands, sets, groups := 3+d.roll(20), 2+d.roll(30), 1+d.roll(3), d.roll(2)*d.roll(20)
		p := newProblem(seed+100, offers, demands, sets, groups, seed%3 == 0)
		got, plan := lowerbound.Compute(p).Price, firstFit(p)
		if float64(got) > plan || got <= 0 && plan > 0 {
			t.Errorf("seed %d: the bound is %s, want above 0 and at most the price of a plan, %.9f dollars", seed, got, plan/1e9)
		}
	}
}

// firstFit puts each pod on the first instance with room. If there is none, it launches the offer with the lowest price
// per pod of the demand. It returns the price of the plan.
func firstFit(p lowerbound.Problem) float64 {
	type node struct {
		offer int
		pods  []lowerbound.Demand
	}
	var nodes []node
	spent := 0.0
	for _, d := range p.Demands {
		for range d.Count {
			at := slices.IndexFunc(nodes, func(m node) bool { return fits(p, append(slices.Clip(m.pods), d), m.offer) })
			if at >= 0 {
				nodes[at].pods = append(nodes[at].pods, d)
				continue
			}
			best, ratio := -1, math.Inf(1)
			for _, o := range p.Sets[d.Set] {
				n := 0
				for n < d.Count && fits(p, slices.Repeat([]lowerbound.Demand{d}, n+1), o) {
					n++
				}
				if r := float64(p.Offers[o].Price) / float64(n); n > 0 && r < ratio {
					best, ratio = o, r
				}
			}
			if best < 0 {
				break // the pod fits no offer
			}
			nodes = append(nodes, node{offer: best, pods: []lowerbound.Demand{d}})
			spent += float64(p.Offers[best].Price)
		}
	}
	return spent
}

package bound_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/bound"
	"github.com/joiner-sh/joiner/catalog"
)

func TestLeast(t *testing.T) {
	t.Parallel()
	const d = catalog.Dollar
	small, large := bound.Offer{Price: 1 * d, Room: []int64{2, 4}}, bound.Offer{Price: 3 * d, Room: []int64{4, 32}}
	for name, c := range map[string]struct {
		problem bound.Problem
		want    catalog.Price
	}{
		"nothing": {bound.Problem{}, 0},
		"one kind of pod fills whole machines": {bound.Problem{
			Offers: []bound.Offer{small}, Sets: [][]int{{0}}, Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}}},
		}, 2 * d},
		"at least one machine": {bound.Problem{
			Offers: []bound.Offer{small, large}, Sets: [][]int{{0, 1}}, Demands: []bound.Demand{{Count: 1, Ask: []int64{1, 8}}},
		}, 3 * d},
		"the cheaper family by processors": {bound.Problem{
			Offers: []bound.Offer{small, large}, Sets: [][]int{{0, 1}},
			Demands: []bound.Demand{{Count: 10, Ask: []int64{1, 1}}, {Count: 10, Ask: []int64{1, 2}}},
		}, 10 * d},
		"two parts that share no offer add up": {bound.Problem{
			Offers: []bound.Offer{small, large}, Sets: [][]int{{0}, {1}},
			Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}, Set: 0}, {Count: 4, Ask: []int64{1, 1}, Set: 1}},
		}, 5 * d},
		"what nothing can hold costs nothing": {bound.Problem{
			Offers: []bound.Offer{small}, Sets: [][]int{{}, {0}}, Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}}, {Count: 1, Ask: []int64{9, 9}, Set: 1}},
		}, 0},
		"one pod of a group on a machine": {bound.Problem{
			Offers: []bound.Offer{small, large}, Sets: [][]int{{0, 1}}, Caps: []int{1},
			Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}},
		}, 4 * d},
		"two kinds of pods of one group, two on a machine": {bound.Problem{
			Offers: []bound.Offer{large}, Sets: [][]int{{0}}, Caps: []int{2},
			Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}, {Count: 2, Ask: []int64{1, 2}, Groups: []int{0}}},
		}, 9 * d},
		"a group that no machine takes costs nothing": {bound.Problem{
			Offers: []bound.Offer{small}, Sets: [][]int{{0}}, Caps: []int{0},
			Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}, {Count: 2, Ask: []int64{1, 1}}},
		}, 1 * d},
		"free machines": {bound.Problem{
			Offers: []bound.Offer{small, {Room: []int64{8, 8}}}, Sets: [][]int{{0, 1}},
			Demands: []bound.Demand{{Count: 4, Ask: []int64{1, 1}}, {Count: 4, Ask: []int64{1, 2}}},
		}, 0},
	} {
		if got := bound.Least(c.problem).Price; got > c.want || got < c.want-c.want/100_000 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestLeastIsLower compares with the best of all ways to pack a few pods.
func TestLeastIsLower(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p bound.Problem
		for range rapid.IntRange(1, 4).Draw(t, "offers") {
			p.Offers = append(p.Offers, bound.Offer{
				Price: catalog.Price(rapid.IntRange(0, 50).Draw(t, "price")) * catalog.Dollar / 10,
				Room:  []int64{int64(rapid.IntRange(0, 8).Draw(t, "cpu")), int64(rapid.IntRange(0, 8).Draw(t, "mem")), int64(rapid.IntRange(0, 2).Draw(t, "gpu"))},
			})
		}
		for range 2 {
			p.Sets = append(p.Sets, rapid.SliceOfNDistinct(rapid.IntRange(0, len(p.Offers)-1), 0, len(p.Offers), rapid.ID).Draw(t, "set"))
		}
		p.Caps = rapid.SliceOfN(rapid.IntRange(1, 2), 2, 2).Draw(t, "caps")
		var pods []bound.Demand
		for range rapid.IntRange(1, 3).Draw(t, "demands") {
			d := bound.Demand{Count: rapid.IntRange(1, 2).Draw(t, "count"), Set: rapid.IntRange(0, 1).Draw(t, "set"), Ask: []int64{
				int64(rapid.IntRange(0, 5).Draw(t, "askCPU")), int64(rapid.IntRange(0, 5).Draw(t, "askMem")), int64(rapid.IntRange(0, 1).Draw(t, "askGPU")),
			}}
			d.Groups = rapid.SampledFrom([][]int{nil, {0}, {1}, {0, 1}}).Draw(t, "groups")
			p.Demands = append(p.Demands, d)
			for range d.Count {
				pods = append(pods, d)
			}
		}
		got, best := bound.Least(p), cheapest(p, pods)
		if math.IsInf(best, 1) {
			return // no plan at all
		}
		if float64(got.Price) > best {
			t.Errorf("the bound is %s, and there is a plan for %.9f dollars", got.Price, best/1e9)
		}
		for i, o := range p.Offers {
			if got.Holds[i] > float64(o.Price)*(1+1e-9) {
				t.Errorf("offer %d costs %s, and its pods are worth %.0f billionths", i, o.Price, got.Holds[i])
			}
		}
	})
}

// cheapest tries every partition of the pods into machines.
func cheapest(p bound.Problem, pods []bound.Demand) float64 {
	var machines [][]bound.Demand
	best := math.Inf(1)
	var assign func(i int)
	assign = func(i int) {
		if i == len(pods) {
			sum := 0.0
			for _, m := range machines {
				sum += one(p, m)
			}
			best = min(best, sum)
			return
		}
		for m := range machines {
			machines[m] = append(machines[m], pods[i])
			assign(i + 1)
			machines[m] = machines[m][:len(machines[m])-1]
		}
		machines = append(machines, []bound.Demand{pods[i]})
		assign(i + 1)
		machines = machines[:len(machines)-1]
	}
	assign(0)
	return best
}

// one returns the price of the cheapest offer that holds these pods.
func one(p bound.Problem, pods []bound.Demand) float64 {
	best := math.Inf(1)
	for o, offer := range p.Offers {
		fits := true
		used, inGroup := make([]int64, len(offer.Room)), make([]int, len(p.Caps))
		for _, d := range pods {
			inSet := false
			for _, s := range p.Sets[d.Set] {
				inSet = inSet || s == o
			}
			fits = fits && inSet
			for r, a := range d.Ask {
				used[r] += a
			}
			for _, g := range d.Groups {
				inGroup[g]++
				fits = fits && inGroup[g] <= p.Caps[g]
			}
		}
		for r := range used {
			fits = fits && used[r] <= offer.Room[r]
		}
		if fits {
			best = min(best, float64(offer.Price))
		}
	}
	return best
}

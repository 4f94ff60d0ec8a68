package lowerbound_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

func TestBound(t *testing.T) {
	t.Parallel()
	const d = catalog.Dollar
	small, large := lowerbound.Offer{Price: 1 * d, Room: []int64{2, 4}}, lowerbound.Offer{Price: 3 * d, Room: []int64{4, 32}}
	for name, c := range map[string]struct {
		problem lowerbound.Problem
		want    catalog.Price
	}{
		"nothing": {lowerbound.Problem{}, 0},
		"one class fills whole nodes": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small}, Sets: [][]int{{0}}, Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}}},
		}, 2 * d},
		"at least one node": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, large}, Sets: [][]int{{0, 1}}, Demands: []lowerbound.Demand{{Count: 1, Ask: []int64{1, 8}}},
		}, 3 * d},
		"CPU is cheaper on small": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, large}, Sets: [][]int{{0, 1}},
			Demands: []lowerbound.Demand{{Count: 10, Ask: []int64{1, 1}}, {Count: 10, Ask: []int64{1, 2}}},
		}, 10 * d},
		"two parts that share no offer add up": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, large}, Sets: [][]int{{0}, {1}},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}, Set: 0}, {Count: 4, Ask: []int64{1, 1}, Set: 1}},
		}, 5 * d},
		"pods that fit no offer cost nothing": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small}, Sets: [][]int{{}, {0}},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}}, {Count: 1, Ask: []int64{9, 9}, Set: 1}},
		}, 0},
		"one pod of a group per node": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, large}, Sets: [][]int{{0, 1}}, Caps: []int{1},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}},
		}, 4 * d},
		"two classes in one group, two pods per node": {lowerbound.Problem{
			Offers: []lowerbound.Offer{large}, Sets: [][]int{{0}}, Caps: []int{2},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}, {Count: 2, Ask: []int64{1, 2}, Groups: []int{0}}},
		}, 9 * d},
		"a group that fits no offer costs nothing": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small}, Sets: [][]int{{0}}, Caps: []int{0},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}, Groups: []int{0}}, {Count: 2, Ask: []int64{1, 1}}},
		}, 1 * d},
		"three pods, two per node": {lowerbound.Problem{
			Offers: []lowerbound.Offer{large}, Sets: [][]int{{0}}, Caps: []int{2},
			Demands: []lowerbound.Demand{{Count: 2, Ask: []int64{1, 1}, Groups: []int{0}}, {Count: 1, Ask: []int64{1, 2}, Groups: []int{0}}},
		}, 6 * d},
		"cheapest offer for a partly filled node": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, large}, Sets: [][]int{{0, 1}}, Demands: []lowerbound.Demand{{Count: 9, Ask: []int64{1, 2}}},
		}, 5 * d},
		"no pods and no groups": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small}, Sets: [][]int{{0}}, Caps: []int{1},
			Demands: []lowerbound.Demand{{Ask: []int64{1, 1}, Groups: []int{0}}},
		}, 0},
		"offer with price 0": {lowerbound.Problem{
			Offers: []lowerbound.Offer{small, {Room: []int64{8, 8}}}, Sets: [][]int{{0, 1}},
			Demands: []lowerbound.Demand{{Count: 4, Ask: []int64{1, 1}}, {Count: 4, Ask: []int64{1, 2}}},
		}, 0},
	} {
		if got := lowerbound.Compute(c.problem).Price; got > c.want || got < c.want-c.want/100_000 {
			t.Errorf("%s: the bound is %s, want %s", name, got, c.want)
		}
	}
}

// TestLargePods has more classes than column generation accepts. At most 1, 2, 3 or 4 of the 1,200 pods fit on a node.
func TestLargePods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ least, spread, perNode int64 }{{510, 480, 1}, {340, 150, 2}, {260, 70, 3}, {201, 48, 4}} {
		p := lowerbound.Problem{Offers: []lowerbound.Offer{{Price: catalog.Dollar, Room: []int64{1000, 5000}}}, Sets: [][]int{{0}}}
		for i := range int64(400) {
			p.Demands = append(p.Demands, lowerbound.Demand{Count: 3, Ask: []int64{c.least + i*7%c.spread, 100 + i%50}})
		}
		want := catalog.Price(1200 * int64(catalog.Dollar) / c.perNode)
		if got := lowerbound.Compute(p).Price; got > want || got < want*999/1000 {
			t.Errorf("%d pods per node: the bound is %s, want %s", c.perNode, got, want)
		}
	}
}

// TestOnePodPerNodeOnManySizes has nodes of 400 sizes, each with the same small reserved part. A fifth of the pods is
// in the first group, with one pod per node: each of these pods pays for the reserved part of its node.
func TestOnePodPerNodeOnManySizes(t *testing.T) {
	t.Parallel()
	p := lowerbound.Problem{Sets: [][]int{nil}, Caps: []int{1, 1, 1, 1, 1}}
	for n := range int64(400) {
		p.Sets[0] = append(p.Sets[0], int(n))
		p.Offers = append(p.Offers, lowerbound.Offer{Price: catalog.Price(n+1) * catalog.Dollar,
			Room: []int64{1000*(n+1) - 100, 2048*(n+1) - 10, 10 * (n + 1)}})
	}
	// Of the pods of each size, 50 are in the first group, one is in each of four other groups, and 201 are in no
	// group.
	millis := int64(0) // CPU of the pods, and the reserved 100 of each node with a pod of the first group
	for _, cpu := range []int64{100, 250, 500, 1000, 1500} {
		for _, memory := range []int64{100, 256, 512, 1024, 2048, 4096} {
			for group, count := range []int{50, 1, 1, 1, 1, 201} {
				d := lowerbound.Demand{Count: count, Ask: []int64{cpu, memory, 1}}
				if group < len(p.Caps) {
					d.Groups = []int{group}
				}
				p.Demands = append(p.Demands, d)
				millis += cpu * int64(count)
			}
			millis += 100 * 50
		}
	}
	want := catalog.Price(millis) * catalog.Dollar / 1000
	if got := lowerbound.Compute(p).Price; got < want*999/1000 {
		t.Errorf("the bound is %s, want at least the price of the pods and the reserved parts, %s", got, want)
	}
}

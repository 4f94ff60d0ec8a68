package lowerbound

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestMaxWorth compares the proved bound of a node, for any dual prices, with all possible contents. It also checks
// that the pods that were found fit on the node.
func TestMaxWorth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, dualPrice := oneKind(t)
		k := &g.kinds[0]
		threshold := k.price * rapid.Float64Range(0, 3).Draw(t, "threshold")
		proved, found := g.maxWorth(k, dualPrice, threshold)
		full := 0.0
		m := knapsack{part: g.part, kind: k, dualPrice: dualPrice, used: g.used, podNumbers: make([]int32, len(k.classes)), left: slices.Clone(k.room)}
		m.eachContents(0, func() { full = max(full, m.value) })
		if full > max(proved, threshold)*(1+1e-9) {
			t.Fatalf("the node holds pods worth %g, but the proved limit is %g; threshold is %g", full, proved, threshold)
		}
		perUnit := make([]float64, len(k.rates))
		for r, rate := range k.rates {
			if k.room[r] > 0 {
				perUnit[r] = rate / k.room[r]
			}
		}
		byRates := g.profitLimit(k, perUnit, dualPrice)
		for _, rate := range k.rates {
			byRates += rate
		}
		if full > byRates*(1+1e-9) {
			t.Fatalf("the node holds pods worth %g, but the limit by its rates is %g", full, byRates)
		}
		for _, pods := range found {
			m.checkFits(t, pods)
		}
	})
}

// TestSearch checks that search finds the best pods on a node, and that the table has an upper bound for each position.
func TestSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, dualPrice := oneKind(t)
		k := &g.kinds[0]
		m := knapsack{part: g.part, kind: k, dualPrice: dualPrice, used: g.used, podNumbers: make([]int32, len(k.classes)),
			left: slices.Clone(k.room), limit: 1 << 30}
		m.relaxed = g.relax(k, dualPrice, 0, rapid.IntRange(1, maxPlanes).Draw(t, "planes"))
		m.arrange(math.Inf(1), rapid.IntRange(1, 9).Draw(t, "pods"))
		m.search(0, m.profits())
		full := 0.0
		m.eachContents(0, func() { full = max(full, m.value) })
		if m.most > full*(1+1e-9) || m.most < full*(1-1e-9)-wholeTolerance*k.price {
			t.Fatalf("found pods worth %g, but the best are worth %g", m.most, full)
		}
		for at := range m.order {
			best := 0.0
			m.eachContents(0, func() {
				sum := m.value
				for _, i := range m.order[:at] {
					sum -= float64(m.podNumbers[i]) * dualPrice[k.classes[i]]
				}
				best = max(best, sum)
			})
			if most := m.after.most(at, m.left, m.freeRoomPrice()); most < best*(1-1e-9)-1e-3 {
				t.Fatalf("from position %d of the order, the best pods are worth %g, but the table has %g", at, best, most)
			}
		}
	})
}

// oneKind draws an offer, classes that fit on the offer, and dual prices of up to 0.7 times the price of the offer.
func oneKind(t *rapid.T) (*generation, []float64) {
	scale := rapid.SampledFrom([]int64{1, 7, 1000}).Draw(t, "scale")
	p := &Problem{Offers: []Offer{{Price: catalog.Dollar,
		Room: []int64{12*scale + 3, rapid.Int64Range(1, 14).Draw(t, "mem") * scale}}}, Sets: [][]int{{0}}}
	p.Caps = rapid.SliceOfN(rapid.IntRange(1, 4), 2, 2).Draw(t, "caps")
	for range rapid.IntRange(1, 6).Draw(t, "demands") {
		p.Demands = append(p.Demands, Demand{
			Count:  rapid.IntRange(1, 5).Draw(t, "count"),
			Ask:    []int64{rapid.Int64Range(0, 9*scale).Draw(t, "askCPU"), rapid.SampledFrom([]int64{0, 0, 1, 3, 6}).Draw(t, "askMem") * scale},
			Groups: rapid.SampledFrom([][]int{nil, nil, {0}, {1}, {0, 1}}).Draw(t, "groups"),
		})
	}
	if all := parts(*p); len(all) > 0 {
		q := all[0]
		g := &generation{part: q, used: make([]int, 2), nodeLimit: rapid.SampledFrom([]int{1, 5, maxSearchNodes}).Draw(t, "nodes")}
		var dualPrice []float64
		for range q.classes {
			dualPrice = append(dualPrice, rapid.Float64Range(0, 0.7).Draw(t, "worth")*float64(catalog.Dollar))
		}
		return g, dualPrice
	}
	t.Skip("nothing fits")
	return nil, nil
}

// eachContents calls visit for every set of pods that fits on the node.
func (m *knapsack) eachContents(at int, visit func()) {
	if at == len(m.podNumbers) {
		visit()
		return
	}
	n := m.roomFor(at)
	for ; n > 0; n-- {
		m.place(at, n)
		m.eachContents(at+1, visit)
		m.place(at, -n)
	}
	m.eachContents(at+1, visit)
}

func (m *knapsack) checkFits(t *rapid.T, pods []podCount) {
	left := slices.Clone(m.kind.room)
	for _, x := range pods {
		c := &m.classes[x.class]
		if x.n > float64(c.cap)*(1+1e-9) {
			t.Fatalf("the node has %g pods of class %d, want at most %d", x.n, x.class, c.cap)
		}
		for r, a := range c.ask {
			if left[r] -= x.n * a; left[r] < -1e-6*m.kind.room[r] {
				t.Fatalf("pods %v do not fit into %v", pods, m.kind.room)
			}
		}
	}
}

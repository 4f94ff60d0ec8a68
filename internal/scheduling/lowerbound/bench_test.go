package lowerbound_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

// region returns the on-demand offers of us-east-1 in one zone, one for each of the given number of types.
func region(b *testing.B, types int) []lowerbound.Offer {
	table, err := catalog.Embedded()
	if err != nil {
		b.Fatal(err)
	}
	c, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	var out []lowerbound.Offer
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			if a := t.Allocatable; o.CapacityType == catalog.OnDemand && len(out) < types {
				out = append(out, lowerbound.Offer{Price: o.Price, Room: []int64{a.CPU, a.Memory >> 20, a.EphemeralStorage >> 20, a.Pods}})
				break
			}
		}
	}
	if len(out) < types {
		b.Fatalf("us-east-1 has %d types with on-demand offerings, want %d", len(out), types)
	}
	return out
}

// mixed returns demands of many sizes. Each of the first demands, as many as groups, has a group with a cap of 1.
func mixed(offers []lowerbound.Offer, demands, groups int) lowerbound.Problem {
	d := dice(1)
	p := lowerbound.Problem{Offers: offers, Sets: [][]int{nil}}
	for o := range offers {
		p.Sets[0] = append(p.Sets[0], o)
	}
	for i := range demands {
		ask := []int64{int64(10 * (5 + d.roll(300))), int64(16 * (4 + d.roll(400))), int64(d.roll(100)), 1}
		if d.roll(3) == 0 {
			ask[0], ask[1] = ask[0]/10+10, ask[1]/8
		}
		demand := lowerbound.Demand{Count: 1 + d.roll(30), Ask: ask}
		if i < groups {
			p.Caps = append(p.Caps, 1)
			demand.Groups = []int{i}
		}
		p.Demands = append(p.Demands, demand)
	}
	return p
}

// zoned returns the offers in three zones, and demands that each accept some of the zones and families.
func zoned(offers []lowerbound.Offer, demands, sets int) lowerbound.Problem {
	p := mixed(offers, demands, demands/2)
	n := len(offers)
	p.Offers, p.Sets = slices.Repeat(offers, 3), nil
	d := dice(2)
	for s := range sets {
		// zones has a bit for each zone. family is left out if it is at most 8; seven adjacent offers are one family.
		zones, family := 1+d.roll(7), d.roll(12)
		var set []int
		for o := range p.Offers {
			if s == 0 || zones>>(o/n)&1 == 1 && (family > 8 || o%n/7%9 != family) {
				set = append(set, o)
			}
		}
		p.Sets = append(p.Sets, set)
	}
	for i := range p.Demands {
		p.Demands[i].Set = d.roll(sets)
	}
	return p
}

// BenchmarkCompute should take at most 2 s for 1,000 demands and 1,000 offers, with
// groups or without.
func BenchmarkCompute(b *testing.B) {
	offers := region(b, 1000)
	for _, c := range []struct {
		name            string
		demands, groups int
		dualPrices      bool // measure DualPrices, not Compute
	}{
		{"10-demands", 10, 0, false},
		{"100-demands", 100, 0, false},
		{"1000-demands", 1000, 0, false},
		{"1000-demands-500-groups", 1000, 500, false},
		{"5000-demands", 5000, 0, false},
		{"5000-demands-5000-groups", 5000, 5000, false},
		{"dual-prices-500-demands", 500, 0, true},
		{"dual-prices-5000-demands-5000-groups", 5000, 5000, true},
	} {
		p := mixed(offers, c.demands, c.groups)
		b.Run(c.name, func(b *testing.B) {
			if c.dualPrices {
				benchDualPrices(b, p)
			} else {
				benchCompute(b, p)
			}
		})
	}
	for _, demands := range []int{1000, 5000} {
		for _, sets := range []int{8, 200} {
			p := zoned(offers, demands, sets)
			b.Run(fmt.Sprintf("%d-demands-3000-offers-%d-sets", demands, sets), func(b *testing.B) { benchCompute(b, p) })
		}
	}
}

func benchCompute(b *testing.B, p lowerbound.Problem) {
	var price catalog.Price
	b.ReportAllocs()
	for b.Loop() {
		price = lowerbound.Compute(p).Price
	}
	b.ReportMetric(price.Dollars(), "dollars")
}

func benchDualPrices(b *testing.B, p lowerbound.Problem) {
	counts := make([]int, len(p.Demands))
	for i := range counts {
		counts[i] = p.Demands[i].Count
	}
	s := lowerbound.New(p)
	b.ReportAllocs()
	for b.Loop() {
		s.DualPrices(counts, false)
	}
}

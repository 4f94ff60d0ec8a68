package workload

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const region = "us-east-1"

// className is the node class of all NodePools.
const className = "default"

// threeZones are the zones of the market with rounded prices.
var threeZones = []catalog.Zone{
	{Name: "us-east-1a", ID: "use1-az1"}, {Name: "us-east-1b", ID: "use1-az2"}, {Name: "us-east-1c", ID: "use1-az3"},
}

// regionTypes returns all types that the region offers, with real prices, on demand and as spot.
func regionTypes() ([]catalog.Type, error) {
	table, err := catalog.Embedded()
	if err != nil {
		return nil, err
	}
	c, err := table.Catalog(region, catalog.Settings{})
	return c.Types, err
}

// realMarket returns the on-demand offerings of the region, in the zones that have them.
func realMarket() (catalog.Market, error) {
	all, err := regionTypes()
	if err != nil {
		return nil, err
	}
	var kept []catalog.Type
	for _, t := range all {
		var offerings []catalog.Offering
		for _, o := range t.Offerings {
			if o.CapacityType == catalog.OnDemand {
				offerings = append(offerings, o)
			}
		}
		if len(offerings) > 0 {
			kept = append(kept, t.WithOfferings(offerings))
		}
	}
	return marketOf(kept), nil
}

// roundMarket returns n types, each in three zones, on-demand and as spot. The on-demand price is the highest real
// price of the type, rounded to cents, at least one; the spot price is 35 % of that.
func roundMarket(n int) (catalog.Market, error) {
	all, err := regionTypes()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b catalog.Type) int { return rank(a) - rank(b) })
	const cent = catalog.Dollar / 100
	var kept []catalog.Type
	for _, t := range all[:min(n, len(all))] {
		price := max((highestPrice(t)+cent/2)/cent*cent, cent)
		var offerings []catalog.Offering
		for _, z := range threeZones {
			offerings = append(offerings,
				catalog.Offering{Zone: z.Name, ZoneID: z.ID, CapacityType: catalog.OnDemand, Price: price, Available: true},
				catalog.Offering{Zone: z.Name, ZoneID: z.ID, CapacityType: catalog.Spot, Price: price * 35 / 100, Available: true})
		}
		kept = append(kept, t.WithOfferings(offerings))
	}
	slices.SortFunc(kept, func(a, b catalog.Type) int { return strings.Compare(a.Name, b.Name) })
	return marketOf(kept), nil
}

// highestPrice returns the highest price of the type's offerings, which are sorted by price.
func highestPrice(t catalog.Type) catalog.Price { return t.Offerings[len(t.Offerings)-1].Price }

// rank orders types: the categories c, m and r first, then the other categories, then bare metal.
func rank(t catalog.Type) int {
	switch {
	case strings.HasPrefix(t.Labels[catalog.LabelSize], "metal"):
		return 2
	case slices.Contains([]string{"c", "m", "r"}, t.Labels[catalog.LabelCategory]):
		return 0
	}
	return 1
}

func marketOf(types []catalog.Type) catalog.Market {
	return catalog.Market{className: {Region: region, Types: types}}
}

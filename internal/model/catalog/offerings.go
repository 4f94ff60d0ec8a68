package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Zone is an availability zone, a local zone or a Wavelength zone.
type Zone struct {
	Name string `json:"name"` // "us-east-1a"; refers to different zones in different accounts
	ID   string `json:"id"`   // "use1-az1"; the same in all accounts; empty if unknown
}

// IsLocal reports whether z is a local zone or a Wavelength zone. Their names contain the region and a city, so at
// least four hyphens: "us-east-1-bos-1a". Names of availability zones have at most three: "us-gov-west-1a".
func (z Zone) IsLocal() bool { return strings.Count(z.Name, "-") > 3 }

// Prices are the known prices of one region.
type Prices struct {
	OnDemand map[string]Price // by type

	// Spot is the spot price by type and zone name. While Spot is nil, the on-demand price is used, except in local
	// zones, most of which have no spot capacity. If Spot is not nil, a type has no spot offering in a zone without a
	// price, unless Assumed has one.
	Spot map[string]map[string]Price

	// Assumed is the price, for any capacity type, of types without another price: users set it for types that are not
	// in the price lists yet.
	Assumed map[string]Price
}

// Offerings returns the on-demand and spot offerings of a type, sorted. The caller passes the zones that have the type
// and in which the NodeClass has a subnet. There is no offering without a price. All offerings are available.
func (p Prices) Offerings(f Facts, zones []Zone) []Offering {
	var out []Offering
	add := func(z Zone, capacityType string, price Price) {
		if price > 0 {
			out = append(out, Offering{Zone: z.Name, ZoneID: z.ID, CapacityType: capacityType, Price: price, Available: true})
		}
	}
	for _, z := range zones {
		if slices.Contains(f.UsageClasses, OnDemand) {
			add(z, OnDemand, cmp.Or(p.OnDemand[f.Name], p.Assumed[f.Name]))
		}
		if slices.Contains(f.UsageClasses, Spot) {
			add(z, Spot, cmp.Or(p.spot(f.Name, z), p.Assumed[f.Name]))
		}
	}
	slices.SortFunc(out, Offering.Compare)
	return out
}

// spot returns the spot price of a type in a zone as described at Prices.Spot; 0 if there is none.
func (p Prices) spot(typ string, z Zone) Price {
	switch {
	case p.Spot != nil:
		return p.Spot[typ][z.Name]
	case z.IsLocal():
		return 0
	}
	return p.OnDemand[typ]
}

// Compare orders offerings by price, zone, capacity type and reservation.
func (o Offering) Compare(p Offering) int {
	return cmp.Or(
		cmp.Compare(o.Price, p.Price),
		cmp.Compare(o.Zone, p.Zone),
		cmp.Compare(o.CapacityType, p.CapacityType),
		cmp.Compare(o.Reservation.ID, p.Reservation.ID),
	)
}

// WithOfferings returns the type with these offerings, sorted. t is not changed.
func (t Type) WithOfferings(offerings []Offering) Type {
	t.Offerings = slices.SortedFunc(slices.Values(offerings), Offering.Compare)
	return t
}

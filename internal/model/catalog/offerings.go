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

// IsLocal reports whether z is a local zone or a Wavelength zone. Their names have at least four hyphens, because they
// contain a region and a city: "us-east-1-bos-1a". Names of availability zones have at most three: "us-gov-west-1a".
func (z Zone) IsLocal() bool { return strings.Count(z.Name, "-") > 3 }

// Prices are the known prices of one region.
type Prices struct {
	OnDemand map[string]Price // on-demand prices by type

	// Spot has the spot prices by type and zone name. If Spot is nil, they are not known yet, and the on-demand price
	// is used, except in local zones: most of them have no spot capacity. If Spot is not nil, a zone without a price
	// for the type has no spot offering of the type, unless Assumed has a price.
	Spot map[string]map[string]Price

	// Assumed has the prices, for both capacity types, of types without another price. Users set them for types that
	// are not in the price lists yet.
	Assumed map[string]Price
}

// Offerings returns the on-demand and spot offerings of a type in these zones, sorted. The caller passes the zones that
// have the type and a subnet of the NodeClass. There is no offering without a price. All offerings are available.
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

// spot returns the spot price of a type in a zone; 0 if there is none. If Spot is nil, it returns the on-demand price,
// but 0 in local zones.
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

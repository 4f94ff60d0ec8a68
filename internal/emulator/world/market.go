package world

import (
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/site"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Market has the offerings of one region, the same for every account.
type Market struct {
	names []string                 // sorted
	stock map[string]*OfferedType  // by name
	spot  map[Offering][]SpotPrice // prices that SetSpotPrice has set, oldest first
}

// OfferedType is one instance type of a region.
type OfferedType struct {
	Facts    catalog.Facts // the instance type
	OnDemand catalog.Price // per hour; 0: no on-demand offering
	Spot     catalog.Price // typical spot price per hour; 0: computed from OnDemand
	Zones    []string      // names of the zones that offer the type; nil: all
}

// SpotPrice is the spot price of an offering from a time on.
type SpotPrice struct {
	From  time.Time     // start of the period, which ends with the offering's next price
	Price catalog.Price // per hour
}

// Offering is an instance type in a zone with a capacity type.
type Offering struct {
	Type string // "m5.large"
	Zone string // "us-east-1a"
	Spot bool   // false: on demand
}

// Market returns the market of a region. It creates an empty market on first use.
func (w *World) Market(region string) *Market {
	if m := w.markets[region]; m != nil {
		return m
	}
	if w.markets == nil {
		w.markets = map[string]*Market{}
	}
	m := &Market{stock: map[string]*OfferedType{}, spot: map[Offering][]SpotPrice{}}
	w.markets[region] = m
	return m
}

// Markets returns the names of the regions that have a market, sorted. A market may be empty.
func (w *World) Markets() []string { return slices.Sorted(maps.Keys(w.markets)) }

// Offer adds or changes instance types.
func (m *Market) Offer(types ...OfferedType) {
	for _, t := range types {
		m.stock[t.Facts.Name] = &t
	}
	m.names = slices.Sorted(maps.Keys(m.stock))
}

// Names returns the names of the offered instance types, sorted.
func (m *Market) Names() []string { return m.names }

// Stock returns an instance type by name; false if the region does not offer it.
func (m *Market) Stock(name string) (OfferedType, bool) {
	if s := m.stock[name]; s != nil {
		return *s, true
	}
	return OfferedType{}, false
}

// OffersIn reports whether the zone offers the type.
func (s *OfferedType) OffersIn(zone string) bool {
	return s.Zones == nil || slices.Contains(s.Zones, zone)
}

// SetSpotPrice sets the spot price of a type in a zone from now on.
func (m *Market) SetSpotPrice(now time.Time, instanceType, zone string, p catalog.Price) {
	key := Offering{Type: instanceType, Zone: zone, Spot: true}
	m.spot[key] = append(m.spot[key], SpotPrice{From: now, Price: p})
}

// SpotPrices returns the spot prices of a type in a zone during a period, oldest first. Until SetSpotPrice sets a
// price, the price is 90 to 111 % of OfferedType.Spot. If OfferedType.Spot is 0, the price is 28 to 49 % of the
// on-demand price. The percentage depends on type and zone only. Local zones have spot offerings only if SetSpotPrice
// has set a price.
func (m *Market) SpotPrices(instanceType, zone string, start, end time.Time) []SpotPrice {
	s := m.stock[instanceType]
	if s == nil || !s.OffersIn(zone) || !slices.Contains(s.Facts.UsageClasses, "spot") {
		return nil
	}
	prices := m.spot[Offering{Type: instanceType, Zone: zone, Spot: true}]
	if isLocal := (site.Zone{Name: zone}).IsLocal(); !isLocal && (len(prices) == 0 || prices[0].From.After(start)) {
		first := SpotPrice{From: start.Truncate(time.Hour), Price: usualSpotPrice(s, zone)}
		prices = append([]SpotPrice{first}, prices...)
	}
	var out []SpotPrice
	for i, p := range prices {
		endsBeforeStart := i+1 < len(prices) && !prices[i+1].From.After(start)
		if !endsBeforeStart && !p.From.After(end) {
			out = append(out, p)
		}
	}
	return out
}

// price returns the current price of an offering; false if the offering does not exist. The region must offer the type.
func (m *Market) price(now time.Time, o Offering) (catalog.Price, bool) {
	if !o.Spot {
		s := m.stock[o.Type]
		return s.OnDemand, s.OffersIn(o.Zone) && s.OnDemand > 0
	}
	prices := m.SpotPrices(o.Type, o.Zone, now, now)
	if len(prices) == 0 {
		return 0, false
	}
	return prices[len(prices)-1].Price, true
}

// usualSpotPrice returns the spot price of a type in a zone before the first SetSpotPrice: see SpotPrices.
func usualSpotPrice(s *OfferedType, zone string) catalog.Price {
	sum := site.Digest(2, "spot", s.Facts.Name, zone)
	noise := catalog.Price(hexValue(sum[0]) + hexValue(sum[1])*6/15) // 0..21
	p := s.OnDemand * (28 + noise) / 100
	if s.Spot > 0 {
		p = s.Spot * (90 + noise) / 100
	}
	const step = catalog.Dollar / 10_000 // EC2's prices have four decimals
	return max(p/step*step, step)
}

func hexValue(c byte) int {
	if c >= 'a' {
		return int(c-'a') + 10
	}
	return int(c - '0')
}

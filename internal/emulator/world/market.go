package world

import (
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Market is what EC2 sells in one region, the same to every account.
type Market struct {
	names []string // sorted
	stock map[string]*Stock
	spot  map[Offering][]SpotPrice // what Quote set, oldest first
}

// Stock is one instance type as a region sells it.
type Stock struct {
	Facts    catalog.Facts
	OnDemand catalog.Price // per hour; 0: not sold on demand
	Spot     catalog.Price // usual spot price per hour; 0: a share of OnDemand
	Zones    []string      // names of the zones that have it; nil: all
}

// SpotPrice is a spot price from a moment on.
type SpotPrice struct {
	From  time.Time
	Price catalog.Price
}

// Offering is one way to buy: a type, in a zone, and how it is paid.
type Offering struct {
	Type string
	Zone string
	Spot bool
}

// Market returns what a region sells.
func (w *World) Market(region string) *Market {
	if m := w.markets[region]; m != nil {
		return m
	}
	if w.markets == nil {
		w.markets = map[string]*Market{}
	}
	m := &Market{stock: map[string]*Stock{}, spot: map[Offering][]SpotPrice{}}
	w.markets[region] = m
	return m
}

// Markets returns the names of the regions that sell anything, sorted.
func (w *World) Markets() []string { return slices.Sorted(maps.Keys(w.markets)) }

// Sell puts instance types on sale, or alters those that are.
func (m *Market) Sell(stock ...Stock) {
	for _, s := range stock {
		m.stock[s.Facts.Name] = &s
	}
	m.names = slices.Sorted(maps.Keys(m.stock))
}

// Names returns the names of the types on sale, sorted.
func (m *Market) Names() []string { return m.names }

// Stock returns a type by name.
func (m *Market) Stock(name string) (Stock, bool) {
	if s := m.stock[name]; s != nil {
		return *s, true
	}
	return Stock{}, false
}

// Sells says whether the type is on sale in the zone.
func (s *Stock) Sells(zone string) bool {
	return s.Zones == nil || slices.Contains(s.Zones, zone)
}

// Quote sets the spot price of a type in a zone from now on.
func (m *Market) Quote(now time.Time, instanceType, zone string, p catalog.Price) {
	key := Offering{Type: instanceType, Zone: zone, Spot: true}
	m.spot[key] = append(m.spot[key], SpotPrice{From: now, Price: p})
}

// SpotPrices returns the prices of a type in a zone that held at some moment of
// a span of time, oldest first. Until Quote sets another, a type costs about its
// usual spot price, or 28 to 49 % of the on-demand price if that is not known:
// how much exactly depends on type and zone alone. In local zones there is spot only
// where Quote has set a price.
func (m *Market) SpotPrices(instanceType, zone string, start, end time.Time) []SpotPrice {
	s := m.stock[instanceType]
	if s == nil || !s.Sells(zone) || !slices.Contains(s.Facts.UsageClasses, "spot") {
		return nil
	}
	history := m.spot[Offering{Type: instanceType, Zone: zone, Spot: true}]
	if isLocal := (Zone{Name: zone}).IsLocal(); !isLocal && (len(history) == 0 || history[0].From.After(start)) {
		first := SpotPrice{From: start.Truncate(time.Hour), Price: usualSpotPrice(s, zone)}
		history = append([]SpotPrice{first}, history...)
	}
	var out []SpotPrice
	for i, p := range history {
		replaced := i+1 < len(history) && !history[i+1].From.After(start)
		if !replaced && !p.From.After(end) {
			out = append(out, p)
		}
	}
	return out
}

// price returns what an offering costs now; not ok if it is not sold.
func (m *Market) price(now time.Time, o Offering) (catalog.Price, bool) {
	if !o.Spot {
		s := m.stock[o.Type]
		return s.OnDemand, s.Sells(o.Zone) && s.OnDemand > 0
	}
	prices := m.SpotPrices(o.Type, o.Zone, now, now)
	if len(prices) == 0 {
		return 0, false
	}
	return prices[len(prices)-1].Price, true
}

// usualSpotPrice returns a price that looks like a market's and never changes.
func usualSpotPrice(s *Stock, zone string) catalog.Price {
	sum := digest(2, "spot", s.Facts.Name, zone)
	noise := catalog.Price(hexValue(sum[0]) + hexValue(sum[1])*6/15) // 0..21
	p := s.OnDemand * (28 + noise) / 100
	if s.Spot > 0 {
		p = s.Spot * (90 + noise) / 100
	}
	const step = catalog.Dollar / 10_000 // EC2 gives four decimals
	return max(p/step*step, step)
}

func hexValue(c byte) int {
	if c >= 'a' {
		return int(c-'a') + 10
	}
	return int(c - '0')
}

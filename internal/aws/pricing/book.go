// Package pricing reads the prices of one region and keeps them in a Book.
//
// In: the responses of the Price List and of the spot price history; the embedded table.
// Out: an immutable Book, which a refresh replaces by a newer one.
// Never: callers of Book that wait for AWS, or the loss of a price because AWS did not respond.
package pricing

import (
	"maps"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// The sources of prices.
const (
	FromAWS         = "aws"      // AWS's response
	FromTable       = "embedded" // the embedded table, for this region
	FromOtherRegion = "foreign"  // the embedded table, for another region: types can be compared, but costs are wrong
	FromNone        = "none"     // there are no prices
)

// Book holds the known prices at one moment. It is immutable.
type Book struct {
	Region string         // "us-east-1"
	Prices catalog.Prices // per instance type, zone and capacity type

	OnDemandFrom string // source of the on-demand prices
	// OnDemandAt is when AWS last returned all on-demand prices. Until AWS has returned all prices once, it is when AWS
	// first returned some of them; zero: AWS has returned none.
	OnDemandAt time.Time
	SpotFrom   string    // source of the spot prices: FromAWS or FromNone
	SpotAt     time.Time // when AWS last returned the spot prices; zero: AWS has returned none
}

// Price returns the price per hour of a type in a zone, 0 if it is unknown. As long as no spot price of any type is
// known, it returns the on-demand price for spot.
func (b Book) Price(instanceType, zone, capacityType string) catalog.Price {
	switch capacityType {
	case catalog.OnDemand:
		return b.Prices.OnDemand[instanceType]
	case catalog.Spot:
		if b.Prices.Spot == nil {
			return b.Prices.OnDemand[instanceType]
		}
		return b.Prices.Spot[instanceType][zone]
	}
	return 0
}

// Apply returns a copy of t whose offerings have the prices of b. A reserved offering keeps its price. Other offerings
// without a price are left out.
func (b Book) Apply(t catalog.Type) catalog.Type {
	out := make([]catalog.Offering, 0, len(t.Offerings))
	for _, o := range t.Offerings {
		if o.CapacityType != catalog.Reserved {
			o.Price = b.Price(t.Name, o.Zone, o.CapacityType)
		}
		if o.Price > 0 || o.CapacityType == catalog.Reserved {
			out = append(out, o)
		}
	}
	return t.WithOfferings(out)
}

// Age returns how old the on-demand prices are at now; ok is false if AWS has never returned on-demand prices.
func (b Book) Age(now time.Time) (age time.Duration, ok bool) {
	if b.OnDemandAt.IsZero() {
		return 0, false
	}
	return now.Sub(b.OnDemandAt), true
}

// Origins describes the source of the on-demand prices and the source of the spot prices. For prices from AWS it adds
// their age at now.
func (b Book) Origins(now time.Time) (onDemand, spot string) {
	onDemand = map[string]string{
		FromAWS:         "AWS, " + ageText(now, b.OnDemandAt),
		FromTable:       "the table in this program",
		FromOtherRegion: "the table in this program, for another region (" + fallbackRegion(b.Region) + ")",
		FromNone:        "unknown",
	}[b.OnDemandFrom]
	spot = "unknown, on-demand price used"
	if b.SpotFrom == FromAWS {
		spot = "AWS, " + ageText(now, b.SpotAt)
	}
	return onDemand, spot
}

// ageText returns the time from at to now as a text, such as "5m0s old".
func ageText(now, at time.Time) string {
	return max(now.Sub(at), 0).Truncate(time.Second).String() + " old"
}

// Embedded returns a book with the on-demand prices of the embedded table. If the table lacks the region, the book has
// the on-demand prices of another region in the same partition.
func Embedded(table catalog.Table, region string) Book {
	b := Book{Region: region, OnDemandFrom: FromTable, SpotFrom: FromNone}
	r, err := table.Region(region)
	if err != nil {
		b.OnDemandFrom = FromOtherRegion
		r, err = table.Region(fallbackRegion(region))
	}
	if err != nil {
		b.OnDemandFrom = FromNone
		return b
	}
	b.Prices.OnDemand = r.OnDemand
	return b
}

// fallbackRegion returns the region whose prices replace those of a region that the table lacks.
func fallbackRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "us-gov-"):
		return "us-gov-west-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-north-1"
	}
	return "us-east-1"
}

// withOnDemand returns b with newer on-demand prices. A type that prices lacks keeps its old price, unless the old
// price is that of another region. If isComplete is false, because a request failed, OnDemandAt keeps its value,
// unless that is zero.
func (b Book) withOnDemand(prices map[string]catalog.Price, isComplete bool, at time.Time) Book {
	merged := maps.Clone(b.Prices.OnDemand)
	if merged == nil || b.OnDemandFrom == FromOtherRegion {
		merged = map[string]catalog.Price{}
	}
	maps.Copy(merged, prices)
	b.Prices.OnDemand, b.OnDemandFrom = merged, FromAWS
	if isComplete || b.OnDemandAt.IsZero() {
		b.OnDemandAt = at
	}
	return b
}

// withSpot returns b with newer spot prices. A type and zone that prices lacks keeps its old price.
func (b Book) withSpot(prices map[string]map[string]catalog.Price, at time.Time) Book {
	merged := make(map[string]map[string]catalog.Price, len(prices))
	for name, zones := range b.Prices.Spot {
		merged[name] = maps.Clone(zones)
	}
	for name, zones := range prices {
		if merged[name] == nil {
			merged[name] = map[string]catalog.Price{}
		}
		maps.Copy(merged[name], zones)
	}
	b.Prices.Spot, b.SpotFrom, b.SpotAt = merged, FromAWS, at
	return b
}

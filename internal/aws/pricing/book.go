// Package pricing reads the prices of one region and keeps them in a Book.
//
// In: answers of the Price List and of the spot price history; the embedded table.
// Out: a Book, which never changes; a newer one takes its place.
// Never: a reader that waits for AWS, or a price that is lost because AWS did not answer.
package pricing

import (
	"maps"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// The sources of prices.
const (
	FromAWS   = "aws"      // AWS's answer
	FromTable = "embedded" // the table in this program, for this region
	FromOther = "foreign"  // the table, for another region: suitable to compare types, not for bills
	FromNone  = "none"     // no prices yet
)

// Book holds the known prices at one moment. It is immutable.
type Book struct {
	Region string         // "us-east-1"
	Prices catalog.Prices // per instance type, zone and capacity type

	OnDemandFrom string    // FromAWS, FromTable or FromOther
	OnDemandAt   time.Time // when AWS returned them; zero if it did not
	SpotFrom     string    // FromAWS or FromNone
	SpotAt       time.Time // when AWS returned them; zero if it did not
}

// Of returns the price per hour of a type in a zone, 0 if it is unknown.
func (b Book) Of(instanceType, zone, capacityType string) catalog.Price {
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

// Apply returns a copy of t with the prices of b on its offerings. Offerings without a price are left out. A reserved
// offering keeps its price.
func (b Book) Apply(t catalog.Type) catalog.Type {
	out := make([]catalog.Offering, 0, len(t.Offerings))
	for _, o := range t.Offerings {
		if o.CapacityType != catalog.Reserved {
			o.Price = b.Of(t.Name, o.Zone, o.CapacityType)
		}
		if o.Price > 0 || o.CapacityType == catalog.Reserved {
			out = append(out, o)
		}
	}
	return t.WithOfferings(out)
}

// Age returns how old the on-demand prices are at now. ok is false if AWS has never returned any.
func (b Book) Age(now time.Time) (age time.Duration, ok bool) {
	if b.OnDemandAt.IsZero() {
		return 0, false
	}
	return now.Sub(b.OnDemandAt), true
}

// Origins describes the source of the prices and their age at now.
func (b Book) Origins(now time.Time) (onDemand, spot string) {
	onDemand = map[string]string{
		FromAWS:   "AWS, " + age(now, b.OnDemandAt),
		FromTable: "the table in this program",
		FromOther: "the table in this program, for another region (" + stand(b.Region) + ")",
		FromNone:  "unknown",
	}[b.OnDemandFrom]
	spot = "unknown, on-demand price used"
	if b.SpotFrom == FromAWS {
		spot = "AWS, " + age(now, b.SpotAt)
	}
	return onDemand, spot
}

func age(now, at time.Time) string {
	return max(now.Sub(at), 0).Truncate(time.Second).String() + " old"
}

// Embedded returns a book with the prices of this program's table. If the table lacks the region, the book has the
// on-demand prices of another region in the same partition.
func Embedded(table catalog.Table, region string) Book {
	b := Book{Region: region, OnDemandFrom: FromTable, SpotFrom: FromNone}
	r, err := table.Region(region)
	if err != nil {
		b.OnDemandFrom = FromOther
		r, err = table.Region(stand(region))
	}
	if err != nil {
		b.OnDemandFrom = FromNone
		return b
	}
	b.Prices.OnDemand = r.OnDemand
	return b
}

// stand returns the region whose prices are used for a region that the table lacks.
func stand(region string) string {
	switch {
	case strings.HasPrefix(region, "us-gov-"):
		return "us-gov-west-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-north-1"
	}
	return "us-east-1"
}

// withOnDemand returns b with newer on-demand prices. A type that prices lacks keeps its old price. all is false if one
// of the requests failed; the time of the prices then stays.
func (b Book) withOnDemand(prices map[string]catalog.Price, all bool, at time.Time) Book {
	merged := maps.Clone(b.Prices.OnDemand)
	if merged == nil || b.OnDemandFrom == FromOther {
		merged = map[string]catalog.Price{}
	}
	maps.Copy(merged, prices)
	b.Prices.OnDemand, b.OnDemandFrom = merged, FromAWS
	if all || b.OnDemandAt.IsZero() {
		b.OnDemandAt = at
	}
	return b
}

// withSpot returns b with newer spot prices. A type that prices lacks keeps its old price.
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

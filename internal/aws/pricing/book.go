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

// Where prices are from.
const (
	FromAWS   = "aws"      // asked for, and answered
	FromTable = "embedded" // the table in this program, for this region
	FromOther = "foreign"  // the table, for another region: good for comparing types, not for bills
	FromNone  = "none"     // nothing is known yet
)

// Book is what is known about prices at one moment. It is never altered.
type Book struct {
	Region string         // "us-east-1"
	Prices catalog.Prices // per instance type, zone and capacity type

	OnDemandFrom string    // FromAWS, FromTable or FromOther
	OnDemandAt   time.Time // when AWS gave them; zero if it did not
	SpotFrom     string    // FromAWS or FromNone
	SpotAt       time.Time // when AWS gave them; zero if it did not
}

// Of returns the price per hour of a type in a zone, 0 if it is not known.
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

// Apply returns t with the prices of b on its offerings; what has no price is
// left out. t is not altered. A reserved offering keeps the price it has.
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

// Age returns how old the on-demand prices are at now; ok is false if AWS never gave any.
func (b Book) Age(now time.Time) (age time.Duration, ok bool) {
	if b.OnDemandAt.IsZero() {
		return 0, false
	}
	return now.Sub(b.OnDemandAt), true
}

// Origins says in words where the prices are from and how old they are at now.
func (b Book) Origins(now time.Time) (onDemand, spot string) {
	onDemand = map[string]string{
		FromAWS:   "AWS, " + age(now, b.OnDemandAt),
		FromTable: "the table in this program",
		FromOther: "the table in this program, for another region (" + stand(b.Region) + ")",
		FromNone:  "not known",
	}[b.OnDemandFrom]
	spot = "not known, on-demand price used"
	if b.SpotFrom == FromAWS {
		spot = "AWS, " + age(now, b.SpotAt)
	}
	return onDemand, spot
}

func age(now, at time.Time) string {
	return max(now.Sub(at), 0).Truncate(time.Second).String() + " old"
}

// Embedded returns the book of the table in this program. A region that the
// table lacks gets the on-demand prices of a region of its partition.
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

// stand is the region whose prices stand in for those of another.
func stand(region string) string {
	switch {
	case strings.HasPrefix(region, "us-gov-"):
		return "us-gov-west-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-north-1"
	}
	return "us-east-1"
}

// withOnDemand returns b with newer on-demand prices; a type that the new ones
// lack keeps its old price. The prices are as old as the last that were all there.
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

// withSpot is withOnDemand for spot prices.
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

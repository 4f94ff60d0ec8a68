package pricing

import (
	"encoding/json"
	"fmt"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// product holds the fields of one entry of the Price List that parseProduct uses.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string            `json:"unit"` // "Hrs", which empty text means, too
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// parseProduct returns the instance type of an entry of the Price List and its price per hour in the currency. typ is
// empty if the entry has no type; price is 0 if it has no price in the currency. An entry should have one price. Of
// several prices parseProduct returns the highest, so that the result does not depend on the order of a map.
func parseProduct(text, currency string) (typ string, price catalog.Price, err error) {
	var p product
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", 0, fmt.Errorf("read product of the Price List: %w", err)
	}
	typ = p.Product.Attributes.InstanceType
	for _, term := range p.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			amount, ok := dimension.PricePerUnit[currency]
			if !ok || dimension.Unit != "" && dimension.Unit != "Hrs" {
				continue
			}
			parsed, err := catalog.ParsePrice(amount)
			if err != nil {
				return "", 0, fmt.Errorf("read product %s of the Price List: %w", typ, err)
			}
			price = max(price, parsed)
		}
	}
	if typ == "" {
		return "", 0, nil
	}
	return typ, price, nil
}

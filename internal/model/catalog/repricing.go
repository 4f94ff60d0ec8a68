package catalog

import (
	"fmt"
	"math/big"
	"strings"
)

// Repricing changes a price.
type Repricing struct {
	How    RepricingKind // the meaning of Amount
	Amount Price         // the new price, the difference, or the percentage (in billionths of a percent); negative lowers the price
}

// RepricingKind is the meaning of a Repricing's amount.
type RepricingKind string

// The kinds of Repricing.
const (
	SetPrice     RepricingKind = "set"     // Amount is the new price
	AddPrice     RepricingKind = "add"     // Amount is added to the price
	PercentPrice RepricingKind = "percent" // Amount percent of the price are added to it
)

// The lowest and the highest price that an overlay can set: a billionth of a dollar and a million dollars per hour. An
// offering with price zero would always be launched, and one with an infinite price never.
const (
	minPrice Price = 1
	maxPrice       = 1_000_000 * Dollar
)

// Apply returns the new price for the price p, limited to the range from minPrice to maxPrice.
func (r Repricing) Apply(p Price) Price {
	out := new(big.Int)
	switch r.How {
	case SetPrice:
		out.SetInt64(int64(r.Amount))
	case AddPrice:
		out.Add(big.NewInt(int64(p)), big.NewInt(int64(r.Amount)))
	case PercentPrice:
		const hundredPercent = 100 * int64(Dollar) // in billionths of a percent
		out.Add(big.NewInt(hundredPercent), big.NewInt(int64(r.Amount)))
		out.Mul(out, big.NewInt(int64(p)))
		out.Add(out, big.NewInt(hundredPercent/2)) // round to the nearest
		out.Div(out, big.NewInt(hundredPercent))
	}
	switch {
	case out.Cmp(big.NewInt(int64(minPrice))) < 0:
		return minPrice
	case out.Cmp(big.NewInt(int64(maxPrice))) > 0:
		return maxPrice
	}
	return Price(out.Int64())
}

// ParseRepricing parses a price ("0.25") or an adjustment ("+0.1", "-0.1", "+10%", "-10%"). If neither is given, it
// returns nil; if both are, an error.
func ParseRepricing(price, adjustment string) (*Repricing, error) {
	switch {
	case price != "" && adjustment != "":
		return nil, fmt.Errorf("price and priceAdjustment exclude each other: leave one of them out")
	case price != "":
		amount, err := ParsePrice(price)
		if err != nil {
			return nil, fmt.Errorf("price: %w", err)
		}
		return &Repricing{SetPrice, amount}, nil
	case adjustment == "":
		return nil, nil
	}
	text, isPercent := strings.CutSuffix(adjustment, "%")
	number, isPlus := strings.CutPrefix(text, "+")
	number, isMinus := strings.CutPrefix(number, "-")
	amount, err := ParsePrice(number)
	if isPlus == isMinus || err != nil { // want exactly one sign
		return nil, fmt.Errorf("priceAdjustment: %q is no change of a price: write for instance +0.05, -0.05, +10%% or -10%%", adjustment)
	}
	out := &Repricing{AddPrice, amount}
	if isPercent {
		out.How = PercentPrice
	}
	if isMinus {
		out.Amount = -amount
	}
	if isPercent && out.Amount < -100*Dollar {
		return nil, fmt.Errorf("priceAdjustment: %s would make the price negative: -100%% is the limit", adjustment)
	}
	return out, nil
}

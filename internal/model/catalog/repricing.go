package catalog

import (
	"fmt"
	"math/big"
	"strings"
)

// Repricing changes a price.
type Repricing struct {
	How    RepricingKind // the meaning of Amount
	Amount Price         // a price, a change of the price that may be negative, or a percentage in billionths of a percent
}

// RepricingKind is the meaning of a Repricing's amount.
type RepricingKind string

// The kinds of Repricing.
const (
	SetPrice     RepricingKind = "set"     // the amount is the price
	AddPrice     RepricingKind = "add"     // the amount is added
	PercentPrice RepricingKind = "percent" // the amount is a percentage, which is added
)

// The lowest and the highest price that an overlay can set: a billionth of a dollar and a million dollars per hour. An
// offering with price zero would always be launched, and one with an infinite price never.
const (
	leastPrice Price = 1
	mostPrice        = 1_000_000 * Dollar
)

// Of returns the new price, limited to the range from leastPrice to mostPrice.
func (r Repricing) Of(p Price) Price {
	out := new(big.Int)
	switch r.How {
	case SetPrice:
		out.SetInt64(int64(r.Amount))
	case AddPrice:
		out.Add(big.NewInt(int64(p)), big.NewInt(int64(r.Amount)))
	case PercentPrice:
		const whole = 100 * int64(Dollar) // a hundred percent
		out.Add(big.NewInt(whole), big.NewInt(int64(r.Amount)))
		out.Mul(out, big.NewInt(int64(p)))
		out.Add(out, big.NewInt(whole/2)) // round to the nearest
		out.Div(out, big.NewInt(whole))
	}
	switch {
	case out.Cmp(big.NewInt(int64(leastPrice))) < 0:
		return leastPrice
	case out.Cmp(big.NewInt(int64(mostPrice))) > 0:
		return mostPrice
	}
	return Price(out.Int64())
}

// ParseRepricing parses a price ("0.25") or an adjustment ("+0.1", "-0.1", "+10%", "-10%"), of which at least one must
// be empty. It returns nil if both are.
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
	number, isMore := strings.CutPrefix(text, "+")
	number, isLess := strings.CutPrefix(number, "-")
	amount, err := ParsePrice(number)
	if isMore == isLess || err != nil {
		return nil, fmt.Errorf("priceAdjustment: %q is no change of a price: write for instance +0.05, -0.05, +10%% or -10%%", adjustment)
	}
	out := &Repricing{AddPrice, amount}
	if isPercent {
		out.How = PercentPrice
	}
	if isLess {
		out.Amount = -amount
	}
	if isPercent && out.Amount < -100*Dollar {
		return nil, fmt.Errorf("priceAdjustment: %s would leave less than nothing: -100%% is the most", adjustment)
	}
	return out, nil
}

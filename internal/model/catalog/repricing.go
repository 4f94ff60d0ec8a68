package catalog

import (
	"fmt"
	"math/big"
	"strings"
)

// Repricing makes another price of a price.
type Repricing struct {
	How    RepricingKind // what Amount means
	Amount Price         // a price, a change of one that may be below 0, or billionths of a percent
}

// RepricingKind is what the amount of a Repricing means.
type RepricingKind string

// The kinds of Repricing.
const (
	SetPrice     RepricingKind = "set"     // the amount is the price
	AddPrice     RepricingKind = "add"     // the amount is added
	PercentPrice RepricingKind = "percent" // the amount is a percentage, which is added
)

// The lowest and the highest price that an overlay can set. An offering with price
// zero would always be launched, and one with an infinite price never.
const (
	leastPrice Price = 1
	mostPrice        = 1_000_000 * Dollar
)

// Of returns the new price. Below zero it is as good as zero.
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
		out.Add(out, big.NewInt(whole/2)) // to the nearest
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

// ParseRepricing reads a price ("0.25"), or else an adjustment: "+0.1", "-0.1",
// "+10%", "-10%". Nil if both are empty.
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

package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// priceDigits is the number of decimals of a price in dollars, because a Price is in billionths.
const priceDigits = 9

// ParsePrice parses dollars per hour as AWS writes them: "0.0960000000". It rounds to the nearest Price.
func ParsePrice(text string) (Price, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if digits(whole) != whole || digits(fraction) != fraction || whole+fraction == "" {
		return 0, fmt.Errorf("read price %q: not a decimal number", text)
	}
	roundUp := len(fraction) > priceDigits && fraction[priceDigits] >= '5'
	fraction = (fraction + strings.Repeat("0", priceDigits))[:priceDigits]
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read price %q: out of range", text)
	}
	if roundUp {
		n++
	}
	return Price(n), nil
}

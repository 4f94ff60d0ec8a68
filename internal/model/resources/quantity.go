package resources

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// suffixes are the suffixes of Kubernetes quantities with their exact factors. Source: package
// k8s.io/apimachinery/pkg/api/resource, type Quantity.
var suffixes = []struct {
	text  string
	scale *big.Rat
}{
	{"Ki", big.NewRat(1<<10, 1)}, {"Mi", big.NewRat(1<<20, 1)}, {"Gi", big.NewRat(1<<30, 1)},
	{"Ti", big.NewRat(1<<40, 1)}, {"Pi", big.NewRat(1<<50, 1)}, {"Ei", big.NewRat(1<<60, 1)},
	{"n", big.NewRat(1, 1e9)}, {"u", big.NewRat(1, 1e6)}, {"m", big.NewRat(1, 1e3)},
	{"k", big.NewRat(1e3, 1)}, {"M", big.NewRat(1e6, 1)}, {"G", big.NewRat(1e9, 1)},
	{"T", big.NewRat(1e12, 1)}, {"P", big.NewRat(1e15, 1)}, {"E", big.NewRat(1e18, 1)},
}

// maxExponent limits exponents, so that "1e999999999" does not use gigabytes of memory. int64 holds less than 1e19.
const maxExponent = 40

// Parse parses a Kubernetes quantity ("1500m", "2Gi", "1e3") in the unit of the named resource: millicores for cpu,
// bytes or pieces for others. Fractions round up, as in kube-scheduler. The result saturates at the limits of int64.
func Parse(resource, text string) (int64, error) {
	number, scale := strings.TrimSpace(text), big.NewRat(1, 1)
	for _, s := range suffixes {
		if cut, ok := strings.CutSuffix(number, s.text); ok {
			number, scale = cut, s.scale
			break
		}
	}
	if err := checkNumber(number); err != nil {
		return 0, fmt.Errorf("read quantity %q of %s: %w", text, resource, err)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("read quantity %q of %s: not a number with a Kubernetes suffix", text, resource)
	}
	value.Mul(value, scale)
	if resource == CPU {
		value.Mul(value, big.NewRat(1000, 1))
	}
	return ceil(value), nil
}

// checkNumber returns an error for texts that big.Rat parses although Kubernetes does not (1/3, other bases,
// underscores), and for exponents beyond ±maxExponent.
func checkNumber(number string) error {
	if number == "" || strings.ContainsAny(number, "/_xXbBoOpP ") {
		return fmt.Errorf("not a decimal number")
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return nil
	}
	exp, err := strconv.Atoi(number[i+1:])
	if err != nil || exp > maxExponent || exp < -maxExponent {
		return fmt.Errorf("exponent out of range")
	}
	return nil
}

// ceil returns r rounded up, saturating at the limits of int64.
func ceil(r *big.Rat) int64 {
	q, rem := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rem.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	switch {
	case q.IsInt64():
		return q.Int64()
	case q.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}

// Format returns value, which is in the unit of the named resource, as a Kubernetes quantity. Parse converts it back
// exactly.
func Format(resource string, value int64) string {
	switch resource {
	case CPU:
		if value%1000 == 0 {
			return strconv.FormatInt(value/1000, 10)
		}
		return strconv.FormatInt(value, 10) + "m"
	case Memory, EphemeralStorage:
		return formatBytes(value)
	}
	return strconv.FormatInt(value, 10)
}

// formatBytes returns a number of bytes with the largest binary suffix that divides it: "2Gi", "1500Mi", "1000".
func formatBytes(value int64) string {
	suffix := ""
	for _, s := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		if value == 0 || value%1024 != 0 {
			break
		}
		value, suffix = value/1024, s
	}
	return strconv.FormatInt(value, 10) + suffix
}

// Map returns the amounts as Kubernetes quantities by resource name, without zeros. Plans print them in this form.
func (a Amounts) Map() map[string]string {
	out := map[string]string{}
	for _, name := range a.Names() {
		out[name] = Format(name, a.Of(name))
	}
	return out
}

// String returns "cpu=1500m memory=2Gi", in the order of Names; "nothing" for the zero value.
func (a Amounts) String() string {
	var b strings.Builder
	for i, name := range a.Names() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + Format(name, a.Of(name)))
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

// Package requirements implements label requirements, taints and tolerations.
//
// In: label keys, operators, values; taints; tolerations.
// Out: intersections, and whether requirements accept labels or tolerations match taints.
// Never: an amount of a resource, a price, or a Kubernetes type.
package requirements

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/hashkey"
)

// Values is the set of accepted values of one label. It is either a finite set, or all values except a finite set,
// within optional integer bounds. It may also accept absence: a node or pod without the label. The zero value accepts
// nothing.
type Values struct {
	// Listed are the accepted values, or the rejected ones if Complement is set. Sorted, without duplicates; the slice
	// is never changed.
	Listed     []string
	Complement bool

	// Absent means that a node without the label is accepted: for NotIn and DoesNotExist, as in Kubernetes.
	Absent bool

	// Min and Max are inclusive bounds of the value as an integer; nil: no bound. Only a complement has bounds. A
	// finite set has no bounds, because values outside of them are removed from it.
	Min, Max *int64
}

// Operator is the operator of a requirement.
type Operator string

// The operators of node affinity, and Gte and Lte, which only NodePools have.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// ValuesOf returns the values that a requirement accepts, and whether the requirement is valid. A requirement with an
// unknown operator, or a comparison with something other than one integer, is invalid and accepts nothing.
func ValuesOf(operator Operator, values ...string) (Values, bool) {
	switch operator {
	case In:
		return OneOf(values...), true
	case NotIn:
		return NoneOf(values...), true
	case Exists:
		return Any(), true
	case DoesNotExist:
		return Missing(), true
	case Gt, Lt, Gte, Lte: // compared with one integer, below
	}
	if len(values) != 1 {
		return Values{}, false
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return Values{}, false
	}
	switch operator {
	case Gt:
		if n == math.MaxInt64 {
			return Values{}, true
		}
		return between(n+1, math.MaxInt64), true
	case Gte:
		return between(n, math.MaxInt64), true
	case Lt:
		if n == math.MinInt64 {
			return Values{}, true
		}
		return between(math.MinInt64, n-1), true
	case Lte:
		return between(math.MinInt64, n), true
	case In, NotIn, Exists, DoesNotExist:
	}
	return Values{}, false
}

// OneOf returns the set of these values, without absence.
func OneOf(values ...string) Values { return Values{Listed: sorted(values)} }

// NoneOf returns the set of all values except these, and absence.
func NoneOf(values ...string) Values {
	return Values{Listed: sorted(values), Complement: true, Absent: true}
}

// Missing returns the set that accepts only absence.
func Missing() Values { return Values{Absent: true} }

// Any returns the set of all values, without absence.
func Any() Values { return Values{Complement: true} }

// between returns the integers from low to high, without absence. The limits of int64 stand for no bound.
func between(low, high int64) Values {
	v := Values{Complement: true}
	if low > math.MinInt64 {
		v.Min = &low
	}
	if high < math.MaxInt64 {
		v.Max = &high
	}
	return v
}

// sorted returns a sorted copy without duplicates; nil if values is empty.
func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// Accepts reports whether value is in the set.
func (v Values) Accepts(value string) bool {
	_, isListed := slices.BinarySearch(v.Listed, value)
	return isListed != v.Complement && v.within(value)
}

// IsEmpty reports whether neither a value nor absence is accepted.
func (v Values) IsEmpty() bool { return !v.Complement && !v.Absent && len(v.Listed) == 0 }

// Single returns the only accepted value, and whether exactly one value is accepted. It does not consider absence.
func (v Values) Single() (string, bool) {
	if v.Complement || len(v.Listed) != 1 {
		return "", false
	}
	return v.Listed[0], true
}

// within reports whether value is an integer within the bounds. Without bounds it returns true for every value.
func (v Values) within(value string) bool {
	if v.Min == nil && v.Max == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return (v.Min == nil || n >= *v.Min) && (v.Max == nil || n <= *v.Max)
}

// Intersect returns the set of what both v and w accept.
func (v Values) Intersect(w Values) Values {
	absent := v.Absent && w.Absent
	if !v.Complement {
		return Values{Listed: keep(v.Listed, w.Accepts), Absent: absent}
	}
	if !w.Complement {
		return Values{Listed: keep(w.Listed, v.Accepts), Absent: absent}
	}
	out := Values{Complement: true, Absent: absent, Min: tighter(v.Min, w.Min, 1), Max: tighter(v.Max, w.Max, -1)}
	if out.Min != nil && out.Max != nil && *out.Min > *out.Max {
		return Values{Absent: absent}
	}
	out.Listed = sorted(slices.Concat(v.Listed, w.Listed))
	return out
}

// Intersects reports whether v and w accept a common value, or both absence.
func (v Values) Intersects(w Values) bool { return !v.Intersect(w).IsEmpty() }

// keep returns the values for which accept returns true; nil if there are none.
func keep(values []string, accept func(string) bool) []string {
	var out []string
	for _, s := range values {
		if accept(s) {
			out = append(out, s)
		}
	}
	return out
}

// tighter returns the larger of two bounds if sign is 1, the smaller if it is -1. nil is no bound.
func tighter(a, b *int64, sign int) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil, cmp.Compare(*a, *b)*sign >= 0:
		return a
	}
	return b
}

// Compare orders sets of values by their text.
func (v Values) Compare(w Values) int { return cmp.Compare(v.String(), w.String()) }

// String returns v as a requirement without its key: "In [a b]", "Gte 4 Lte 8", "Exists".
func (v Values) String() string {
	if !v.Complement {
		switch {
		case len(v.Listed) == 0 && v.Absent:
			return string(DoesNotExist)
		case len(v.Listed) == 0:
			return "nothing"
		}
		return "In [" + strings.Join(v.Listed, " ") + "]"
	}
	var parts []string
	if len(v.Listed) > 0 {
		parts = append(parts, "NotIn ["+strings.Join(v.Listed, " ")+"]")
	}
	if v.Min != nil {
		parts = append(parts, "Gte "+strconv.FormatInt(*v.Min, 10))
	}
	if v.Max != nil {
		parts = append(parts, "Lte "+strconv.FormatInt(*v.Max, 10))
	}
	if len(parts) == 0 || len(v.Listed) > 0 && !v.Absent {
		parts = append(parts, string(Exists))
	}
	return strings.Join(parts, " ")
}

// AppendKey appends a key to b, for maps and hashes. Different sets of values have different keys.
func (v Values) AppendKey(b []byte) []byte {
	b = hashkey.Text(hashkey.Int(b, len(v.Listed)), v.Listed...)
	b = hashkey.Flag(b, v.Complement, v.Absent, v.Min != nil, v.Max != nil)
	for _, bound := range []*int64{v.Min, v.Max} {
		if bound != nil {
			b = hashkey.Int(b, *bound)
		}
	}
	return b
}

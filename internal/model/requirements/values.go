// Package requirements says what a pod accepts and what a node offers: label
// requirements, taints and tolerations.
//
// In: label keys, operators, values; taints; tolerations.
// Out: intersections, and whether one side accepts the other.
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

// Values is what one label key may be: a finite set of values, or everything
// except a finite set within optional integer bounds; and perhaps absent. The
// zero value accepts nothing, so nothing satisfies it.
type Values struct {
	// Listed are the accepted values, or the refused ones if Complement is
	// set. Sorted, without duplicates; never altered after it was made.
	Listed     []string
	Complement bool

	// Absent is whether a node without the label is accepted too: for NotIn
	// and DoesNotExist, as in Kubernetes.
	Absent bool

	// Min and Max bound the value, inclusively, as an integer. Only a
	// complement has bounds: on a finite set they are applied at once.
	Min, Max *int64
}

// Operator is how a requirement compares a label's value.
type Operator string

// The operators of node affinity, and Gte and Lte, which NodePools have besides.
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

// ValuesOf returns what operator and values accept. Unknown operators, and
// comparisons with something that is not one integer, accept nothing and
// return false.
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
	case Gt, Lt, Gte, Lte:
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

// OneOf accepts exactly the values given.
func OneOf(values ...string) Values { return Values{Listed: sorted(values)} }

// NoneOf accepts everything but the values given, and absence too.
func NoneOf(values ...string) Values {
	return Values{Listed: sorted(values), Complement: true, Absent: true}
}

// Missing accepts no value, only absence.
func Missing() Values { return Values{Absent: true} }

// Any accepts every value, but not absence.
func Any() Values { return Values{Complement: true} }

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

func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// Accepts reports whether value is in the set.
func (v Values) Accepts(value string) bool {
	_, listed := slices.BinarySearch(v.Listed, value)
	return listed != v.Complement && v.within(value)
}

// IsEmpty reports whether nothing is accepted, neither a value nor absence.
func (v Values) IsEmpty() bool { return !v.Complement && !v.Absent && len(v.Listed) == 0 }

// Single returns the only value accepted, if there is exactly one.
func (v Values) Single() (string, bool) {
	if v.Complement || len(v.Listed) != 1 {
		return "", false
	}
	return v.Listed[0], true
}

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

// Intersect returns what both accept.
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

// Intersects reports whether something is accepted by both.
func (v Values) Intersects(w Values) bool { return !v.Intersect(w).IsEmpty() }

func keep(values []string, accept func(string) bool) []string {
	var out []string
	for _, s := range values {
		if accept(s) {
			out = append(out, s)
		}
	}
	return out
}

// tighter returns the larger bound if sign is 1, the smaller if it is -1.
func tighter(a, b *int64, sign int) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil, cmp.Compare(*a, *b)*sign >= 0:
		return a
	}
	return b
}

// Compare is a total order over sets of values.
func (v Values) Compare(w Values) int { return cmp.Compare(v.String(), w.String()) }

// String writes v as a requirement without its key: "In [a b]", "Gte 4 Lte 8", "Exists".
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

// AppendKey appends a key of the values: other values have another key.
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

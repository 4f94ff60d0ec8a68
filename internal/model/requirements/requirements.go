package requirements

import (
	"maps"
	"slices"
	"strings"
)

// Labels are the labels of a node or a pod.
type Labels = map[string]string

// Requirement is one requirement of a NodePool or of a node affinity term, as its user wrote it.
type Requirement struct {
	Key      string   // label
	Operator Operator // In, NotIn, Exists, …
	Values   []string // empty for Exists and DoesNotExist

	// MinValues is the minimum number of different values of the label that the instance types of one launch must have;
	// 0: no minimum. Only requirements of NodePools have it.
	MinValues int
}

// Requirements are the values that several requirements accept together, by key. A missing key is not constrained.
type Requirements map[string]Values

// All returns the values that all of reqs accept. The second result is the first invalid requirement, which accepts
// no value (see ValuesOf); nil if all are valid.
func All(reqs ...Requirement) (Requirements, *Requirement) {
	out := make(Requirements, len(reqs))
	var invalid *Requirement
	for i, r := range reqs {
		v, ok := ValuesOf(r.Operator, r.Values...)
		if !ok && invalid == nil {
			invalid = &reqs[i]
		}
		out.Narrow(r.Key, v)
	}
	return out, invalid
}

// Exactly returns requirements that accept, for each of the labels, only its value.
func Exactly(labels Labels) Requirements {
	out := make(Requirements, len(labels))
	for k, v := range labels {
		out[k] = OneOf(v)
	}
	return out
}

// Narrow restricts the values of key to those that v accepts. It changes r.
func (r Requirements) Narrow(key string, v Values) {
	if old, ok := r[key]; ok {
		v = old.Intersect(v)
	}
	r[key] = v
}

// And returns the requirements of both; neither is changed.
func (r Requirements) And(s Requirements) Requirements {
	out := maps.Clone(r)
	if out == nil {
		out = Requirements{}
	}
	for k, v := range s {
		out.Narrow(k, v)
	}
	return out
}

// Keys returns the constrained keys, sorted.
func (r Requirements) Keys() []string {
	out := make([]string, 0, len(r))
	for k := range r {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Conflict returns the first key, by name, for which r and s have nothing in common: they accept no common value, and
// not both accept a missing label. It returns "" if there is no such key. A key that only one of r and s constrains is
// not a conflict.
func (r Requirements) Conflict(s Requirements) string {
	first := ""
	for k, v := range s {
		accepted, ok := r[k]
		if !ok || first != "" && k > first {
			continue
		}
		if !accepted.Intersects(v) {
			first = k
		}
	}
	return first
}

// Unsatisfied returns the first key, by name, for which labels do not satisfy r; "" if they satisfy r. A missing label
// satisfies only NotIn and DoesNotExist.
func (r Requirements) Unsatisfied(labels Labels) string {
	first := ""
	for k, v := range r {
		if first != "" && k > first {
			continue
		}
		value, ok := labels[k]
		if ok && !v.Accepts(value) || !ok && !v.Absent {
			first = k
		}
	}
	return first
}

// Accepts reports whether labels satisfy r.
func (r Requirements) Accepts(labels Labels) bool { return r.Unsatisfied(labels) == "" }

// String returns "key In [a b], other Exists", sorted by key.
func (r Requirements) String() string {
	parts := make([]string, 0, len(r))
	for _, k := range r.Keys() {
		parts = append(parts, k+" "+r[k].String())
	}
	return strings.Join(parts, ", ")
}

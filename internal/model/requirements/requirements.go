package requirements

import (
	"maps"
	"slices"
	"strings"
)

// Labels are a node's labels.
type Labels = map[string]string

// Requirement is one requirement of a NodePool or of a node affinity term, as the user wrote it.
type Requirement struct {
	Key      string   // label
	Operator Operator // In, NotIn, Exists, …
	Values   []string // empty for Exists and DoesNotExist

	// MinValues is how many distinct values must stay available; 0 for no such minimum. Only NodePools have it.
	MinValues int
}

// Requirements are the values that several requirements accept together, by key. A missing key is not constrained.
type Requirements map[string]Values

// All returns the values that all of reqs accept. The second result is the first requirement that nothing can satisfy
// (an unknown operator, a comparison with a word), or nil.
func All(reqs ...Requirement) (Requirements, *Requirement) {
	out := make(Requirements, len(reqs))
	var wrong *Requirement
	for i, r := range reqs {
		v, ok := ValuesOf(r.Operator, r.Values...)
		if !ok && wrong == nil {
			wrong = &reqs[i]
		}
		out.Narrow(r.Key, v)
	}
	return out, wrong
}

// Exactly returns requirements that accept exactly these labels.
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

// Conflict returns the first key, by name, for which r and s have no common value, or "" if there is none. A key that
// only one of them has is not a conflict.
func (r Requirements) Conflict(s Requirements) string {
	worst := ""
	for k, v := range s {
		mine, ok := r[k]
		if !ok || worst != "" && k > worst {
			continue
		}
		if !mine.Intersects(v) {
			worst = k
		}
	}
	return worst
}

// Refusal returns the first key, by name, whose label r does not accept, or "" if labels satisfy r. A missing label
// satisfies only NotIn and DoesNotExist.
func (r Requirements) Refusal(labels Labels) string {
	worst := ""
	for k, v := range r {
		if worst != "" && k > worst {
			continue
		}
		value, ok := labels[k]
		if ok && !v.Accepts(value) || !ok && !v.Absent {
			worst = k
		}
	}
	return worst
}

// Accepts reports whether a node with these labels satisfies r.
func (r Requirements) Accepts(labels Labels) bool { return r.Refusal(labels) == "" }

// String returns "key In [a b], other Exists", sorted by key.
func (r Requirements) String() string {
	parts := make([]string, 0, len(r))
	for _, k := range r.Keys() {
		parts = append(parts, k+" "+r[k].String())
	}
	return strings.Join(parts, ", ")
}

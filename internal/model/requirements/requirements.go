package requirements

import (
	"maps"
	"slices"
	"strings"
)

// Labels are a node's labels.
type Labels = map[string]string

// Requirement is one line of a NodePool's requirements or of a node affinity
// term, as its author wrote it.
type Requirement struct {
	Key      string   // label
	Operator Operator // In, NotIn, Exists, …
	Values   []string // empty for Exists and DoesNotExist

	// MinValues is how many distinct values must stay available; 0 for no
	// such demand. Only NodePools have it.
	MinValues int
}

// Requirements are what all of several requirements accept together, by key.
// A key that is not there is not constrained.
type Requirements map[string]Values

// All returns what every one of reqs accepts. The second result names the
// first requirement that nothing can satisfy as it is written (an unknown
// operator, a comparison with a word), or is nil.
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

// Exactly returns requirements that accept just these labels.
func Exactly(labels Labels) Requirements {
	out := make(Requirements, len(labels))
	for k, v := range labels {
		out[k] = OneOf(v)
	}
	return out
}

// Narrow leaves for key only what v accepts too. It alters r.
func (r Requirements) Narrow(key string, v Values) {
	if old, ok := r[key]; ok {
		v = old.Intersect(v)
	}
	r[key] = v
}

// And returns what both accept; neither is altered.
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

// Conflict returns the first key, by name, for which r and s have nothing in
// common, or "" if there is none. A key that only one of them has is no conflict.
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

// Refusal returns the first key, by name, whose label r does not accept, or "" if
// labels satisfy r. A label that is missing satisfies only NotIn and DoesNotExist.
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

// String writes "key In [a b], other Exists", sorted by key.
func (r Requirements) String() string {
	parts := make([]string, 0, len(r))
	for _, k := range r.Keys() {
		parts = append(parts, k+" "+r[k].String())
	}
	return strings.Join(parts, ", ")
}

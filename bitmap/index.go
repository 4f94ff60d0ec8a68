package bitmap

import (
	"slices"

	"github.com/joiner-sh/joiner/constraint"
)

// Index finds the members whose label a requirement accepts: offers, or nodes.
// A key is indexed when it is first asked for.
type Index struct {
	size  int
	visit func(key string, add func(from, to int, value string))
	keys  map[string]*Column
}

// Column is who has which value of one label.
type Column struct {
	Values []string // sorted
	Sets   []Set    // by value
	Absent Set      // the members without the label
}

// NewIndex returns an index of so many members. visit calls add for those that have the label, in any
// order: a range of members from, from+1, …, to-1 and the value that they have.
func NewIndex(size int, visit func(key string, add func(from, to int, value string))) *Index {
	return &Index{size: size, visit: visit, keys: map[string]*Column{}}
}

// Of returns who has which value of the label. It is not to be altered.
func (x *Index) Of(key string) *Column {
	if k, ok := x.keys[key]; ok {
		return k
	}
	sets := map[string]Set{}
	k := &Column{Absent: New(x.size)}
	k.Absent.AddRange(0, x.size)
	x.visit(key, func(from, to int, value string) {
		set, ok := sets[value]
		if !ok {
			set = New(x.size)
			sets[value] = set
			k.Values = append(k.Values, value)
		}
		set.AddRange(from, to)
		for i := from; i < to; i++ {
			k.Absent.Remove(i)
		}
	})
	slices.Sort(k.Values)
	for _, v := range k.Values {
		k.Sets = append(k.Sets, sets[v])
	}
	x.keys[key] = k
	return k
}

// Accepting returns the members whose label v accepts.
func (x *Index) Accepting(key string, v constraint.Values) Set {
	k, out := x.Of(key), New(x.size)
	if v.Absent {
		out.Or(k.Absent)
	}
	if !v.Complement {
		for _, value := range v.Listed {
			if i, ok := slices.BinarySearch(k.Values, value); ok {
				out.Or(k.Sets[i])
			}
		}
		return out
	}
	for i, value := range k.Values {
		if v.Accepts(value) {
			out.Or(k.Sets[i])
		}
	}
	return out
}

// Satisfying returns the members that satisfy all of reqs.
func (x *Index) Satisfying(reqs constraint.Requirements) Set {
	out := New(x.size)
	out.AddRange(0, x.size)
	for key, v := range reqs {
		out.And(x.Accepting(key, v))
	}
	return out
}

// SatisfyingOne returns the members that satisfy at least one of the
// alternatives; all of them if there are none.
func (x *Index) SatisfyingOne(alternatives []constraint.Requirements) Set {
	if len(alternatives) == 0 {
		return x.Satisfying(nil)
	}
	out := New(x.size)
	for _, reqs := range alternatives {
		out.Or(x.Satisfying(reqs))
	}
	return out
}

package bitset

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Index finds the members (offerings or nodes) that satisfy requirements on their labels. A label is indexed on first
// use. An Index must not be used concurrently.
type Index struct {
	size    int                                                    // number of members
	visit   func(key string, add func(from, to int, value string)) // calls add for all members with the label key
	columns map[string]*Column                                     // the indexed labels

	findNames func() map[string]bool // returns the labels that members may have; nil if they are unknown
	names     map[string]bool        // the result of findNames; nil before its first call
	none      *Column                // the column of every label that no member has

	// Scratch space: the members that satisfy one alternative, and those that one requirement accepts.
	alternative, accepted Set
}

// manyColumns is the number of columns at which an Index calls findNames. From then on, all labels that no member has
// share the column none, so that arbitrary labels do not fill the memory.
const manyColumns = 64

// Column holds the members by their value of one label.
type Column struct {
	Values []string // sorted
	Sets   []Set    // for each of Values: the members with this value
	Absent Set      // the members without the label
}

// NewIndex returns an index of size members. visit must call add for all members that have the label key, in any order.
// Each call of add is for the members from, from+1, …, to-1, which have the same value.
func NewIndex(size int, visit func(key string, add func(from, to int, value string))) *Index {
	x := &Index{size: size, visit: visit, columns: map[string]*Column{}, none: &Column{Absent: New(size)}}
	x.none.Absent.AddRange(0, size)
	return x
}

// WithNames sets the function that returns the labels that members may have, and returns x. The Index calls the
// function once, when it needs another column and already has manyColumns.
func (x *Index) WithNames(find func() map[string]bool) *Index {
	x.findNames = find
	return x
}

// Column returns the column of the label. The caller must not change it.
func (x *Index) Column(key string) *Column {
	if k, ok := x.columns[key]; ok {
		return k
	}
	if x.findNames != nil && len(x.columns) >= manyColumns {
		if x.names == nil {
			x.names = x.findNames()
		}
		if !x.names[key] {
			return x.none
		}
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
	x.columns[key] = k
	return k
}

// Accepting returns the members whose value of the label v accepts. v may also accept a missing label.
func (x *Index) Accepting(key string, v requirements.Values) Set {
	out := New(x.size)
	accept(out, x.Column(key), v)
	return out
}

// accept adds to out the members of the column that v accepts.
func accept(out Set, k *Column, v requirements.Values) {
	if v.Absent {
		out.Or(k.Absent)
	}
	if !v.Complement && len(v.Listed) < len(k.Values) { // faster than a test of all values
		for _, value := range v.Listed {
			if i, ok := slices.BinarySearch(k.Values, value); ok {
				out.Or(k.Sets[i])
			}
		}
		return
	}
	for i, value := range k.Values {
		if v.Accepts(value) {
			out.Or(k.Sets[i])
		}
	}
}

// Satisfying returns the members that satisfy all of reqs.
func (x *Index) Satisfying(reqs requirements.Requirements) Set {
	out := New(x.size)
	out.AddRange(0, x.size)
	x.narrow(out, reqs)
	return out
}

// narrow removes from set the members that do not satisfy all of reqs.
func (x *Index) narrow(set Set, reqs requirements.Requirements) {
	if x.accepted == nil {
		x.accepted = New(x.size)
	}
	for key, v := range reqs {
		k := x.Column(key)
		if len(k.Values) == 0 { // no member has the label
			if !v.Absent {
				clear(set)
			}
			continue
		}
		clear(x.accepted)
		accept(x.accepted, k, v)
		set.And(x.accepted)
	}
}

// SatisfyingOne returns the members that satisfy at least one of the alternatives; all members if there are no
// alternatives.
func (x *Index) SatisfyingOne(alternatives []requirements.Requirements) Set {
	if len(alternatives) == 0 {
		return x.Satisfying(nil)
	}
	out := New(x.size)
	if x.alternative == nil {
		x.alternative = New(x.size)
	}
	for _, reqs := range alternatives {
		x.alternative.AddRange(0, x.size)
		x.narrow(x.alternative, reqs)
		out.Or(x.alternative)
	}
	return out
}

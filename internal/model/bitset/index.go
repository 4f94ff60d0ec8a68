package bitset

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Index finds the members whose label a requirement accepts: offers, or nodes.
// A key is indexed when it is first asked for.
type Index struct {
	size  int
	visit func(key string, add func(from, to int, value string))
	keys  map[string]*Column

	names   func() map[string]bool // the labels that members may have; nil: not known
	named   map[string]bool        // what names returned, once it was asked
	none    *Column                // of labels that no member has
	one, by Set                    // scratch
}

// manyKeys is how many labels are asked for before it pays to know which ones members have at all.
const manyKeys = 64

// Column is who has which value of one label.
type Column struct {
	Values []string // sorted
	Sets   []Set    // by value
	Absent Set      // the members without the label
}

// NewIndex returns an index of size members. visit calls add for those that have the label, in any
// order: a range of members from, from+1, …, to-1 and the value that they have.
func NewIndex(size int, visit func(key string, add func(from, to int, value string))) *Index {
	x := &Index{size: size, visit: visit, keys: map[string]*Column{}, none: &Column{Absent: New(size)}}
	x.none.Absent.AddRange(0, size)
	return x
}

// Naming lets the index ask for the labels that members may have, once very many have been asked for. It returns x.
func (x *Index) Naming(names func() map[string]bool) *Index {
	x.names = names
	return x
}

// Of returns who has which value of the label. It is not to be altered.
func (x *Index) Of(key string) *Column {
	if k, ok := x.keys[key]; ok {
		return k
	}
	if x.names != nil && len(x.keys) >= manyKeys {
		if x.named == nil {
			x.named = x.names()
		}
		if !x.named[key] {
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
	x.keys[key] = k
	return k
}

// Accepting returns the members whose label v accepts.
func (x *Index) Accepting(key string, v requirements.Values) Set {
	out := New(x.size)
	accept(out, x.Of(key), v)
	return out
}

// accept adds the members of the column that v accepts.
func accept(out Set, k *Column, v requirements.Values) {
	if v.Absent {
		out.Or(k.Absent)
	}
	if !v.Complement && len(v.Listed) < len(k.Values) {
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

// narrow leaves in the set the members that satisfy all of reqs.
func (x *Index) narrow(set Set, reqs requirements.Requirements) {
	if x.by == nil {
		x.by = New(x.size)
	}
	for key, v := range reqs {
		k := x.Of(key)
		if len(k.Values) == 0 { // no member has the label
			if !v.Absent {
				clear(set)
			}
			continue
		}
		clear(x.by)
		accept(x.by, k, v)
		set.And(x.by)
	}
}

// SatisfyingOne returns the members that satisfy at least one of the
// alternatives; all of them if there are none.
func (x *Index) SatisfyingOne(alternatives []requirements.Requirements) Set {
	if len(alternatives) == 0 {
		return x.Satisfying(nil)
	}
	out := New(x.size)
	if x.one == nil {
		x.one = New(x.size)
	}
	for _, reqs := range alternatives {
		x.one.AddRange(0, x.size)
		x.narrow(x.one, reqs)
		out.Or(x.one)
	}
	return out
}

package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/constraint"
)

// labelIndex finds the offerings, or the nodes, whose label a requirement
// accepts. A key is indexed when it is first asked for.
type labelIndex struct {
	size int
	// visit calls add for every member that has the label; in any order.
	visit func(key string, add func(from, to int, value string))
	keys  map[string]*keyIndex
}

// keyIndex is who has which value of one label.
type keyIndex struct {
	values []string // sorted
	sets   []bitset // by value
	absent bitset
}

func newLabelIndex(size int, visit func(key string, add func(from, to int, value string))) *labelIndex {
	return &labelIndex{size: size, visit: visit, keys: map[string]*keyIndex{}}
}

func (x *labelIndex) of(key string) *keyIndex {
	if k, ok := x.keys[key]; ok {
		return k
	}
	sets := map[string]bitset{}
	k := &keyIndex{absent: newBitset(x.size)}
	k.absent.setRange(0, x.size)
	x.visit(key, func(from, to int, value string) {
		set, ok := sets[value]
		if !ok {
			set = newBitset(x.size)
			sets[value] = set
			k.values = append(k.values, value)
		}
		set.setRange(from, to)
		for i := from; i < to; i++ {
			k.absent.clear(i)
		}
	})
	slices.Sort(k.values)
	for _, v := range k.values {
		k.sets = append(k.sets, sets[v])
	}
	x.keys[key] = k
	return k
}

// accepting returns the members whose label v accepts.
func (x *labelIndex) accepting(key string, v constraint.Values) bitset {
	k, out := x.of(key), newBitset(x.size)
	if v.Absent {
		out.or(k.absent)
	}
	if !v.Complement {
		for _, value := range v.Listed {
			if i, ok := slices.BinarySearch(k.values, value); ok {
				out.or(k.sets[i])
			}
		}
		return out
	}
	for i, value := range k.values {
		if v.Accepts(value) {
			out.or(k.sets[i])
		}
	}
	return out
}

// satisfying returns the members that satisfy all of reqs.
func (x *labelIndex) satisfying(reqs constraint.Requirements) bitset {
	out := newBitset(x.size)
	out.setRange(0, x.size)
	for key, v := range reqs {
		out.and(x.accepting(key, v))
	}
	return out
}

// satisfyingOne returns the members that satisfy at least one of the
// alternatives; all of them if there are none.
func (x *labelIndex) satisfyingOne(alternatives []constraint.Requirements) bitset {
	if len(alternatives) == 0 {
		return x.satisfying(nil)
	}
	out := newBitset(x.size)
	for _, reqs := range alternatives {
		out.or(x.satisfying(reqs))
	}
	return out
}

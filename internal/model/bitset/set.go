// Package bitset implements sets of small integers as bit maps, and finds the numbers of the offerings or nodes whose
// labels satisfy requirements.
//
// In: the number of offerings or nodes, and those with each value of a label.
// Out: sets with intersection and union; the members that satisfy requirements.
// Never: an interpretation of the numbers, or a set that grows.
package bitset

import "math/bits"

// Set is a set of numbers from 0 upwards, for example of offerings or nodes. Only sets from New with the same n can be
// combined.
type Set []uint64

// New returns an empty set for the numbers below n.
func New(n int) Set { return make(Set, (n+63)/64) }

// Has reports whether i is in s.
func (s Set) Has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Add adds i to s.
func (s Set) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove removes i from s.
func (s Set) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// AddRange adds from, from+1, …, to-1.
func (s Set) AddRange(from, to int) {
	for from < to {
		n := min(to-from, 64-from&63) // how many numbers from..to-1 are in the same word as from
		s[from>>6] |= ^uint64(0) >> (64 - n) << (from & 63)
		from += n
	}
}

// And removes from s the members that are not in t.
func (s Set) And(t Set) {
	for i := range s {
		s[i] &= t[i]
	}
}

// Or adds the members of t to s.
func (s Set) Or(t Set) {
	for i := range s {
		s[i] |= t[i]
	}
}

// AndNot removes the members of t from s.
func (s Set) AndNot(t Set) {
	for i := range s {
		s[i] &^= t[i]
	}
}

// Clone returns an independent copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// Any reports whether s has a member.
func (s Set) Any() bool {
	for _, w := range s {
		if w != 0 {
			return true
		}
	}
	return false
}

// Count returns the number of members.
func (s Set) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Intersection returns the members of both s and t as a new set.
func (s Set) Intersection(t Set) Set {
	out := make(Set, len(s))
	for i := range s {
		out[i] = s[i] & t[i]
	}
	return out
}

// Intersects reports whether s and t have a common member. A nil t contains every number.
func (s Set) Intersects(t Set) bool {
	if t == nil {
		return s.Any()
	}
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// Each calls visit for every member, smallest first.
func (s Set) Each(visit func(i int)) {
	for i, w := range s {
		for w != 0 {
			visit(i<<6 | bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
}

// Next returns the smallest member that is at least i, or -1 if there is none.
func (s Set) Next(i int) int {
	for word := i >> 6; word < len(s); word++ {
		w := s[word]
		if word == i>>6 {
			w &= ^uint64(0) << (i & 63) // without the numbers below i
		}
		if w != 0 {
			return word<<6 | bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Key returns a string that is equal for equal sets.
func (s Set) Key() string {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	return string(b)
}

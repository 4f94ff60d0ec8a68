package packing

import "math/bits"

// bitset is a set of small integers: offerings, or nodes. Sets that are
// combined have the same length.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }
func (s bitset) set(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s bitset) clear(i int)    { s[i>>6] &^= 1 << (i & 63) }

// setRange adds from, from+1, …, to-1.
func (s bitset) setRange(from, to int) {
	for i := from; i < to; {
		if i&63 == 0 && to-i >= 64 {
			s[i>>6] = ^uint64(0)
			i += 64
			continue
		}
		s.set(i)
		i++
	}
}

// and keeps in s what t holds too.
func (s bitset) and(t bitset) {
	for i := range s {
		s[i] &= t[i]
	}
}

// or adds to s what t holds.
func (s bitset) or(t bitset) {
	for i := range s {
		s[i] |= t[i]
	}
}

// andNot takes out of s what t holds.
func (s bitset) andNot(t bitset) {
	for i := range s {
		s[i] &^= t[i]
	}
}

func (s bitset) clone() bitset { return append(bitset(nil), s...) }

func (s bitset) any() bool {
	for _, w := range s {
		if w != 0 {
			return true
		}
	}
	return false
}

func (s bitset) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// both returns a new set with what s and t have in common.
func (s bitset) both(t bitset) bitset {
	out := make(bitset, len(s))
	for i := range s {
		out[i] = s[i] & t[i]
	}
	return out
}

// meets reports whether s and t have something in common; nil stands for everything.
func (s bitset) meets(t bitset) bool {
	if t == nil {
		return s.any()
	}
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// each calls visit for every member, smallest first.
func (s bitset) each(visit func(i int)) {
	for i, w := range s {
		for w != 0 {
			visit(i<<6 | bits.TrailingZeros64(w))
			w &= w - 1
		}
	}
}

// next returns the smallest member from i on, -1 if there is none.
func (s bitset) next(i int) int {
	for at := i >> 6; at < len(s); at++ {
		w := s[at]
		if at == i>>6 {
			w &= ^uint64(0) << (i & 63)
		}
		if w != 0 {
			return at<<6 | bits.TrailingZeros64(w)
		}
	}
	return -1
}

// key returns the set as a string, to find equal sets by.
func (s bitset) key() string {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	return string(b)
}

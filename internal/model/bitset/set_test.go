package bitset

import (
	"slices"
	"testing"
)

// TestNext: Next finds each member once, in order, and nothing beyond the last.
func TestNext(t *testing.T) {
	t.Parallel()
	for _, want := range [][]int{nil, {0}, {63}, {64}, {0, 1, 63, 64, 65, 127, 128, 199}} {
		s := New(200)
		for _, i := range want {
			s.Add(i)
		}
		var got []int
		for i := s.Next(0); i >= 0; i = s.Next(i + 1) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Next visits %v, want %v", got, want)
		}
	}
}

// TestAddRange: AddRange adds as many numbers as the range has, among them its first and its last.
func TestAddRange(t *testing.T) {
	t.Parallel()
	for from := range 140 {
		for to := from; to < 200; to++ {
			s := New(200)
			s.AddRange(from, to)
			if n := s.Count(); n != to-from || n > 0 && (!s.Has(from) || !s.Has(to-1)) {
				t.Fatalf("AddRange(%d, %d) adds %d members, want %d, with the first and the last number", from, to, n, to-from)
			}
		}
	}
}

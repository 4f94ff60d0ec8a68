package packing

import "github.com/joiner-sh/joiner/internal/model/hashkey"

// capKey is the key of a part, in maps of limits and counts.
func capKey(class int, domains []int) string { return string(intsKey([]int{class}, domains)) }

// intsKey encodes the numbers as a key.
func intsKey(lists ...[]int) []byte {
	var b []byte
	for _, list := range lists {
		for _, n := range list {
			b = hashkey.Int(b, n)
		}
	}
	return b
}

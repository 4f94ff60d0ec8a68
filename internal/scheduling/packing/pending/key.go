package pending

import "github.com/joiner-sh/joiner/internal/model/hashkey"

// PartKey is the key of a part, in maps of limits and counts.
func PartKey(class int, domains []int) string { return string(IntsKey([]int{class}, domains)) }

// IntsKey encodes the numbers as a key.
func IntsKey(lists ...[]int) []byte {
	var b []byte
	for _, list := range lists {
		for _, n := range list {
			b = hashkey.Int(b, n)
		}
	}
	return b
}

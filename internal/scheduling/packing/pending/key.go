package pending

import "github.com/joiner-sh/joiner/internal/model/hashkey"

// PartKey returns the key of a part, made of its whole class and its domains, for maps that outlive an attempt. The
// number of the part may change from attempt to attempt.
func PartKey(class int, domains []int) string { return string(IntsKey([]int{class}, domains)) }

// IntsKey encodes the numbers of all lists as a key. It does not encode where a list ends.
func IntsKey(lists ...[]int) []byte {
	var b []byte
	for _, list := range lists {
		for _, n := range list {
			b = hashkey.Int(b, n)
		}
	}
	return b
}

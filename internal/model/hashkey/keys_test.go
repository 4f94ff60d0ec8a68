package hashkey

import (
	"math"
	"testing"
)

// TestDifferentKeys: different sequences of values of the same types have different keys.
func TestDifferentKeys(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][][]byte{
		"numbers": {Int(nil, 0), Int(nil, 1), Int(nil, -1), Int(nil, int64(math.MaxInt64)), Int(nil, int64(math.MinInt64)), Int(Int(nil, 1), 1)},
		"texts": {Text(nil), Text(nil, ""), Text(nil, "ab"), Text(nil, "a", "b"), Text(nil, "b", "a"), Text(nil, "", "ab"),
			Text(nil, "ab", "")},
		"flags": {Flag(nil, true, true), Flag(nil, true, false), Flag(nil, false, true, false)},
	} {
		seen := map[string]int{}
		for i, b := range keys {
			if other, ok := seen[string(b)]; ok {
				t.Errorf("%s: values %d and %d have the same key", name, other, i)
			}
			seen[string(b)] = i
		}
	}
}

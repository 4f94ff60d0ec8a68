package offering

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestSortByPrice compares the sort of packed integers with a plain one, for prices that fit into these integers and
// for some that do not.
func TestSortByPrice(t *testing.T) {
	for _, maxPrice := range []int64{3, 1e9, 1<<priceBits - 1, 1 << 60} {
		random := rand.New(rand.NewPCG(1, uint64(maxPrice)))
		all := make([]priced, 500)
		for i := range all {
			all[i] = priced{price: catalog.Price(random.Int64N(maxPrice + 1)), offer: i}
		}
		if maxPrice == 3 {
			all[7].price = -1 // does not fit into a packed integer
		}
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b priced) int { return int(min(max(a.price-b.price, -1), 1)) })
		if sortByPrice(all); !slices.Equal(all, want) {
			t.Errorf("sortByPrice and a plain sort differ for prices up to %d", maxPrice)
		}
	}
}

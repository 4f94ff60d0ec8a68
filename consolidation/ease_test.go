package consolidation_test

import (
	"testing"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/consolidation"
)

// TestLargeGroupsForLittle: a large group of nodes is moved for little where a fleet costs much more than it might, and left alone where it
// does not.
func TestLargeGroupsForLittle(t *testing.T) {
	t.Parallel()
	market := smallMarket(t)
	for name, c := range map[string]struct {
		seed dice
		pods int
		want bool // a large group is moved for little
	}{
		"a tenth of the price is left to save":                  {24, 200, true},
		"a twentieth is":                                        {3, 400, true},
		"a thirtieth is, and it would move a seventh of them":   {33, 400, false},
		"a thirtieth is, and it would move a fifteenth":         {30, 400, false},
		"a hundredth is, and hardly any pod would be disturbed": {46, 400, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fleet(t, []cluster.Pool{{Name: "general", NodeClass: "default"}}, mixedPods(c.pods, 12, &c.seed), market)
			scaleDown(&in, 45, &c.seed)
			in.Rooms = map[string]int{"general": 8}
			moved := false
			for round := 0; ; round++ {
				out := consolidation.Find(in)
				left := float64(out.Price-out.Target) / float64(out.Price)
				for _, m := range out.Moves {
					if len(m.Nodes) > 4 && m.Worth < 0.15 {
						moved = true
						t.Logf("round %d: %d nodes for %.2f, %.1f %% left", round, len(m.Nodes), m.Worth, 100*left)
					}
				}
				if len(out.Moves) == 0 {
					if moved != c.want || !moved && left >= 0.035 {
						t.Errorf("it rests after %d rounds with %.1f %% left; large groups moved for little: %t, want %t", round, 100*left, moved, c.want)
					}
					return
				}
				in = done(t, in, out.Moves, round)
			}
		})
	}
}

package topology

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// TestStanding: a kind of resident stands to the groups as each of its pods does.
func TestStanding(t *testing.T) {
	b := bookOf(nil, pod("web", spread(Zone, 1, "web"), away(about(Hostname, "web"), about(Zone, "db")))) // 0, 1, 2
	mine, theirs, unknown := about(Zone, "db"), about(Hostname, "web"), about(Zone, "cache")
	for name, c := range map[string]struct {
		kind       cluster.Kind
		in, avoids []int
	}{
		"counted":        {kind: cluster.Kind{Namespace: "default", Labels: constraint.Labels{"app": "web"}}, in: []int{0, 1}},
		"elsewhere":      {kind: cluster.Kind{Namespace: "other", Labels: constraint.Labels{"app": "web"}}},
		"of no interest": {kind: cluster.Kind{Namespace: "default", Labels: constraint.Labels{"app": "cache"}}},
		"keeping away": {
			kind: cluster.Kind{Namespace: "default", Labels: constraint.Labels{"app": "db"}, Avoids: []cluster.Term{mine, unknown, theirs, mine}},
			in:   []int{2}, avoids: []int{2, 1, 2},
		},
	} {
		first := b.Standing(&c.kind)
		if !slices.Equal(first.In, c.in) || !slices.Equal(first.Avoids, c.avoids) {
			t.Errorf("%s: in %v, avoids %v; want %v and %v", name, first.In, first.Avoids, c.in, c.avoids)
		}
		if made := testing.AllocsPerRun(10, func() { b.Standing(&c.kind) }); made != 0 {
			t.Errorf("%s: the second look makes %v objects", name, made)
		}
	}
}

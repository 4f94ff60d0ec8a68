package consolidation_test

import (
	"testing"
	"time"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/consolidation"
)

// TestSteady: pods that move are the same workload, under whatever names; who comes, goes or becomes larger is another.
func TestSteady(t *testing.T) {
	t.Parallel()
	shop := shop(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	of := func(nodes ...row) cluster.Snapshot { return rows(shop, nodes...).Snapshot }
	node := func(pods ...int64) row { return row{4, catalog.OnDemand, catalog.Dollar, pods} }
	first := of(node(1000, 500), node(500))
	waits := of(node(1000), node(500))
	waits.Pods = first.Nodes[0].Pods[1:]
	leaves := of(node(1000), node(500))
	leaves.Nodes[1].Leaving = true
	for name, c := range map[string]struct {
		then cluster.Snapshot
		want bool
	}{
		"nothing has happened":            {then: first, want: true},
		"a pod is elsewhere":              {then: of(node(1000), node(500, 500)), want: true},
		"one has come":                    {then: of(node(1000, 500), node(500, 500))},
		"one has gone":                    {then: of(node(1000, 500))},
		"one has become larger":           {then: of(node(1000, 600), node(500))},
		"one is on the way, not gone":     {then: waits, want: true},
		"one is about to leave, not gone": {then: leaves, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s consolidation.Steady
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			if s.Is(now) {
				t.Error("it is steady before anything was seen")
			}
			s.Look(first, now)
			s.Look(c.then, now.Add(time.Minute))
			if s.Is(now.Add(time.Minute)) {
				t.Error("it is steady after a minute")
			}
			s.Look(c.then, now.Add(5*time.Minute))
			if got := s.Is(now.Add(5 * time.Minute)); got != c.want {
				t.Errorf("after five minutes it is steady: %v, want %v", got, c.want)
			}
			s.Look(c.then, now.Add(6*time.Minute))
			if !s.Is(now.Add(6 * time.Minute)) {
				t.Error("it is not steady five minutes after what has happened")
			}
		})
	}
}

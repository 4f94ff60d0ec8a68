package consolidation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestChurn: a pod that has moved to another node, under another name, is no change. A pod that comes, goes or becomes
// larger is a change.
func TestChurn(t *testing.T) {
	t.Parallel()
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	snapshot := func(nodes ...nodeSpec) cluster.Snapshot { return fleetOf(market, nodes...).Snapshot }
	node := func(pods ...int64) nodeSpec { return nodeSpec{4, catalog.OnDemand, catalog.Dollar, pods} }
	first := snapshot(node(1000, 500), node(500))
	pendingPod := snapshot(node(1000), node(500))
	pendingPod.Pods = first.Nodes[0].Pods[1:]
	terminatingNode := snapshot(node(1000), node(500))
	terminatingNode.Nodes[1].Leaving = true
	for name, c := range map[string]struct {
		then cluster.Snapshot
		want bool // churn is low a minute after the first observation
	}{
		"no change":                      {then: first, want: true},
		"a pod has moved":                {then: snapshot(node(1000), node(500, 500)), want: true},
		"a pod has come":                 {then: snapshot(node(1000, 500), node(500, 500))},
		"a pod has gone":                 {then: snapshot(node(1000, 500))},
		"a pod has become larger":        {then: snapshot(node(1000, 600), node(500))},
		"a pod is pending":               {then: pendingPod, want: true},
		"a pod is on a terminating node": {then: terminatingNode, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s consolidation.ChurnDetector
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			if s.IsLow(now) {
				t.Error("churn is low before the first observation")
			}
			s.Observe(first, now)
			s.Observe(c.then, now.Add(time.Minute))
			if got := s.IsLow(now.Add(time.Minute)); got != c.want {
				t.Errorf("after a minute churn is low: %v, want %v", got, c.want)
			}
			s.Observe(c.then, now.Add(2*time.Minute))
			if !s.IsLow(now.Add(2 * time.Minute)) {
				t.Error("churn is not low a minute after the change")
			}
		})
	}
}

// TestQuietPeriod: with regular changes, churn is low only after four times the median of their intervals
// (quietFactor), from a minute to an hour.
func TestQuietPeriod(t *testing.T) {
	t.Parallel()
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	seconds := func(n int) []time.Duration { return slices.Repeat([]time.Duration{time.Second}, n) }
	for name, c := range map[string]struct {
		gaps []time.Duration // before each arrival of a pod
		want time.Duration   // time without changes until churn is low
	}{
		"no changes":                 {want: time.Minute},
		"one change":                 {gaps: []time.Duration{time.Hour}, want: time.Minute},
		"one burst":                  {gaps: seconds(30), want: time.Minute},
		"every second for a while":   {gaps: seconds(300), want: 244 * time.Second}, // a burst starts every 61 s
		"every twenty seconds":       {gaps: slices.Repeat([]time.Duration{20 * time.Second}, 9), want: 80 * time.Second},
		"every six minutes":          {gaps: slices.Repeat([]time.Duration{6 * time.Minute}, 5), want: 24 * time.Minute},
		"every day":                  {gaps: slices.Repeat([]time.Duration{24 * time.Hour}, 5), want: time.Hour},
		"a burst, then a long pause": {gaps: append(seconds(9), 12*time.Hour), want: time.Minute}, // two bursts
		"a burst, then every ten minutes": {gaps: append(seconds(30),
			slices.Repeat([]time.Duration{10 * time.Minute}, 6)...), want: 40 * time.Minute},
		"in pairs, every 15 minutes": {gaps: []time.Duration{time.Second, 15 * time.Minute, time.Second, 15 * time.Minute,
			time.Second, 15 * time.Minute, time.Second, 15 * time.Minute}, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s consolidation.ChurnDetector
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var pods []int64
			observe := func() { s.Observe(fleetOf(market, nodeSpec{4, catalog.OnDemand, catalog.Dollar, pods}).Snapshot, now) }
			observe()
			for _, gap := range c.gaps {
				now, pods = now.Add(gap), append(pods, 1)
				observe()
			}
			if s.IsLow(now.Add(c.want - time.Second)) {
				t.Errorf("churn is low before %s", c.want)
			}
			if !s.IsLow(now.Add(c.want)) {
				t.Errorf("churn is not low after %s", c.want)
			}
		})
	}
}

// TestChurnIsHigh: churn is high after nine changes, which have eight intervals (maxIntervals), until it is low again.
// The pods of one scaled or updated workload come and go within a minute, and count as one change.
func TestChurnIsHigh(t *testing.T) {
	t.Parallel()
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	for name, c := range map[string]struct {
		changes int
		every   time.Duration
		want    bool
	}{
		"no change":               {0, time.Minute, false},
		"one change":              {1, time.Minute, false},
		"eight changes":           {8, time.Minute, false},
		"nine changes":            {9, time.Minute, true},
		"thirty changes":          {30, time.Minute, true},
		"one scaled workload":     {60, time.Second, false},
		"a pod every ten seconds": {60, 10 * time.Second, true},
	} {
		var s consolidation.ChurnDetector
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var pods []int64
		observe := func() { s.Observe(fleetOf(market, nodeSpec{4, catalog.OnDemand, catalog.Dollar, pods}).Snapshot, now) }
		observe()
		for range c.changes {
			now, pods = now.Add(c.every), append(pods, 1)
			observe()
		}
		if got := s.IsHigh(now); got != c.want {
			t.Errorf("%s: high churn is %v, want %v", name, got, c.want)
		}
		// The longest quiet period here is 280 s: with a pod every ten seconds, a burst starts every 70 s.
		if now = now.Add(5 * time.Minute); s.IsHigh(now) {
			t.Errorf("%s: churn is still high five minutes after the last change", name)
		}
	}
}

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
	snapshot := func(nodes ...row) cluster.Snapshot { return fleetOf(market, nodes...).Snapshot }
	node := func(pods ...int64) row { return row{4, catalog.OnDemand, catalog.Dollar, pods} }
	first := snapshot(node(1000, 500), node(500))
	pendingPod := snapshot(node(1000), node(500))
	pendingPod.Pods = first.Nodes[0].Pods[1:]
	terminatingNode := snapshot(node(1000), node(500))
	terminatingNode.Nodes[1].Leaving = true
	for name, c := range map[string]struct {
		then cluster.Snapshot
		want bool // churn is low five minutes after the first observation
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
			if s.IsLow(now.Add(time.Minute)) {
				t.Error("churn is low after a minute")
			}
			s.Observe(c.then, now.Add(5*time.Minute))
			if got := s.IsLow(now.Add(5 * time.Minute)); got != c.want {
				t.Errorf("low churn after five minutes: %v, want %v", got, c.want)
			}
			s.Observe(c.then, now.Add(6*time.Minute))
			if !s.IsLow(now.Add(6 * time.Minute)) {
				t.Error("churn is not low five minutes after the change")
			}
		})
	}
}

// TestQuietPeriod: with regular changes, churn is low only after a multiple of their usual interval.
func TestQuietPeriod(t *testing.T) {
	t.Parallel()
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	seconds := func(n int) []time.Duration { return slices.Repeat([]time.Duration{time.Second}, n) }
	for name, c := range map[string]struct {
		gaps []time.Duration // between the pods' arrivals
		want time.Duration   // time without changes until churn is low
	}{
		"no changes":                      {want: 5 * time.Minute},
		"one change":                      {gaps: []time.Duration{time.Hour}, want: 5 * time.Minute},
		"every few seconds":               {gaps: seconds(30), want: 5 * time.Minute},
		"every six minutes":               {gaps: slices.Repeat([]time.Duration{6 * time.Minute}, 5), want: 24 * time.Minute},
		"every day":                       {gaps: slices.Repeat([]time.Duration{24 * time.Hour}, 3), want: time.Hour},
		"many at once, then a long pause": {gaps: append(seconds(9), 12*time.Hour), want: 5 * time.Minute},
		"frequent, then rare": {gaps: append(seconds(30),
			slices.Repeat([]time.Duration{10 * time.Minute}, 6)...), want: 40 * time.Minute},
		"rare, then very frequent": {gaps: append(slices.Repeat([]time.Duration{time.Hour}, 30), seconds(6)...), want: 5 * time.Minute},
		"in pairs, every 15 minutes": {gaps: []time.Duration{time.Second, 15 * time.Minute, 15 * time.Minute,
			time.Second, 15 * time.Minute}, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s consolidation.ChurnDetector
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var pods []int64
			observe := func() { s.Observe(fleetOf(market, row{4, catalog.OnDemand, catalog.Dollar, pods}).Snapshot, now) }
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

// TestChurnIsHigh: churn is high from the ninth change, when eight intervals are known, until it is low again. Fewer
// changes, for example of one rollout, are not enough.
func TestChurnIsHigh(t *testing.T) {
	t.Parallel()
	market := marketOf(map[string]catalog.Price{catalog.OnDemand: catalog.Dollar}, 4)
	for newPods, want := range map[int]bool{0: false, 1: false, 8: false, 9: true, 30: true} {
		var s consolidation.ChurnDetector
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var pods []int64
		observe := func() { s.Observe(fleetOf(market, row{4, catalog.OnDemand, catalog.Dollar, pods}).Snapshot, now) }
		observe()
		for range newPods {
			now, pods = now.Add(time.Second), append(pods, 1)
			observe()
		}
		if got := s.IsHigh(now); got != want {
			t.Errorf("after %d new pods: high churn is %v, want %v", newPods, got, want)
		}
		if now = now.Add(5*time.Minute - time.Second); s.IsHigh(now) != want {
			t.Errorf("just under five minutes after %d new pods: high churn is %v, want %v", newPods, !want, want)
		}
		if now = now.Add(time.Second); s.IsHigh(now) {
			t.Errorf("five minutes after the last of %d new pods churn is still high", newPods)
		}
	}
}

package live

import (
	"testing"
	"time"
)

// TestFigures computes figures of samples with known results.
func TestFigures(t *testing.T) {
	t.Parallel()
	samples := []Sample{{At: 0, Price: 1}, {At: time.Hour, Price: 3}, {At: 2 * time.Hour, Price: 10}}
	for name, c := range map[string]struct{ got, want float64 }{
		"paid, all":                   {paid(samples, 0, 3*time.Hour), 1 + 3 + 10},
		"paid, within samples":        {paid(samples, 30*time.Minute, 90*time.Minute), 0.5 + 1.5},
		"paid, nothing":               {paid(samples, time.Hour, time.Hour), 0},
		"sample before the first":     {sampleAt(samples, -time.Second).Price, 1},
		"sample between":              {sampleAt(samples, 90*time.Minute).Price, 3},
		"sample at its time":          {sampleAt(samples, 2*time.Hour).Price, 10},
		"median of an odd number":     {median([]float64{3, 1, 2}), 2},
		"median of an even number":    {median([]float64{4, 1, 2, 3}), 2.5},
		"median of nothing":           {median(nil), 0},
		"worst":                       {worst([]float64{1, 3, 2}), 3},
		"percent":                     {percent(3, 2), 50},
		"percent of an unknown bound": {percent(3, 0), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	w := waitsOf([]time.Duration{3 * time.Second, time.Second, 2 * time.Second})
	if want := (Waits{Pods: 3, Median: 2 * time.Second, P99: 3 * time.Second, Worst: 3 * time.Second}); w != want {
		t.Errorf("waits %+v, want %+v", w, want)
	}
}

// TestWorkloads checks that a seed always gives the same workloads, and that only the constrained mix has rules.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	a, b := workloads(Constrained, 7), workloads(Constrained, 7)
	hasRule := false
	for i := range a {
		hasRule = hasRule || a[i].rule != noRule
		if a[i] != b[i] {
			t.Errorf("workload %d is %+v, then %+v; want the same", i, a[i], b[i])
		}
	}
	if !hasRule {
		t.Error("no workload of the constrained mix has a rule, want some")
	}
	for _, w := range workloads(Plain, 7) {
		if w.rule != noRule {
			t.Errorf("%s of the plain mix has the rule %s, want none", w.name, w.rule)
		}
	}
}

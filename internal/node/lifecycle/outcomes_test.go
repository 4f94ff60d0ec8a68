package lifecycle

import "testing"

func TestOutcomes(t *testing.T) {
	t.Parallel()
	// The launches are in order of time: + joined, - failed.
	for launches, want := range map[string]struct {
		healthy          bool
		recorded, failed int
	}{
		"":       {true, 0, 0},
		"+":      {true, 1, 0},
		"-":      {true, 1, 1},
		"--":     {false, 2, 2},
		"-+-":    {false, 3, 2},
		"--++":   {false, 4, 2},
		"--+++":  {true, 4, 1},
		"--++++": {true, 4, 0},
	} {
		var last Outcomes
		for _, launch := range launches {
			last = last.With(launch == '+')
		}
		if recorded, failed := last.Count(); last.IsHealthy() != want.healthy || recorded != want.recorded || failed != want.failed {
			t.Errorf("%q: healthy %t, %d of %d failed; want %+v", launches, last.IsHealthy(), failed, recorded, want)
		}
	}
	if !OutcomesOf(true).IsHealthy() || OutcomesOf(false).IsHealthy() {
		t.Errorf("OutcomesOf(true) is healthy: %t, OutcomesOf(false): %t; want true and false",
			OutcomesOf(true).IsHealthy(), OutcomesOf(false).IsHealthy())
	}
	// OutcomesOf(false) counts as two failures.
	if r := OutcomesOf(false).With(true).With(true); r.IsHealthy() {
		t.Errorf("healthy after two failures and two successes: %+v, want unhealthy", r)
	}
}

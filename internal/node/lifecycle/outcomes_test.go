package lifecycle

import "testing"

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for outcomes, want := range map[string]struct {
		healthy       bool
		known, failed int
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
		var r Outcomes
		for _, o := range outcomes {
			r = r.With(o == '+')
		}
		if known, failed := r.Count(); r.IsHealthy() != want.healthy || known != want.known || failed != want.failed {
			t.Errorf("%q: healthy %t, %d of %d failed; want %+v", outcomes, r.IsHealthy(), failed, known, want)
		}
	}
	if !OutcomesOf(true).IsHealthy() || OutcomesOf(false).IsHealthy() {
		t.Error("OutcomesOf does not keep the verdict")
	}
	if r := OutcomesOf(false).With(true).With(true); r.IsHealthy() {
		t.Errorf("two successes outweigh two failures: %+v", r)
	}
}

package consolidation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestTargets checks the marks of the targets if both sides converged, one was stopped, or one was not run.
func TestTargets(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	outcome := func(convergedAt, ran time.Duration, price catalog.Price, moved int, stopped string) Outcome {
		return Outcome{
			ConvergedAt: convergedAt, Ran: ran, Price: price, Bound: 100 * cent, Moved: moved, Stopped: stopped,
			Passes: 1, Seconds: 1, Peak: 1 << 20,
			Bill: []fleet.Step{
				{From: 0, Price: 200 * cent, Settled: 200 * cent}, {From: convergedAt, Price: price, Settled: price, Moved: moved},
			},
		}
	}
	ours := outcome(10*time.Minute, 16*time.Minute, 104*cent, 50, "")
	for name, c := range map[string]struct {
		ours, theirs Outcome
		churnTime    time.Duration
		want         []mark // bound, pass, paid, final price, time of convergence, pods moved, pods moved until upstream's lowest price
	}{
		"both converged": {ours, outcome(20*time.Minute, 26*time.Minute, 110*cent, 60, ""), 0,
			[]mark{reached, reached, reached, reached, reached, reached}},
		"upstream was better": {ours, outcome(5*time.Minute, 11*time.Minute, 103*cent, 40, ""), 0,
			[]mark{reached, reached, missed, missed, missed, missed}},
		"upstream was stopped after joiner converged": {ours, outcome(19*time.Minute, 20*time.Minute, 110*cent, 60, "x"), 0,
			[]mark{reached, reached, reachedSoFar, reachedSoFar, reached, reached, reached}},
		"upstream was stopped before joiner converged": {ours, outcome(3*time.Minute, 4*time.Minute, 180*cent, 20, "x"), 0,
			[]mark{reached, reached, missedSoFar, reachedSoFar, unknown, unknown, missed}},
		"joiner was stopped": {outcome(9*time.Minute, 10*time.Minute, 120*cent, 50, "x"),
			outcome(8*time.Minute, 14*time.Minute, 130*cent, 60, ""), 0, []mark{missed, reached, missed, reached, missed, reached}},
		"pods came and went": {ours, outcome(20*time.Minute, 26*time.Minute, 110*cent, 60, ""), 5 * time.Minute,
			[]mark{reached, reached, reached, reached, reached, reached}},
		"upstream was stopped while pods came and went": {ours, outcome(3*time.Minute, 4*time.Minute, 180*cent, 20, "x"), 5 * time.Minute,
			[]mark{reached, reached, missedSoFar}},
		"upstream was not run": {ours, Outcome{}, 0, []mark{reached, reached}},
		"joiner was not run":   {Outcome{}, ours, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := Row{Fleet: workload.WastefulFleet{Name: "some", ChurnTime: c.churnTime}, Ours: c.ours, Theirs: c.theirs}
			var b strings.Builder
			row.writeTargets(&b)
			var got []mark
			for line := range strings.Lines(b.String()) {
				cells := strings.Split(strings.TrimSpace(line), " | ")
				got = append(got, mark(strings.TrimSuffix(cells[len(cells)-1], " |")))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q:\n%s", got, c.want, b.String())
			}
		})
	}
}

// TestResultFolder: load returns a stored result for the same folder, fleet and side only.
func TestResultFolder(t *testing.T) {
	t.Parallel()
	folder := ResultFolder(t.TempDir())
	want := Outcome{ConvergedAt: time.Minute, Ran: 2 * time.Minute, Stopped: "x", Price: 7, Bound: 6, Nodes: 5, Moved: 4,
		Bill: []fleet.Step{{From: time.Second, Price: 3}}, Seconds: 1.5}
	if err := folder.save("some", Upstream, want); err != nil {
		t.Fatal(err)
	}
	got, known, err := folder.load("some", Upstream)
	if err != nil || !known || got.Price != want.Price || got.Seconds != want.Seconds ||
		!slices.Equal(got.Bill, want.Bill) || got.Stopped != want.Stopped {
		t.Errorf("loaded %+v (stored %t, error %v), want %+v", got, known, err, want)
	}
	for _, other := range []struct {
		folder ResultFolder
		fleet  string
		by     Side
	}{{folder, "some", Joiner}, {folder, "another", Upstream}, {"", "some", Upstream}} {
		if _, known, err := other.folder.load(other.fleet, other.by); known || err != nil {
			t.Errorf("%+v: stored %t, error %v; want no stored result", other, known, err)
		}
	}
}

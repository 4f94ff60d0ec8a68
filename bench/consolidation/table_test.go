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

// TestJudge: if upstream was stopped, its unknown final result counts neither for nor against a side.
func TestJudge(t *testing.T) {
	t.Parallel()
	const cent = catalog.Dollar / 100
	came := func(rest, ran time.Duration, price catalog.Price, moved int, stopped string) Outcome {
		return Outcome{
			Rest: rest, Ran: ran, Price: price, Bound: 100 * cent, Moved: moved, Stopped: stopped, Passes: 1, Seconds: 1, Peak: 1 << 20,
			Bill: []fleet.Step{{From: 0, Price: 200 * cent, Settled: 200 * cent}, {From: rest, Price: price, Settled: price, Moved: moved}},
		}
	}
	ours := came(10*time.Minute, 16*time.Minute, 104*cent, 50, "")
	for name, c := range map[string]struct {
		ours, theirs Outcome
		lasts        time.Duration
		want         []mark // bound, pass, paid, final price, time of convergence, pods moved, pods moved until upstream's lowest price
	}{
		"both converged": {ours, came(20*time.Minute, 26*time.Minute, 110*cent, 60, ""), 0,
			[]mark{reached, reached, reached, reached, reached, reached}},
		"upstream was better": {ours, came(5*time.Minute, 11*time.Minute, 103*cent, 40, ""), 0,
			[]mark{reached, reached, notYet, notYet, notYet, notYet}},
		"upstream was stopped later": {ours, came(19*time.Minute, 20*time.Minute, 110*cent, 60, "x"), 0,
			[]mark{reached, reached, soFar, soFar, reached, reached, reached}},
		"upstream was stopped sooner": {ours, came(3*time.Minute, 4*time.Minute, 180*cent, 20, "x"), 0,
			[]mark{reached, reached, worse, soFar, unknown, unknown, notYet}},
		"joiner was stopped": {came(9*time.Minute, 10*time.Minute, 120*cent, 50, "x"),
			came(8*time.Minute, 14*time.Minute, 130*cent, 60, ""), 0, []mark{notYet, reached, notYet, reached, notYet, reached}},
		"pods came and went": {ours, came(20*time.Minute, 26*time.Minute, 110*cent, 60, ""), 5 * time.Minute,
			[]mark{reached, reached, reached, reached, reached, reached}},
		"stopped while pods came and went": {ours, came(3*time.Minute, 4*time.Minute, 180*cent, 20, "x"), 5 * time.Minute,
			[]mark{reached, reached, worse}},
		"upstream was not run": {ours, Outcome{}, 0, []mark{reached, reached}},
		"joiner was not run":   {Outcome{}, ours, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := Row{Waste: workload.Waste{Name: "some", Lasts: c.lasts}, Ours: c.ours, Theirs: c.theirs}
			var b strings.Builder
			row.judge(&b)
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

// TestKeep: a stored result is returned for the same side and fleet only.
func TestKeep(t *testing.T) {
	t.Parallel()
	k := Keep(t.TempDir())
	want := Outcome{Rest: time.Minute, Ran: 2 * time.Minute, Stopped: "x", Price: 7, Bound: 6, Nodes: 5, Moved: 4,
		Bill: []fleet.Step{{From: time.Second, Price: 3}}, Seconds: 1.5}
	if err := k.save("some", Upstream, want); err != nil {
		t.Fatal(err)
	}
	got, known, err := k.load("some", Upstream)
	if err != nil || !known || got.Price != want.Price || got.Seconds != want.Seconds ||
		!slices.Equal(got.Bill, want.Bill) || got.Stopped != want.Stopped {
		t.Errorf("saved %+v, loaded %+v, %t, %v", want, got, known, err)
	}
	for _, none := range []struct {
		keep  Keep
		fleet string
		by    Side
	}{{k, "some", Joiner}, {k, "another", Upstream}, {"", "some", Upstream}} {
		if _, known, err := none.keep.load(none.fleet, none.by); known || err != nil {
			t.Errorf("%+v: a result is stored (%t), %v", none, known, err)
		}
	}
}

package packing_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

var rewrite = flag.Bool("rewrite", false, "write the current plans into the scenario files; review the diff before you commit it")

// TestScenarios checks that the plan of every file of testdata is the one in the file, valid, and the same for the
// input in another order.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 200 {
		t.Fatalf("found %d scenarios (%v), want at least 200", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if s.Story == "" {
				t.Errorf("%s has no description in its first lines", file)
			}
			plan := packing.Solve(s.Snapshot, s.Market, s.Effort)
			for _, broken := range verify.Check(s.Snapshot, s.Market, plan) {
				t.Error(broken)
			}
			again := packing.Solve(shuffle(s.Snapshot), shuffleMarket(s.Market), s.Effort)
			if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the order of the input changes the plan (-as written +shuffled):\n%s", diff)
			}
			got := scenario.PlanText(plan)
			if *rewrite {
				s.Expect = got
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(s.Expect, got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", s.Story, diff)
			}
		})
	}
}

// shuffle returns the snapshot in another order, which is the same in every run.
func shuffle(s cluster.Snapshot) cluster.Snapshot {
	d := dice(7)
	s.Pools, s.Nodes = shuffled(&d, s.Pools), shuffled(&d, s.Nodes)
	s.Daemons, s.Pods = shuffled(&d, s.Daemons), shuffled(&d, s.Pods)
	return s
}

func shuffleMarket(m catalog.Market) catalog.Market {
	d := dice(9)
	out := catalog.Market{}
	for class, c := range m {
		c.Types = shuffled(&d, c.Types)
		for i := range c.Types {
			c.Types[i].Offerings = shuffled(&d, c.Types[i].Offerings)
		}
		out[class] = c
	}
	return out
}

func shuffled[T any](d *dice, list []T) []T {
	out := append([]T(nil), list...)
	for i := len(out) - 1; i > 0; i-- {
		j := d.roll(i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

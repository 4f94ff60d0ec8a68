package consolidation

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestWatched: for ten minutes, after each scan, Joiner's reader returns the same snapshot as the fleet.
func TestWatched(t *testing.T) {
	for _, w := range workload.Wastes("") {
		if w.Name != "spot-100" {
			continue
		}
		f, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		f.LargeFirst = true
		o := &ours{fleet: f, reader: watch(f), spotToSpot: w.SpotToSpot, seen: -1}
		scans := 0
		for f.Since() < 10*time.Minute {
			if _, err := o.pass(); err != nil {
				t.Fatal(err)
			}
			if err := o.wait(); err != nil {
				t.Fatal(err)
			}
			watched, err := o.reader.Snapshot(context.Background(), f.Now(), f.Market)
			if err != nil {
				t.Fatal(err)
			}
			if there := f.Objects().Snapshot(f.View()); !reflect.DeepEqual(plain(watched), plain(there)) {
				t.Fatalf("after %s the reader's snapshot (%d pending pods, %d nodes) differs from the fleet's (%d pending pods, %d nodes)", f.Since(),
					len(watched.Pods), len(watched.Nodes), len(there.Pods), len(there.Nodes))
			}
			scans++
		}
		if f.Moved() == 0 || scans < 20 {
			t.Errorf("%d pods were moved in %d scans", f.Moved(), scans)
		}
		return
	}
	t.Fatal("fleet spot-100 does not exist")
}

// plain returns the snapshot's nodes and pods without unexported state.
func plain(s cluster.Snapshot) []any {
	var out []any
	for i := range s.Nodes {
		n := &s.Nodes[i]
		out = append(out, n.Name, n.Requested, n.Allocatable, n.Labels, n.Taints, n.Leaving, n.Pods, len(n.Residents))
	}
	for i := range s.Pods {
		out = append(out, s.Pods[i])
	}
	return out
}

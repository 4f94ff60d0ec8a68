package consolidation

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestReaderFollowsFleet: after each scan in ten simulated minutes, Joiner's reader and the fleet have equal snapshots.
func TestReaderFollowsFleet(t *testing.T) {
	for _, w := range workload.WastefulFleets("") {
		if w.Name != "spot-100" {
			continue
		}
		f, err := w.Build()
		if err != nil {
			t.Fatal(err)
		}
		f.LargeFirst = true
		o := &joinerController{fleet: f, reader: newReader(f), spotToSpot: w.SpotToSpot, scannedChanges: -1}
		scans := 0
		for f.Since() < 10*time.Minute {
			if _, err := o.pass(); err != nil {
				t.Fatal(err)
			}
			if err := o.wait(); err != nil {
				t.Fatal(err)
			}
			got, err := o.reader.Snapshot(context.Background(), f.Now(), f.Market)
			if err != nil {
				t.Fatal(err)
			}
			if want := f.Objects().Snapshot(f.View()); !reflect.DeepEqual(plain(got), plain(want)) {
				t.Fatalf("after %s the reader's snapshot (%d pending pods, %d nodes) differs from the fleet's (%d pending pods, %d nodes)", f.Since(),
					len(got.Pods), len(got.Nodes), len(want.Pods), len(want.Nodes))
			}
			scans++
		}
		if f.Moved() == 0 || scans < 20 {
			t.Errorf("%d pods were moved in %d scans, want at least 1 pod and 20 scans", f.Moved(), scans)
		}
		return
	}
	t.Fatal("fleet spot-100 does not exist")
}

// plain returns the values of the snapshot's nodes and pods that are compared: those without unexported state.
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

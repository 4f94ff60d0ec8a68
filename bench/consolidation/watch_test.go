package consolidation

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// TestWatched: at each scan in ten minutes, Joiner's reader has the same snapshot as the fleet.
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
		looks := 0
		for f.Since() < 10*time.Minute {
			if _, err := o.pass(); err != nil {
				t.Fatal(err)
			}
			if err := o.wait(); err != nil {
				t.Fatal(err)
			}
			told, err := o.reader.Snapshot(context.Background(), f.Now(), f.Market)
			if err != nil {
				t.Fatal(err)
			}
			if there := f.Objects().Snapshot(f.View()); !reflect.DeepEqual(plain(told), plain(there)) {
				t.Fatalf("after %s it sees %d pods, %d nodes that are not those %d and %d that there are", f.Since(),
					len(told.Pods), len(told.Nodes), len(there.Pods), len(there.Nodes))
			}
			looks++
		}
		if f.Moved() == 0 || looks < 20 {
			t.Errorf("%d pods were moved in %d looks", f.Moved(), looks)
		}
		return
	}
	t.Fatal("there is no such fleet")
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

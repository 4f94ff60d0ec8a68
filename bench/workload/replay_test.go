package workload_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/bench/workload"
)

// TestReplay replays a trace of three days: the last two hours of each day. All pods stay pending, because no
// controller launches nodes.
func TestReplay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const day, end = 24 * 3600, 3 * 24 * 3600
	rows := "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	for _, l := range []struct {
		name        string
		from, until int
	}{
		{"always", 0, end},
		{"late", end - 3600, end},
		{"yesterday", end - day - 1800, end - day - 600},
		{"overnight", end - day - 1800, end - day + 3600},
		{"noon", end - 12*3600, end - 11*3600},
		{"never", end - 60, end - 60},
	} {
		rows += fmt.Sprintf("%s,4000,15360,0,0,,LS,Running,%d,%d,0\n", l.name, l.from, l.until)
	}
	if err := os.WriteFile(filepath.Join(folder, "openb_pod_list_default.csv"), []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	fleets := workload.WastefulFleets(folder)
	w := fleets[slices.IndexFunc(fleets, func(w workload.WastefulFleet) bool { return w.Name == "openb-all" })]
	f, err := w.Build()
	if err != nil {
		t.Fatal(err)
	}
	if w.ChurnTime != 2*time.Hour {
		t.Fatalf("pods come and go for %s, want 2h", w.ChurnTime)
	}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{
		{0, 3},                                 // "always", once for each of three days
		{time.Hour, 4},                         // "late" starts
		{90 * time.Minute, 6},                  // "yesterday" and "overnight" start
		{110*time.Minute - 1, 6},               // just before "yesterday" ends
		{110 * time.Minute, 5},                 // "yesterday" ends; "overnight" stays, because it runs at the end of its day
		{w.ChurnTime, 5}, {w.ChurnTime * 2, 5}, // pods that run at the end of the replay stay
	} {
		f.Advance(fleet.Start.Add(c.at))
		if got := f.PendingPods(); got != c.want {
			t.Errorf("%d pods are pending after %s, want %d", got, c.at, c.want)
		}
	}
}

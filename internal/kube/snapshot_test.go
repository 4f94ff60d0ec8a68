package kube

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests find into testdata, to be reviewed as a diff")

// noon is when all snapshots of these tests are taken.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// TestSnapshot turns each testdata/snapshot/*.yaml into a snapshot and compares
// it with the .txt beside it. A first line "# live" reads the objects as those of a
// running cluster.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/snapshot/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			m, err := ReadFiles([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			view := viewOf(t, file)
			before := dump(t, m.Objects)
			got := render(m.Snapshot(view))
			if after := dump(t, m.Objects); !bytes.Equal(before, after) {
				t.Error("the objects were altered")
			}
			shuffle(&m.Objects)
			if again := render(m.Snapshot(view)); again != got {
				t.Errorf("shuffled input gives another snapshot (-first +second):\n%s", cmp.Diff(got, again))
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", got)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -rewrite and review what it writes", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func viewOf(t *testing.T, file string) View {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	view := View{Now: noon, Market: catalog.Market{"default": {Types: []catalog.Type{
		{
			Name: "c7g.large", Labels: map[string]string{catalog.LabelArch: "arm64", catalog.LabelInstanceType: "c7g.large"},
			Capacity: resources.Amounts{CPU: 2000, Memory: 4 << 30, Pods: 29}, Allocatable: resources.Amounts{CPU: 1930, Memory: 3 << 30, Pods: 29},
		},
		{
			Name: "m7i.xlarge", Labels: map[string]string{catalog.LabelArch: "amd64", catalog.LabelInstanceType: "m7i.xlarge"},
			Capacity: resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 58}, Allocatable: resources.Amounts{CPU: 3920, Memory: 14 << 30, Pods: 58}, Volumes: 31,
		},
	}}}}
	for line := range strings.Lines(string(data)) {
		if line == "# live\n" {
			view.Live = true
		}
	}
	return view
}

func dump(t *testing.T, o Objects) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// shuffle puts the objects in another order, always the same one.
func shuffle(o *Objects) {
	r := rand.New(rand.NewPCG(1, 2))
	mix(r, o.Pods)
	mix(r, o.Nodes)
	mix(r, o.DaemonSets)
	mix(r, o.Pools)
	mix(r, o.Claims)
	mix(r, o.Classes)
	mix(r, o.VolumeClaims)
	mix(r, o.Volumes)
	mix(r, o.StorageClasses)
	mix(r, o.Budgets)
	mix(r, o.Namespaces)
	mix(r, o.CSINodes)
	mix(r, o.Groups.Services)
	mix(r, o.Groups.ReplicaSets)
	mix(r, o.Groups.StatefulSets)
	mix(r, o.Groups.Controllers)
}

func mix[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	got := Objects{}.Snapshot(View{Now: noon})
	if diff := cmp.Diff(cluster.Snapshot{Taken: noon, Pools: []cluster.Pool{}, Nodes: []cluster.Node{}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

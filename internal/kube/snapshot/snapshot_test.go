package snapshot_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/kube/manifest"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestSnapshot makes a snapshot of each testdata/snapshot/*.yaml and compares it with the .txt beside it. A file with
// the line "# live" has objects of a running cluster.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/snapshot/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no file in testdata/snapshot/*.yaml: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			m, err := manifest.ReadFiles([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			view := viewOf(t, file)
			before := dump(t, m.Objects)
			got := kubetest.Render(m.Snapshot(view))
			if after := dump(t, m.Objects); !bytes.Equal(before, after) {
				t.Error("the snapshot has changed the objects")
			}
			shuffle(&m.Objects)
			if again := kubetest.Render(m.Snapshot(view)); again != got {
				t.Errorf("shuffled input gives another snapshot (-first +second):\n%s", cmp.Diff(got, again))
			}
			kubetest.Golden(t, strings.TrimSuffix(file, ".yaml")+".txt", got)
		})
	}
}

func viewOf(t *testing.T, file string) snapshot.View {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	view := snapshot.View{Now: kubetest.Noon, Market: catalog.Market{"default": {Types: []catalog.Type{
		{
			Name: "c7g.large", Labels: map[string]string{catalog.LabelArch: "arm64", catalog.LabelInstanceType: "c7g.large"},
			Capacity: resources.Amounts{CPU: 2000, Memory: 4 << 30, Pods: 29}, Allocatable: resources.Amounts{CPU: 1930, Memory: 3 << 30, Pods: 29},
		},
		{
			Name: "m7i.xlarge", Labels: map[string]string{catalog.LabelArch: "amd64", catalog.LabelInstanceType: "m7i.xlarge"},
			Capacity:    resources.Amounts{CPU: 4000, Memory: 16 << 30, Pods: 58},
			Allocatable: resources.Amounts{CPU: 3920, Memory: 14 << 30, Pods: 58}, Volumes: 31,
		},
	}}}}
	for line := range strings.Lines(string(data)) {
		if line == "# live\n" {
			view.Live = true
		}
	}
	return view
}

func dump(t *testing.T, o snapshot.Objects) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// shuffle changes the order of the objects, in the same way on each run.
func shuffle(o *snapshot.Objects) {
	r := rand.New(rand.NewPCG(1, 2))
	shuffleList(r, o.Pods)
	shuffleList(r, o.Nodes)
	shuffleList(r, o.DaemonSets)
	shuffleList(r, o.Pools)
	shuffleList(r, o.Claims)
	shuffleList(r, o.Classes)
	shuffleList(r, o.VolumeClaims)
	shuffleList(r, o.Volumes)
	shuffleList(r, o.StorageClasses)
	shuffleList(r, o.Budgets)
	shuffleList(r, o.Namespaces)
	shuffleList(r, o.CSINodes)
	shuffleList(r, o.Groups.Services)
	shuffleList(r, o.Groups.ReplicaSets)
	shuffleList(r, o.Groups.StatefulSets)
	shuffleList(r, o.Groups.Controllers)
}

func shuffleList[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	got := snapshot.Objects{}.Snapshot(snapshot.View{Now: kubetest.Noon})
	if diff := cmp.Diff(cluster.Snapshot{Taken: kubetest.Noon, Pools: []cluster.Pool{}, Nodes: []cluster.Node{}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTrimChangesNothing: the fields that conversion.Trim drops must not affect any snapshot.
func TestTrimChangesNothing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/snapshot/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		m, err := manifest.ReadFiles([]string{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := kubetest.Render(m.Snapshot(viewOf(t, file)))
		for _, pod := range m.Pods {
			if _, err := conversion.Trim(pod); err != nil {
				t.Fatal(err)
			}
		}
		for _, node := range m.Nodes {
			if _, err := conversion.Trim(node); err != nil {
				t.Fatal(err)
			}
		}
		trimAll(t, m.DaemonSets)
		trimAll(t, m.VolumeClaims)
		trimAll(t, m.Budgets)
		trimAll(t, m.Groups.Services)
		trimAll(t, m.Groups.Controllers)
		trimAll(t, m.Groups.ReplicaSets)
		trimAll(t, m.Groups.StatefulSets)
		if diff := cmp.Diff(want, kubetest.Render(m.Snapshot(viewOf(t, file)))); diff != "" {
			t.Errorf("%s (-whole +trimmed):\n%s", file, diff)
		}
	}
}

func trimAll[T any](t *testing.T, list []T) {
	t.Helper()
	for _, object := range list {
		if _, err := conversion.Trim(object); err != nil {
			t.Fatal(err)
		}
	}
}

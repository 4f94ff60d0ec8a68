package workload_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/bench/workload"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

func workloadNamed(t *testing.T, folder, name string) workload.Workload {
	t.Helper()
	for _, w := range workload.All(folder) {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("workload %s does not exist", name)
	return workload.Workload{}
}

func build(t *testing.T, name string) workload.Case {
	t.Helper()
	c, err := workloadNamed(t, "", name).Build()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range workload.All("") {
		if seen[w.Name] {
			t.Errorf("two workloads have the name %s, want unique names", w.Name)
		}
		seen[w.Name] = true
	}
}

// TestSameEveryTime builds cases twice. The two results must be equal, so that runs can be compared.
func TestSameEveryTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"thousand", "own-1000", "everything"} {
		first, second := toJSON(t, build(t, name)), toJSON(t, build(t, name))
		if first != second {
			t.Errorf("two builds of %s differ", name)
		}
	}
}

func toJSON(t *testing.T, c workload.Case) string {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExistingPodsFit checks the numbers of pods and nodes, and that the running pods fit on their nodes.
func TestExistingPodsFit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ pending, running, nodes int }{ // running is a minimum
		"onto-1000-mixed": {5000, 30_000, 1000},
		"onto-1000-plain": {5000, 30_000, 1000},
		"existing-250":    {5000, 8000, 250}, // only as many of the 16,000 pods as fit
	} {
		c := build(t, name)
		room := map[string]resources.Amounts{}
		for _, n := range c.Objects.Nodes {
			room[n.Name] = conversion.Amounts(n.Status.Allocatable)
		}
		if len(room) != want.nodes {
			t.Errorf("%s has %d nodes, want %d", name, len(room), want.nodes)
		}
		pending, running := 0, 0
		for _, p := range c.Objects.Pods {
			if p.Spec.NodeName == "" {
				pending++
				continue
			}
			running++
			requests := conversion.Requests(p)
			if !requests.Fits(room[p.Spec.NodeName]) {
				t.Fatalf("%s: the pods on node %s request more than it has", name, p.Spec.NodeName)
			}
			room[p.Spec.NodeName] = room[p.Spec.NodeName].Sub(requests)
		}
		if pending != want.pending || pending != c.Pending || running < want.running {
			t.Errorf("%s has %d pending pods (Case.Pending is %d) and %d running ones, want %d and at least %d",
				name, pending, c.Pending, running, want.pending, want.running)
		}
	}
}

// TestRunningPodsMeetAntiAffinity checks that no node has two pods with anti-affinity to each other.
func TestRunningPodsMeetAntiAffinity(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range build(t, "onto-1000-mixed").Objects.Pods {
		if a := p.Spec.Affinity; p.Spec.NodeName == "" || a == nil || a.PodAntiAffinity == nil {
			continue
		}
		key := p.Spec.NodeName + " " + p.Labels["app"]
		if seen[key] {
			t.Fatalf("two pods with anti-affinity to each other run on one node: %s", key)
		}
		seen[key] = true
	}
	if len(seen) == 0 {
		t.Error("no running pod has anti-affinity, want some")
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const rows = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,15360,0,0\nb,6000,12288,2,1000\n"
	if err := os.WriteFile(filepath.Join(folder, "openb_pod_list_default.csv"), []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := workloadNamed(t, folder, "openb-all").Build()
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := workloadNamed(t, folder, "openb-cpu").Build()
	if err != nil {
		t.Fatal(err)
	}
	if all.Pending != 2 || cpu.Pending != 1 || cpu.Objects.Pods[0].Name != "a" {
		t.Fatalf("openb-all has %d pods, want 2; openb-cpu has %d, want only pod a, without GPU", all.Pending, cpu.Pending)
	}
	for _, p := range all.Objects.Pods {
		if p.Name != "b" {
			continue
		}
		want := resources.Amounts{CPU: 6000, Memory: 12288 << 20, Pods: 1}.With("nvidia.com/gpu", 2)
		if got := conversion.Requests(p); !got.Equal(want) {
			t.Errorf("pod b requests %+v, want %+v", got, want)
		}
	}
	if _, err := workloadNamed(t, t.TempDir(), "openb-all").Build(); !errors.Is(err, workload.ErrMissing) {
		t.Errorf("Build without the file: error %v, want %v", err, workload.ErrMissing)
	}
}

// TestKarpenterMix: the pods of Karpenter's benchmark are divided equally among the kinds of constraints.
func TestKarpenterMix(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for _, p := range build(t, "own-1000").Objects.Pods {
		switch a := p.Spec.Affinity; {
		case len(p.Spec.TopologySpreadConstraints) > 0:
			got["spread "+p.Spec.TopologySpreadConstraints[0].TopologyKey]++
		case a != nil && a.PodAffinity != nil:
			got["near "+a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey]++
		case a != nil && a.PodAntiAffinity != nil:
			got["apart "+a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey]++
		default:
			got["plain"]++
		}
	}
	want := map[string]int{
		"plain": 200, "spread " + corev1.LabelTopologyZone: 200, "spread " + corev1.LabelHostname: 200,
		"near " + corev1.LabelTopologyZone: 200, "apart " + corev1.LabelHostname: 200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods by kind of constraint (-want +got):\n%s", diff)
	}
}

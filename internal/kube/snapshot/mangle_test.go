package snapshot

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// TestMangledPods converts 5,000 pods made from those of podSeeds: fields are dropped, and values replaced by
// nonsense. A fuzzer rarely produces such pods.
func TestMangledPods(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var trees []map[string]any
	for _, seed := range podSeeds() {
		var tree map[string]any
		if err := json.Unmarshal([]byte(seed), &tree); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	parsed, rejected := 0, 0
	for range 5000 {
		tree := mangled(r, trees[r.IntN(len(trees))]).(map[string]any)
		pod := &corev1.Pod{}
		if json.Unmarshal(kubetest.Marshal(t, tree), pod) != nil {
			continue // a field has the wrong type
		}
		parsed++
		for _, view := range []View{{Now: kubetest.Noon, Live: true}, {Now: kubetest.Noon}} {
			o := fuzzObjects(pod)
			value := conversion.PodValue(pod, referencesOf(o, view))
			checkValue(t, &value)
			if value.Unplannable != "" {
				rejected++
			}
			kubetest.Render(o.Snapshot(view)) // must not panic
		}
		if t.Failed() {
			t.Fatalf("the pod is %s", kubetest.Marshal(t, pod))
		}
	}
	if parsed < 1000 || rejected < 300 {
		t.Errorf("%d pods could be parsed, want 1000 or more; %d conversions were rejected, want 300 or more", parsed, rejected)
	}
}

// mangled returns a copy of the JSON tree in which some fields are missing, some items of lists are missing or
// repeated, and some texts and numbers are replaced.
func mangled(r *rand.Rand, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if r.IntN(40) != 0 {
				out[key] = mangled(r, v[key])
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			for range 1 + r.IntN(20)/18 - r.IntN(20)/19 { // mostly once, rarely not at all or twice
				out = append(out, mangled(r, item))
			}
		}
		return out
	case string:
		if r.IntN(12) == 0 {
			return []string{"", "\x00", "a/b/c", "-1", "1e400", "In", "Exists", "ScheduleAnyway", "é\n", "a"}[r.IntN(10)]
		}
	case float64:
		if r.IntN(6) == 0 {
			return []float64{0, -1, 1, 101, 1 << 31, -1 << 31}[r.IntN(6)]
		}
	}
	return tree
}

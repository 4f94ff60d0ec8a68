package manifest

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// TestPriorityOfManifests: the priority is the pod's own number, else that of its PriorityClass, else that of the
// default class. If there are several defaults, the lowest counts, as in the API server.
func TestPriorityOfManifests(t *testing.T) {
	t.Parallel()
	m, err := read([]byte(`
apiVersion: v1
kind: List
items:
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: vital}, value: 1000}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: b}, value: 50, globalDefault: true}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 60, globalDefault: true}
- {apiVersion: v1, kind: Pod, metadata: {name: named}, spec: {priorityClassName: vital, containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {priorityClassName: vital, priority: 7, containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: system}, spec: {priorityClassName: system-node-critical, containers: [{name: c}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: unknown}, spec: {priorityClassName: gone, containers: [{name: c}]}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: made}
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {priorityClassName: vital, containers: [{name: c}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int32{"named": 1000, "own": 7, "plain": 50, "system": 2_000_001_000, "unknown": 0, "made-1": 1000}
	for _, p := range m.Pods {
		if got := conversion.Priority(p); got != want[p.Name] {
			t.Errorf("pod %s has priority %d, want %d", p.Name, got, want[p.Name])
		}
		delete(want, p.Name)
	}
	if len(want) > 0 || len(m.Skipped) > 0 || len(m.Notes) != 1 {
		t.Errorf("missing pods %v, skipped kinds %v, notes %q; want none, none, 1 note about class gone", want, m.Skipped, m.Notes)
	}
}

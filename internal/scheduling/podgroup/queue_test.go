package podgroup_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// text returns the dimensions, a line for each class (priority, vector, pods), and the unplannable pods.
func text(q *podgroup.Queue) string {
	var b strings.Builder
	fmt.Fprintln(&b, q.Dims)
	for _, c := range q.Classes {
		fmt.Fprintf(&b, "%d %v:", c.Priority, c.Ask)
		for _, p := range c.Pods {
			fmt.Fprintf(&b, " %s", p.Name)
		}
		fmt.Fprintln(&b)
	}
	for _, u := range q.Unplannable {
		fmt.Fprintf(&b, "%s: %s\n", u.Pod.Name, u.Why)
	}
	return b.String()
}

// TestClasses checks that pods are one class exactly if their requirements are equal, whatever the order of the pods.
func TestClasses(t *testing.T) {
	t.Parallel()
	s, err := scenario.Parse(`# Pods that differ in one thing each.
catalog
  m5.large us-east-1a spot 0.0400 cpu=2 mem=8Gi pods=110
pools
  all
pods
  web x3 cpu=1 mem=1Gi
  more x2 cpu=1 mem=1Gi
  gpu cpu=1 mem=1Gi nvidia.com/gpu=1
  port cpu=1 mem=1Gi
    port 8080/TCP
  zone cpu=1 mem=1Gi
    require topology.kubernetes.io/zone In us-east-1a
  tolerant cpu=1 mem=1Gi
    tolerate *
  weighted cpu=1 mem=1Gi
    prefer 1 topology.kubernetes.io/zone In us-east-1a
  urgent cpu=500m mem=1Gi priority=10
  apart cpu=1 mem=1Gi
    apart app=web by kubernetes.io/hostname
  large cpu=2 mem=1Gi
  lost cpu=1 mem=1Gi
    unplannable it uses a volume that does not exist
  oversized cpu=200000000000000
`)
	if err != nil {
		t.Fatal(err)
	}
	q := podgroup.New(s.Snapshot)
	want := `[cpu memory pods nvidia.com/gpu]
10 [500 1073741824 1 0]: urgent
0 [2000 1073741824 1 0]: large
0 [1000 1073741824 1 1]: gpu
0 [1000 1073741824 1 0]: apart
0 [1000 1073741824 1 0]: more-1 more-2 web-1 web-2 web-3
0 [1000 1073741824 1 0]: port
0 [1000 1073741824 1 0]: tolerant
0 [1000 1073741824 1 0]: weighted
0 [1000 1073741824 1 0]: zone
lost: it uses a volume that does not exist
oversized: it asks for 200000000000000 of cpu, more than any instance has
`
	if got := text(q); got != want {
		t.Errorf("the queue is\n%s\nwant\n%s", got, want)
	}
	if q.Count() != len(s.Snapshot.Pods) {
		t.Errorf("the queue counts %d pods, want all %d", q.Count(), len(s.Snapshot.Pods))
	}
	if len(q.Signatures) != 4 {
		t.Errorf("there are %d signatures, want 4: no requirements, a zone, a toleration and a preference", len(q.Signatures))
	}
	slices.Reverse(s.Snapshot.Pods)
	if got := text(podgroup.New(s.Snapshot)); got != want {
		t.Errorf("with the pods in reverse order, the queue is\n%s\nwant\n%s", got, want)
	}
}

// TestHasRuleOver checks that HasRuleOver is true only for the labels of topology rules.
func TestHasRuleOver(t *testing.T) {
	t.Parallel()
	s, err := scenario.Parse(`# A spread.
catalog
  m5.large us-east-1a spot 0.0400 cpu=2 mem=8Gi pods=110
pools
  all
pods
  web x2 cpu=1 mem=1Gi
    label app=web
    spread app=web over rack
`)
	if err != nil {
		t.Fatal(err)
	}
	q := podgroup.New(s.Snapshot)
	if !q.HasRuleOver("rack") || q.HasRuleOver("topology.kubernetes.io/zone") {
		t.Error("HasRuleOver is false for rack or true for zones, want true only for rack")
	}
}

package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestPodBackoff: the pod "odd" stays pending although nodes are launched for it. From the second node on, each node
// makes the pod wait, twice as long as the previous node. The pod "other" never waits.
func TestPodBackoff(t *testing.T) {
	t.Parallel()
	b, start := &poolhealth.PodBackoff{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	odd := cluster.Pod{Namespace: "ns", Name: "odd", Created: start}
	other := cluster.Pod{Namespace: "ns", Name: "other", Created: start}
	nodeReady := func(now time.Time, claim string, pods ...string) {
		b.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: claim, CreationTimestamp: metav1.NewTime(now), Annotations: map[string]string{conversion.AnnotationPods: strings.Join(pods, ",")},
		}}, now)
	}
	var now time.Time // of the last split
	split := func(at time.Duration) (planned, held string, newlyHeld int) {
		now = start.Add(at)
		toPlan, waits := b.Split([]cluster.Pod{odd, other}, nil, now)
		for _, p := range toPlan {
			planned += p.Name + " "
		}
		for _, w := range waits {
			held += w.Pod.Name + " "
			if w.IsNew {
				newlyHeld++
			}
		}
		return planned, held, newlyHeld
	}
	for _, step := range []struct {
		at            time.Duration
		ready         string // a claim for odd, whose node has just become ready
		planned, held string
		newlyHeld     int // held pods whose back-off was not reported yet
	}{
		{0, "", "odd other ", "", 0},
		{time.Minute, "a", "odd other ", "", 0}, // a second node is launched at once
		{2 * time.Minute, "", "odd other ", "", 0},
		{3 * time.Minute, "b", "other ", "odd ", 1},
		{3*time.Minute + 59*time.Second, "", "other ", "odd ", 0},
		{4 * time.Minute, "", "odd other ", "", 0},
		{5 * time.Minute, "c", "other ", "odd ", 1}, // for twice as long
		{6*time.Minute + 59*time.Second, "", "other ", "odd ", 0},
		{7 * time.Minute, "", "odd other ", "", 0},
	} {
		if step.ready != "" {
			nodeReady(start.Add(step.at), step.ready, "ns/odd")
		}
		planned, held, newlyHeld := split(step.at)
		if planned != step.planned || held != step.held || newlyHeld != step.newlyHeld {
			t.Errorf("%s: planned %q, held %q, newly held %d; want %+v", step.at, planned, held, newlyHeld, step)
		}
	}
	for i := range 20 {
		nodeReady(now, "more", "ns/odd")
		if _, held, _ := split(time.Duration(10+40*i) * time.Minute); held != "odd " {
			t.Errorf("%s: held are %q, want odd", now.Sub(start), held)
		}
	}
	if _, held, _ := split(now.Sub(start) + poolhealth.PodBackoffMax); held != "" {
		t.Errorf("held longer than PodBackoffMax: %q, want none", held)
	}
	nodeReady(now, "x", "ns/odd")
	odd.Created = now.Add(time.Second)
	if planned, _, _ := split(now.Sub(start) + time.Second); planned != "odd other " {
		t.Errorf("a new pod with the same name is held: planned are %q", planned)
	}
	if len(b.Pods) != 0 {
		t.Errorf("the deleted pod is still stored: %v", b.Pods)
	}
	nodeReady(now, "y", "ns/gone")
	split(now.Sub(start) + poolhealth.PodBackoffLifetime + time.Second)
	if len(b.Pods) != 0 {
		t.Errorf("a pod that is gone is still stored: %v", b.Pods)
	}
	var disabled *poolhealth.PodBackoff
	disabled.Ready(&karpv1.NodeClaim{}, now)
	if planned, held := disabled.Split([]cluster.Pod{odd}, nil, now); len(planned) != 1 || held != nil {
		t.Errorf("with a nil PodBackoff, %v are planned and %v are held, want one and none", planned, held)
	}
}

// TestNodeUsedByOtherPodsIsNoFailure: a ready node counts as a failure for the pod that it was launched for, unless
// other pods use the room of that pod.
func TestNodeUsedByOtherPodsIsNoFailure(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cores := func(n int64) resources.Amounts { return resources.Amounts{}.With(resources.CPU, 1000*n) }
	pod := cluster.Pod{Namespace: "ns", Name: "pod", Created: start, Requests: cores(2)}
	other := cluster.Pod{Namespace: "ns", Name: "other", Requests: cores(2)}
	for name, c := range map[string]struct {
		node cluster.Node
		held bool // after the second such node
	}{
		"filled by another pod":    {cluster.Node{Claim: "a", Allocatable: cores(3), Requested: cores(2), Pods: []cluster.Pod{other}}, false},
		"room is left":             {cluster.Node{Claim: "a", Allocatable: cores(4), Requested: cores(2), Pods: []cluster.Pod{other}}, true},
		"empty":                    {cluster.Node{Claim: "a", Allocatable: cores(4)}, true},
		"too small from the start": {cluster.Node{Claim: "a", Allocatable: cores(1)}, true},
		"too small beside DaemonSets": {cluster.Node{Claim: "a", Allocatable: cores(3), Requested: cores(3),
			Pods: []cluster.Pod{{Namespace: "ns", Name: "small", Requests: cores(1)}}}, true},
		"full, but of another claim": {cluster.Node{Claim: "b", Allocatable: cores(3), Requested: cores(2), Pods: []cluster.Pod{other}}, true},
	} {
		backoff := &poolhealth.PodBackoff{}
		for i := range 2 {
			backoff.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "a", CreationTimestamp: metav1.NewTime(start), Annotations: map[string]string{conversion.AnnotationPods: "ns/pod"},
			}}, start)
			planned, held := backoff.Split([]cluster.Pod{pod}, []cluster.Node{c.node}, start)
			if want := c.held && i == 1; (len(held) == 1) != want || (len(planned) == 0) != want {
				t.Errorf("%s, node %d: %d are held and %d planned, want held %t", name, i+1, len(held), len(planned), want)
			}
		}
	}
}

// TestUnhelpfulLaunchIsRepeatedOnce: each node has less memory than planned, so that its pod stays pending. After the
// first node, a second one is launched at once. A third one is not launched before the pod has waited.
func TestUnhelpfulLaunchIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "odd", "500m", "2Gi")
	for i, want := range []int{1, 2, 2, 2} {
		r.plan(t)
		if n := len(r.claims(t)); n != want {
			t.Fatalf("after plan %d: %d claims, want %d\n%s", i+1, n, want, r.log)
		}
		r.reconcileClaims(t)
		for _, c := range r.claims(t) {
			if c.Status.NodeName != "" {
				continue
			}
			node := r.nodeOf(t, c)
			node.Status.Allocatable = node.Status.Allocatable.DeepCopy()
			node.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Gi")
			r.create(t, node)
		}
		r.ahead = -time.Minute // the nodes became ready a minute ago: kube-scheduler has had time to bind the pod
		r.reconcileClaims(t)
		r.clearNominations(t)
		r.ahead = 0
	}
	if n := strings.Count(r.log.String(), "nodes launched for a pod did not make it schedulable"); n != 1 {
		t.Errorf("the back-off is logged %d times, want once\n%s", n, r.log)
	}
	var messages []string
	for e, ok := r.Provisioner.Events.Next(); ok; e, ok = r.Provisioner.Events.Next() {
		messages = append(messages, e.Message)
	}
	if all := strings.Join(messages, "\n"); strings.Count(all, "2 nodes in a row became ready for the pod") != 1 {
		t.Errorf("no event, or more than one, reports the back-off:\n%s", all)
	}
}

// TestRunningPodsAreNotHeld: a node that was launched for pods of a leaving node has not failed as long as the pods run
// there.
func TestRunningPodsAreNotHeld(t *testing.T) {
	t.Parallel()
	b, now := &poolhealth.PodBackoff{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := cluster.Pod{Namespace: "ns", Name: "web", Created: now, Node: "leaving"}
	for n := range 5 {
		now = now.Add(time.Minute)
		b.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "c", CreationTimestamp: metav1.NewTime(now), Annotations: map[string]string{conversion.AnnotationPods: "ns/web"},
		}}, now)
		if planned, held := b.Split([]cluster.Pod{pod}, nil, now.Add(20*time.Second)); len(planned) != 1 || len(held) != 0 {
			t.Fatalf("after node %d the pod is held, or not planned", n+1)
		}
	}
}

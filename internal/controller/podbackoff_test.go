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

// TestUnhelped follows one pod from node to node, none of which helps, and another one beside it.
func TestUnhelped(t *testing.T) {
	t.Parallel()
	u, start := &poolhealth.PodBackoff{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	odd := cluster.Pod{Namespace: "ns", Name: "odd", Created: start}
	other := cluster.Pod{Namespace: "ns", Name: "other", Created: start}
	ready := func(now time.Time, name string, pods ...string) {
		u.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(now), Annotations: map[string]string{conversion.AnnotationPods: strings.Join(pods, ",")},
		}}, now)
	}
	var now time.Time
	sort := func(at time.Duration) (planned, held string, news int) {
		now = start.Add(at)
		left, waits := u.Sort([]cluster.Pod{odd, other}, nil, now)
		for _, p := range left {
			planned += p.Name + " "
		}
		for _, w := range waits {
			held += w.Pod.Name + " "
			if w.IsNews {
				news++
			}
		}
		return planned, held, news
	}
	for _, step := range []struct {
		at            time.Duration
		ready         string // the claim of odd that became ready just before
		planned, held string
		news          int
	}{
		{0, "", "odd other ", "", 0},
		{time.Minute, "a", "odd other ", "", 0}, // the second is launched at once
		{2 * time.Minute, "", "odd other ", "", 0},
		{3 * time.Minute, "b", "other ", "odd ", 1},
		{3*time.Minute + 59*time.Second, "", "other ", "odd ", 0},
		{4 * time.Minute, "", "odd other ", "", 0},
		{5 * time.Minute, "c", "other ", "odd ", 1}, // for twice as long
		{6*time.Minute + 59*time.Second, "", "other ", "odd ", 0},
		{7 * time.Minute, "", "odd other ", "", 0},
	} {
		if step.ready != "" {
			ready(start.Add(step.at), step.ready, "ns/odd")
		}
		if planned, held, news := sort(step.at); planned != step.planned || held != step.held || news != step.news {
			t.Errorf("%s: planned %q, held %q, news %d; want %+v", step.at, planned, held, news, step)
		}
	}
	for i := range 20 {
		ready(now, "more", "ns/odd")
		if _, held, _ := sort(time.Duration(10+40*i) * time.Minute); held != "odd " {
			t.Errorf("%s: held are %q", now.Sub(start), held)
		}
	}
	if _, held, _ := sort(now.Sub(start) + poolhealth.PodBackoffMax); held != "" {
		t.Errorf("held longer than at most: %q", held)
	}
	ready(now, "x", "ns/odd")
	odd.Created = now.Add(time.Second)
	if planned, _, _ := sort(now.Sub(start) + time.Second); planned != "odd other " {
		t.Errorf("a new pod with the same name is backed off: planned are %q", planned)
	}
	if len(u.Pods) != 0 {
		t.Errorf("remembered are %v", u.Pods)
	}
	ready(now, "y", "ns/gone")
	sort(now.Sub(start) + poolhealth.PodBackoffLifetime + time.Second)
	if len(u.Pods) != 0 {
		t.Errorf("a pod that is gone is remembered: %v", u.Pods)
	}
	var none *poolhealth.PodBackoff
	none.Ready(&karpv1.NodeClaim{}, now)
	if left, held := none.Sort([]cluster.Pod{odd}, nil, now); len(left) != 1 || held != nil {
		t.Errorf("without memory: %v, %v", left, held)
	}
}

// TestUnhelpedByANodeThatOthersTook: a node counts as a failure only if it had room for the pod, or never had any.
func TestUnhelpedByANodeThatOthersTook(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cores := func(n int64) resources.Amounts { return resources.Amounts{}.With(resources.CPU, 1000*n) }
	pod := cluster.Pod{Namespace: "ns", Name: "pod", Created: start, Requests: cores(2)}
	other := cluster.Pod{Namespace: "ns", Name: "other", Requests: cores(2)}
	for name, c := range map[string]struct {
		node cluster.Node
		held bool
	}{
		"filled by another pod":    {cluster.Node{Claim: "a", Allocatable: cores(3), Requested: cores(2), Pods: []cluster.Pod{other}}, false},
		"room is left":             {cluster.Node{Claim: "a", Allocatable: cores(4), Requested: cores(2), Pods: []cluster.Pod{other}}, true},
		"empty":                    {cluster.Node{Claim: "a", Allocatable: cores(4)}, true},
		"too small from the start": {cluster.Node{Claim: "a", Allocatable: cores(1)}, true},
		"too small beside DaemonSets": {cluster.Node{Claim: "a", Allocatable: cores(3), Requested: cores(3),
			Pods: []cluster.Pod{{Namespace: "ns", Name: "small", Requests: cores(1)}}}, true},
		"another node": {cluster.Node{Claim: "b", Allocatable: cores(3), Requested: cores(2), Pods: []cluster.Pod{other}}, true},
	} {
		u := &poolhealth.PodBackoff{}
		for i := range 2 {
			u.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
				Name: "a", CreationTimestamp: metav1.NewTime(start), Annotations: map[string]string{conversion.AnnotationPods: "ns/pod"},
			}}, start)
			planned, held := u.Sort([]cluster.Pod{pod}, []cluster.Node{c.node}, start)
			if want := c.held && i == 1; (len(held) == 1) != want || (len(planned) == 0) != want {
				t.Errorf("%s, node %d: %d are held and %d planned, want held %t", name, i+1, len(held), len(planned), want)
			}
		}
	}
}

// TestLaunchThatDidNotHelpIsNotRepeatedBlindly: each node comes up with less room for pods than planned, for an unknown
// cause. After the first node a second one is launched at once, and after that none before the pod has waited.
func TestLaunchThatDidNotHelpIsNotRepeatedBlindly(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "odd", "500m", "2Gi")
	for i, want := range []int{1, 2, 2, 2} {
		r.plan(t)
		if n := len(r.claims(t)); n != want {
			t.Fatalf("after plan %d: %d claims, want %d\n%s", i+1, n, want, r.log)
		}
		r.work(t)
		for _, c := range r.claims(t) {
			if c.Status.NodeName != "" {
				continue
			}
			node := r.nodeOf(t, c)
			node.Status.Allocatable = node.Status.Allocatable.DeepCopy()
			node.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Gi")
			r.create(t, node)
		}
		r.ahead = -time.Minute // they became ready a minute ago: kube-scheduler has had its time
		r.work(t)
		r.ahead = 0
	}
	if n := strings.Count(r.log.String(), "nodes launched for a pod did not make it schedulable"); n != 1 {
		t.Errorf("reported %d times\n%s", n, r.log)
	}
	var told []string
	for e, ok := r.Provisioner.Events.Next(); ok; e, ok = r.Provisioner.Events.Next() {
		told = append(told, e.Message)
	}
	if said := strings.Join(told, "\n"); strings.Count(said, "2 nodes in a row became ready for the pod") != 1 {
		t.Errorf("told:\n%s", said)
	}
}

// TestPodsThatStillRunAreHelped: pods that still run on a leaving node are not pending, so the node launched for them has not failed.
func TestPodsThatStillRunAreHelped(t *testing.T) {
	t.Parallel()
	u, now := &poolhealth.PodBackoff{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	pod := cluster.Pod{Namespace: "ns", Name: "web", Created: now, Node: "leaving"}
	for n := range 5 {
		now = now.Add(time.Minute)
		u.Ready(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: "c", CreationTimestamp: metav1.NewTime(now), Annotations: map[string]string{conversion.AnnotationPods: "ns/web"},
		}}, now)
		if planned, held := u.Sort([]cluster.Pod{pod}, nil, now.Add(20*time.Second)); len(planned) != 1 || len(held) != 0 {
			t.Fatalf("after node %d the pod is held", n+1)
		}
	}
}

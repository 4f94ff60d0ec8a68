package lab_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/lab"
)

// hall is a namespace with pending pods, and nodes without a kubelet that take no other pods.
type hall struct {
	*testing.T
	lab  *lab.Lab
	name string
}

func newHall(t *testing.T, l *lab.Lab) *hall {
	t.Helper()
	h := &hall{T: t, lab: l, name: namespaced(t, l)}
	t.Cleanup(func() {
		ctx := context.Background()
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		for _, err := range []error{
			l.Kube.CoreV1().Pods(h.name).DeleteCollection(ctx, now, metav1.ListOptions{}),
			l.Kube.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{LabelSelector: "hall=" + h.name}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

func (h *hall) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hall) id(name string) string { return h.name + "-" + name }

// pend creates a pod, and waits until kube-scheduler has found no node for it.
func (h *hall) pend(name, cpu string) {
	h.Helper()
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	_, err := h.lab.Kube.CoreV1().Pods(h.name).Create(h.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"hall": h.name},
			Containers:   []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}, metav1.CreateOptions{})
	h.must(err)
	h.within("pod "+name+" to be tried", func() bool { return tried(h.pod(name)) != "" })
}

func (h *hall) pod(name string) *corev1.Pod {
	h.Helper()
	p, err := h.lab.Kube.CoreV1().Pods(h.name).Get(h.Context(), name, metav1.GetOptions{})
	h.must(err)
	return p
}

// join creates a node with the given ready condition.
func (h *hall) join(name, cpu string, ready corev1.ConditionStatus, cordoned bool) {
	h.Helper()
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("29")}
	_, err := h.lab.Kube.CoreV1().Nodes().Create(h.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: h.id(name), Labels: map[string]string{"hall": h.name}},
		Spec:       corev1.NodeSpec{Unschedulable: cordoned},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	}, metav1.CreateOptions{})
	h.must(err)
}

func (h *hall) nominate(pod, node string) {
	h.Helper()
	text := fmt.Sprintf(`{"status":{"nominatedNodeName":%q}}`, h.id(node))
	_, err := h.lab.Kube.CoreV1().Pods(h.name).Patch(h.Context(), pod, types.MergePatchType, []byte(text), metav1.PatchOptions{}, "status")
	h.must(err)
}

func (h *hall) within(what string, ok func() bool) {
	h.Helper()
	within(h.T, h.lab, 30*time.Second, what, func(context.Context) (bool, error) { return ok(), nil })
}

// TestNominationsHold shows the effect of nominations: kube-scheduler reserves room for nominated pods, and all of them
// are bound as planned. Without nominations the small pods, which are scheduled first, are mostly spread so that the
// large one fits on no node. Only the test sets nominations, Joiner does not: docs/decisions/0011.
func TestNominationsHold(t *testing.T) {
	l := shared(t)
	h := newHall(t, l)
	plan := map[string]string{"small-1": "wide", "small-2": "narrow", "small-3": "narrow", "large": "wide"}
	for _, name := range []string{"small-1", "small-2", "small-3"} {
		h.pend(name, "1")
	}
	h.pend("large", "3")
	h.join("wide", "4500m", corev1.ConditionTrue, true) // DaemonSet pods use some of it
	h.join("narrow", "2500m", corev1.ConditionTrue, true)
	for pod, node := range plan {
		h.nominate(pod, node)
	}
	for _, node := range []string{"wide", "narrow"} {
		_, err := l.Kube.CoreV1().Nodes().Patch(t.Context(), h.id(node), types.MergePatchType,
			[]byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
		h.must(err)
	}
	h.within("all pods to be bound as planned", func() bool {
		for pod, node := range plan {
			if h.pod(pod).Spec.NodeName != h.id(node) {
				return false
			}
		}
		return true
	})
}

// TestNominationsAreTakenBack shows why Joiner sets no nominations: until a node is ready, kube-scheduler removes the
// nominations for it whenever it retries the pods, for any reason. Here a small pod on another node ends. If this test
// ever fails, reconsider docs/decisions/0011.
func TestNominationsAreTakenBack(t *testing.T) {
	l := shared(t)
	h := newHall(t, l)
	h.pend("tiny", "100m")
	h.join("full", "900m", corev1.ConditionTrue, false)
	h.within("the tiny pod to be bound", func() bool { return h.pod("tiny").Spec.NodeName != "" })
	waiting := []string{"web-1", "web-2", "web-3"}
	for _, name := range waiting {
		h.pend(name, "1")
	}
	h.join("young", "4", corev1.ConditionFalse, false)
	for _, name := range waiting {
		h.nominate(name, "young")
	}
	h.must(l.Kube.CoreV1().Pods(h.name).Delete(t.Context(), "tiny", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	h.within("all nominations to be removed", func() bool {
		return !slices.ContainsFunc(waiting, func(name string) bool { return h.pod(name).Status.NominatedNodeName != "" })
	})
}

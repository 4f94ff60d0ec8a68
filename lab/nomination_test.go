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

// fixture is a namespace with pending pods, and nodes without a kubelet that only run pods of this namespace.
type fixture struct {
	*testing.T
	lab  *lab.Lab
	name string // of the namespace; value of the label "fixture" of its nodes
}

func newFixture(t *testing.T, l *lab.Lab) *fixture {
	t.Helper()
	f := &fixture{T: t, lab: l, name: newTestNamespace(t, l)}
	t.Cleanup(func() {
		ctx := context.Background()
		immediately := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		for _, err := range []error{
			l.Kube.CoreV1().Pods(f.name).DeleteCollection(ctx, immediately, metav1.ListOptions{}),
			l.Kube.CoreV1().Nodes().DeleteCollection(ctx, immediately, metav1.ListOptions{LabelSelector: "fixture=" + f.name}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// nodeName returns the name of the Node that a test calls name.
func (f *fixture) nodeName(name string) string { return f.name + "-" + name }

// createPending creates a pod, and waits until kube-scheduler has found no node for it.
func (f *fixture) createPending(name, cpu string) {
	f.Helper()
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	_, err := f.lab.Kube.CoreV1().Pods(f.name).Create(f.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"fixture": f.name},
			Containers:   []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}, metav1.CreateOptions{})
	f.must(err)
	f.within("pod "+name+" to be unschedulable", func() bool { return whyUnschedulable(f.pod(name)) != "" })
}

func (f *fixture) pod(name string) *corev1.Pod {
	f.Helper()
	p, err := f.lab.Kube.CoreV1().Pods(f.name).Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	return p
}

// createNode creates a node with the given status of its condition Ready.
func (f *fixture) createNode(name, cpu string, ready corev1.ConditionStatus, cordoned bool) {
	f.Helper()
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("29")}
	_, err := f.lab.Kube.CoreV1().Nodes().Create(f.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: f.nodeName(name), Labels: map[string]string{"fixture": f.name}},
		Spec:       corev1.NodeSpec{Unschedulable: cordoned},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	}, metav1.CreateOptions{})
	f.must(err)
}

func (f *fixture) nominate(pod, node string) {
	f.Helper()
	text := fmt.Sprintf(`{"status":{"nominatedNodeName":%q}}`, f.nodeName(node))
	_, err := f.lab.Kube.CoreV1().Pods(f.name).Patch(f.Context(), pod, types.MergePatchType, []byte(text), metav1.PatchOptions{}, "status")
	f.must(err)
}

func (f *fixture) within(what string, ok func() bool) {
	f.Helper()
	within(f.T, f.lab, 30*time.Second, what, func(context.Context) (bool, error) { return ok(), nil })
}

// TestNominationsHold shows the effect of nominations: kube-scheduler reserves room for nominated pods, and all of them
// are bound as planned. Without nominations, kube-scheduler binds the small pods first, and then mostly no node has
// room for the large pod: see docs/decisions/0030.
func TestNominationsHold(t *testing.T) {
	l := sharedLab(t)
	f := newFixture(t, l)
	plan := map[string]string{"small-1": "wide", "small-2": "narrow", "small-3": "narrow", "large": "wide"}
	for _, name := range []string{"small-1", "small-2", "small-3"} {
		f.createPending(name, "1")
	}
	f.createPending("large", "3")
	// Both nodes are cordoned until all pods are nominated. DaemonSet pods use some of the cpu.
	f.createNode("wide", "4500m", corev1.ConditionTrue, true)
	f.createNode("narrow", "2500m", corev1.ConditionTrue, true)
	for pod, node := range plan {
		f.nominate(pod, node)
	}
	for _, node := range []string{"wide", "narrow"} {
		_, err := l.Kube.CoreV1().Nodes().Patch(t.Context(), f.nodeName(node), types.MergePatchType,
			[]byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
		f.must(err)
	}
	f.within("all pods to be bound as planned", func() bool {
		for pod, node := range plan {
			if f.pod(pod).Spec.NodeName != f.nodeName(node) {
				return false
			}
		}
		return true
	})
}

// TestNominationsAreTakenBack shows why Joiner sets nominations only when a node is ready: until then, kube-scheduler
// removes the nominations for the node whenever it retries the pods. Here it retries them because a small pod on
// another node ends. If this test ever fails, reconsider docs/decisions/0030.
func TestNominationsAreTakenBack(t *testing.T) {
	l := sharedLab(t)
	f := newFixture(t, l)
	f.createPending("tiny", "100m")
	f.createNode("full", "900m", corev1.ConditionTrue, false)
	f.within("pod tiny to be bound", func() bool { return f.pod("tiny").Spec.NodeName != "" })
	waiting := []string{"web-1", "web-2", "web-3"}
	for _, name := range waiting {
		f.createPending(name, "1")
	}
	f.createNode("young", "4", corev1.ConditionFalse, false) // not ready
	for _, name := range waiting {
		f.nominate(name, "young")
	}
	f.must(l.Kube.CoreV1().Pods(f.name).Delete(t.Context(), "tiny", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	f.within("all nominations to be removed", func() bool {
		return !slices.ContainsFunc(waiting, func(name string) bool { return f.pod(name).Status.NominatedNodeName != "" })
	})
}

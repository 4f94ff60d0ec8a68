package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// TestMoveEvictsPodsInOrder checks that a move evicts the pods of its nodes one after the other, in the move's order.
// Before the next eviction, the ReplicaSet must have created a replacement for the evicted pod, and kube-scheduler must
// have bound the replacement to a node.
func TestMoveEvictsPodsInOrder(t *testing.T) {
	l := sharedLab(t)
	ensureController(t, l)
	name := newTestNamespace(t, l)
	apps, fillers := []string{"ant", "bee", "cat", "dog", "elk", "fox"}, []string{"uhu", "vole", "wolf", "xerus", "yak", "zebra"}
	manifests := []string{
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		strings.Replace(pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
			"consolidateAfter: 1s", "consolidateAfter: Never", 1),
	}
	for _, app := range slices.Concat(apps, fillers) {
		manifests = append(manifests, deployment(name, app, 1, "800m", "512Mi", "test: "+name))
	}
	apply(t, l, manifests...)
	awaitRunning(t, l, name, len(apps)+len(fillers), 3*time.Minute)
	for _, app := range fillers { // two pods filled a node; now nodes have room for the pods of the move
		if err := l.Kube.AppsV1().Deployments(name).Delete(t.Context(), app, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitRunning(t, l, name, len(apps), time.Minute)

	order, nodes := podsLastFirst(t, l, name)
	steps := watchSteps(t, l, name, order)
	// Mark the NodeClaims as the controller marks those of a committed move.
	var marked []*karpenterv1.NodeClaim
	for _, claim := range claimsOn(t, l, name, nodes) {
		mark, err := json.Marshal(map[string]any{
			"id": name, "reason": "Underutilized", "begun": time.Now().UTC(), "nodes": len(nodes),
			"pods": len(order), "turns": order, "committed": true,
		})
		if err != nil {
			t.Fatal(err)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"joiner.sh/move": string(mark)}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Client.Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
		marked = append(marked, claim)
	}
	for _, claim := range marked {
		if err := l.Client.Delete(t.Context(), claim); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	within(t, l, 2*time.Minute, "all nodes of the move to be drained", func(context.Context) (bool, error) {
		if left := len(claimsOn(t, l, name, nodes)); left > 0 {
			return false, fmt.Errorf("%d nodes are left; steps so far: %v", left, steps.list())
		}
		return true, nil
	})
	awaitRunning(t, l, name, len(apps), time.Minute)
	var want []string
	for _, id := range order {
		_, pod, _ := strings.Cut(id, "/")
		app, _, _ := strings.Cut(pod, "-")
		want = append(want, app+" evicted", app+" bound")
	}
	if got := steps.list(); !slices.Equal(got, want) {
		t.Errorf("the steps of the move of %d nodes are %v, want %v", len(nodes), got, want)
	}
}

// podsLastFirst returns the pods of the namespace as "namespace/name", in descending order of names, and the nodes on
// which they run.
func podsLastFirst(t *testing.T, l *lab.Lab, namespace string) (order []string, nodes map[string]bool) {
	t.Helper()
	var pods corev1.PodList
	if err := l.Client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	nodes = map[string]bool{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			order = append(order, p.Namespace+"/"+p.Name)
			nodes[p.Spec.NodeName] = true
		}
	}
	slices.Sort(order)
	slices.Reverse(order)
	return order, nodes
}

// claimsOn returns those claims of the pool whose nodes are in nodes.
func claimsOn(t *testing.T, l *lab.Lab, pool string, nodes map[string]bool) (out []*karpenterv1.NodeClaim) {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := l.Client.List(t.Context(), &list, client.MatchingLabels{karpenterv1.LabelNodePool: pool}); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if nodes[list.Items[i].Status.NodeName] {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// steps records the evictions and bindings of pods in their order, each step once.
type steps struct {
	mu  sync.Mutex
	all []string
}

func (s *steps) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (s *steps) note(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.all, step) {
		s.all = append(s.all, step)
	}
}

// watchSteps records the evictions of the pods in old, and the bindings of the namespace's other pods.
func watchSteps(t *testing.T, l *lab.Lab, namespace string, old []string) *steps {
	t.Helper()
	s := &steps{}
	watchPods(t, l, namespace, func(o any, _, _ bool) {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return
		}
		app := p.Labels["app"]
		switch isOld := slices.Contains(old, p.Namespace+"/"+p.Name); {
		case isOld && p.DeletionTimestamp != nil:
			s.note(app + " evicted")
		case !isOld && p.DeletionTimestamp == nil && p.Spec.NodeName != "":
			s.note(app + " bound")
		}
	})
	return s
}

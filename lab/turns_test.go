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

// TestPodsLeaveInTurn checks the order in which a move evicts the pods of its nodes. Kubernetes' controllers create the
// successor of each pod, and kube-scheduler binds it to a node, before the next pod is evicted.
func TestPodsLeaveInTurn(t *testing.T) {
	l := shared(t)
	controller(t, l)
	name := namespaced(t, l)
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
	allRun(t, l, name, len(apps)+len(fillers), 3*time.Minute)
	for _, app := range fillers {
		if err := l.Kube.AppsV1().Deployments(name).Delete(t.Context(), app, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	allRun(t, l, name, len(apps), time.Minute)

	turns, nodes := lastFirst(t, l, name)
	steps := watchSteps(t, l, name, turns)
	var leaving []*karpenterv1.NodeClaim
	for _, claim := range claimsOn(t, l, name, nodes) {
		mark, err := json.Marshal(map[string]any{
			"id": name, "reason": "Underutilized", "begun": time.Now().UTC(), "nodes": len(nodes),
			"pods": len(turns), "turns": turns, "committed": true,
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
		leaving = append(leaving, claim)
	}
	for _, claim := range leaving {
		if err := l.Client.Delete(t.Context(), claim); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	within(t, l, 2*time.Minute, "all nodes of the move to be drained", func(context.Context) (bool, error) {
		if left := len(claimsOn(t, l, name, nodes)); left > 0 {
			return false, fmt.Errorf("%d are left; so far: %v", left, steps.seen())
		}
		return true, nil
	})
	allRun(t, l, name, len(apps), time.Minute)
	var want []string
	for _, id := range turns {
		_, pod, _ := strings.Cut(id, "/")
		app, _, _ := strings.Cut(pod, "-")
		want = append(want, app+" leaves", app+" comes")
	}
	if got := steps.seen(); !slices.Equal(got, want) {
		t.Errorf("from %d nodes: %v, want %v", len(nodes), got, want)
	}
}

// lastFirst returns the pods of the namespace as "namespace/name", the last app first, and their nodes.
func lastFirst(t *testing.T, l *lab.Lab, namespace string) (turns []string, nodes map[string]bool) {
	t.Helper()
	var pods corev1.PodList
	if err := l.Client.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	nodes = map[string]bool{}
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			turns = append(turns, p.Namespace+"/"+p.Name)
			nodes[p.Spec.NodeName] = true
		}
	}
	slices.Sort(turns)
	slices.Reverse(turns)
	return turns, nodes
}

// claimsOn returns the claims of the pool with the given nodes.
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

// steps records events of pods in their order.
type steps struct {
	mu  sync.Mutex
	all []string
}

func (s *steps) seen() []string {
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

// watchSteps records when pods of the order are evicted, and when other pods of their apps are bound.
func watchSteps(t *testing.T, l *lab.Lab, namespace string, order []string) *steps {
	t.Helper()
	s := &steps{}
	watchPods(t, l, namespace, func(o any, _, _ bool) {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return
		}
		app := p.Labels["app"]
		switch isOld := slices.Contains(order, p.Namespace+"/"+p.Name); {
		case isOld && p.DeletionTimestamp != nil:
			s.note(app + " leaves")
		case !isOld && p.DeletionTimestamp == nil && p.Spec.NodeName != "":
			s.note(app + " comes")
		}
	})
	return s
}

package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// disruptionCase is a NodePool with disruption settings, and the condition that must report their errors.
type disruptionCase struct {
	name        string
	annotations string   // annotations of the NodePool
	budgets     string   // budgets of the NodePool
	pdb         string   // spec of a PodDisruptionBudget in the pool's namespace; empty: none
	condition   string   // type of the NodePool's condition; empty: the condition Disruptable of its NodeClaims
	wantTexts   []string // texts in the message of the condition
}

// invalidDisruptions are NodePools whose settings prevent the disruption of their nodes.
var invalidDisruptions = []disruptionCase{
	{
		name: "nonsense-cron", budgets: `{nodes: 100%}, {nodes: "1", schedule: "61 25 * * *", duration: 1h}`,
		condition: karpenterv1.ConditionDisruptionPolicyValid, wantTexts: []string{"spec.disruption.budgets[1].schedule", "61", "until it is fixed"},
	},
	{
		name: "nonsense-annotations", annotations: `{joiner.sh/minimum-node-lifetime: 9000h, joiner.sh/drift-wave: 50%}`, budgets: "{nodes: 20%}",
		condition: karpenterv1.ConditionDisruptionPolicyValid,
		wantTexts: []string{karpenterv1.AnnotationMinimumLifetime, "all nodes expire before that age", karpenterv1.AnnotationDriftWave,
			"50% is more than spec.disruption.budgets[0] allows"},
	},
	{
		name: "nonsense-pdb", budgets: "{nodes: 100%}",
		pdb: "spec: {maxUnavailable: 0, selector: {}}", wantTexts: []string{"PodDisruptionBudget nonsense-pdb/everything", "0 allowed"},
	},
}

// TestInvalidDisruption tests invalid disruption settings: a schedule that never matches, contradictory settings, and a
// PodDisruptionBudget that selects every pod. Each setting prevents only the disruption of its own pool's nodes, and a
// condition names the setting. The API server rejects a budget of 200%.
func TestInvalidDisruption(t *testing.T) {
	l := parallelLab(t, lab.Options{Cluster: "nonsense"})
	ensureController(t, l)
	const validPool = "nonsense-fine"
	manifests := twoNodeManifests(l, disruptionCase{name: validPool, budgets: "{nodes: 100%}"})
	pools := []string{validPool}
	for _, n := range invalidDisruptions {
		manifests = append(manifests, twoNodeManifests(l, n)...)
		pools = append(pools, n.name)
	}
	apply(t, l, manifests...)
	for _, pool := range pools {
		awaitRunning(t, l, pool, replicasEach*2, 3*time.Minute)
		if got := len(claimNames(t, l, pool)); got != 2 {
			t.Fatalf("%s has %d nodes, want 2", pool, got)
		}
	}
	checkBudgetRejected(t, l, validPool)
	for _, pool := range pools {
		markHalfForDeletion(t, l, pool)
		scaleAll(t, l, pool, replicasEach)
	}
	within(t, l, 3*time.Minute, "one of the two nodes of the valid pool to be removed", func(context.Context) (bool, error) {
		if got := len(claimNames(t, l, validPool)); got != 1 {
			return false, fmt.Errorf("%d nodes, want 1", got)
		}
		return true, nil
	})
	for _, n := range invalidDisruptions {
		within(t, l, 2*time.Minute, n.name+" to report its invalid settings", func(context.Context) (bool, error) {
			text := n.message(t, l)
			for _, want := range n.wantTexts {
				if !strings.Contains(text, want) {
					return false, fmt.Errorf("the message is %q, want %q in it", text, want)
				}
			}
			return true, nil
		})
		if got := len(claimNames(t, l, n.name)); got != 2 {
			t.Errorf("%s has %d nodes, want 2", n.name, got)
		}
	}
	fixSchedule(t, l)
}

// markHalfForDeletion lowers the deletion cost of half of the namespace's pods on each node. When the ReplicaSet is
// scaled down, it deletes these pods first. Otherwise it might delete all pods of the newest node, and a node without
// pods is removed regardless of a PodDisruptionBudget.
func markHalfForDeletion(t *testing.T, l *lab.Lab, namespace string) {
	t.Helper()
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	podsOn := map[string]int{}
	for _, p := range pods.Items {
		if podsOn[p.Spec.NodeName]++; podsOn[p.Spec.NodeName]%2 == 0 {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`))
		if err := l.Client.Patch(t.Context(), &p, patch); err != nil {
			t.Fatal(err)
		}
	}
}

// twoNodeManifests returns the manifests of a pool with its own namespace and with pods for two nodes. One node has
// room for half of the pods, replicasEach.
func twoNodeManifests(l *lab.Lab, n disruptionCase) []string {
	p := pool(n.name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}")
	p = strings.Replace(p, "consolidationPolicy: WhenEmpty, consolidateAfter: 1s, budgets: [{nodes: 100%}]",
		"consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1s, budgets: ["+n.budgets+"]", 1)
	if n.annotations != "" {
		p = strings.Replace(p, "metadata: {name: "+n.name+"}", "metadata: {name: "+n.name+", annotations: "+n.annotations+"}", 1)
	}
	out := []string{
		fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", n.name),
		class(l, n.name, "amiSelectorTerms: [{alias: al2023@latest}]"), p,
		deployment(n.name, "web", replicasEach*2, "400m", "256Mi", "test: "+n.name),
	}
	if n.pdb != "" {
		out = append(out, fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: everything, namespace: %s}\n%s\n---\n", n.name, n.pdb))
	}
	return out
}

// message returns the status and the message of the pool's condition, or of its NodeClaims' conditions.
func (n disruptionCase) message(t *testing.T, l *lab.Lab) string {
	t.Helper()
	if n.condition != "" {
		var p karpenterv1.NodePool
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: n.name}, &p); err != nil {
			t.Fatal(err)
		}
		c, _ := p.StatusConditions().Find(n.condition)
		return fmt.Sprintf("%s %s", c.Status, c.Message)
	}
	var texts []string
	for _, c := range claimsNow(t, l, n.name) {
		d, _ := c.StatusConditions().Find(karpenterv1.ConditionDisruptable)
		texts = append(texts, fmt.Sprintf("%s %s", d.Status, d.Message))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func checkBudgetRejected(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	p := &karpenterv1.NodePool{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"budgets":[{"nodes":"200%"}]}}}`))
	if err := l.Client.Patch(t.Context(), p, patch); err == nil || !strings.Contains(err.Error(), "spec.disruption.budgets[0].nodes") {
		t.Errorf("a budget of 200%%: error %v, want one that names the field", err)
	}
}

// fixSchedule removes the invalid schedule. It checks that the message about the schedule disappears, and that one of
// the pool's two nodes is removed.
func fixSchedule(t *testing.T, l *lab.Lab) {
	t.Helper()
	cronCase := invalidDisruptions[0]
	p := &karpenterv1.NodePool{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: cronCase.name}, p); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`))
	if err := l.Client.Patch(t.Context(), p, patch); err != nil {
		t.Fatal(err)
	}
	within(t, l, 2*time.Minute, "the fixed pool to be consolidated", func(context.Context) (bool, error) {
		got, text := len(claimNames(t, l, cronCase.name)), cronCase.message(t, l)
		if got != 1 || strings.Contains(text, "schedule") {
			return false, fmt.Errorf("%d nodes, want 1; the message is %q, want none about the schedule", got, text)
		}
		return true, nil
	})
}

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

// nonsense is a pool whose nodes cannot be disrupted, and the condition that names the reason.
type nonsense struct {
	name        string
	annotations string // of the NodePool
	budgets     string // of the NodePool
	blocks      string // PodDisruptionBudget in its namespace
	condition   string // of the NodePool; if empty, the condition Disruptable of its NodeClaims
	says        []string
}

var nonsenses = []nonsense{
	{
		name: "nonsense-cron", budgets: `{nodes: 100%}, {nodes: "1", schedule: "61 25 * * *", duration: 1h}`,
		condition: karpenterv1.ConditionDisruptionPolicyValid, says: []string{"spec.disruption.budgets[1].schedule", "61", "until it is fixed"},
	},
	{
		name: "nonsense-wishes", annotations: `{joiner.sh/minimum-node-lifetime: 9000h, joiner.sh/drift-wave: 50%}`, budgets: "{nodes: 20%}",
		condition: karpenterv1.ConditionDisruptionPolicyValid,
		says: []string{karpenterv1.AnnotationMinimumLifetime, "all nodes expire before that age", karpenterv1.AnnotationDriftWave,
			"50% is more than spec.disruption.budgets[0] allows"},
	},
	{
		name: "nonsense-pdb", budgets: "{nodes: 100%}",
		blocks: "spec: {maxUnavailable: 0, selector: {}}", says: []string{"PodDisruptionBudget nonsense-pdb/everything", "0 allowed"},
	},
}

// TestNonsense plays invalid disruption settings: a schedule that never matches, contradictory settings, and a
// PodDisruptionBudget that selects every pod. They prevent disruption of their own pool's nodes only, and a condition
// names them. The API server rejects a budget of 200%.
func TestNonsense(t *testing.T) {
	l := beside(t, lab.Options{Cluster: "nonsense"})
	controller(t, l)
	const fine = "nonsense-fine"
	manifests := halfFull(l, nonsense{name: fine, budgets: "{nodes: 100%}"})
	pools := []string{fine}
	for _, n := range nonsenses {
		manifests = append(manifests, halfFull(l, n)...)
		pools = append(pools, n.name)
	}
	apply(t, l, manifests...)
	for _, pool := range pools {
		allRun(t, l, pool, replicasEach*2, 3*time.Minute)
		if got := len(claimNames(t, l, pool)); got != 2 {
			t.Fatalf("%s has %d nodes, want 2", pool, got)
		}
	}
	refusesBudget(t, l, fine)
	for _, pool := range pools {
		halveEach(t, l, pool)
		scaleAll(t, l, pool, replicasEach)
	}
	within(t, l, 3*time.Minute, "one of the two nodes of the valid pool to be removed", func(context.Context) (bool, error) {
		if got := len(claimNames(t, l, fine)); got != 1 {
			return false, fmt.Errorf("%d nodes", got)
		}
		return true, nil
	})
	for _, n := range nonsenses {
		within(t, l, 2*time.Minute, n.name+" to report the error", func(context.Context) (bool, error) {
			text := n.message(t, l)
			for _, want := range n.says {
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

// halveEach marks half of the pods on each node of the namespace to be deleted first when the ReplicaSet is scaled
// down. Otherwise the ReplicaSet might delete all pods of the newest node, and a node without pods is removed
// regardless of a PodDisruptionBudget.
func halveEach(t *testing.T, l *lab.Lab, namespace string) {
	t.Helper()
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, p := range pods.Items {
		if on[p.Spec.NodeName]++; on[p.Spec.NodeName]%2 == 0 {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`))
		if err := l.Client.Patch(t.Context(), &p, patch); err != nil {
			t.Fatal(err)
		}
	}
}

// halfFull returns the manifests of a pool with its own namespace and with pods for two nodes. One node is enough for
// half of the pods.
func halfFull(l *lab.Lab, n nonsense) []string {
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
	if n.blocks != "" {
		out = append(out, fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: everything, namespace: %s}\n%s\n---\n", n.name, n.blocks))
	}
	return out
}

// message returns the message of the pool's condition, or of its nodes' conditions.
func (n nonsense) message(t *testing.T, l *lab.Lab) string {
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

// refusesBudget checks that the API server rejects a budget of 200%, with an error that names the field.
func refusesBudget(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	p := &karpenterv1.NodePool{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"budgets":[{"nodes":"200%"}]}}}`))
	if err := l.Client.Patch(t.Context(), p, patch); err == nil || !strings.Contains(err.Error(), "spec.disruption.budgets[0].nodes") {
		t.Errorf("a budget of 200%%: %v", err)
	}
}

// fixSchedule removes the invalid schedule, and checks that the message and then a node are removed.
func fixSchedule(t *testing.T, l *lab.Lab) {
	t.Helper()
	bad := nonsenses[0]
	p := &karpenterv1.NodePool{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: bad.name}, p); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`))
	if err := l.Client.Patch(t.Context(), p, patch); err != nil {
		t.Fatal(err)
	}
	within(t, l, 2*time.Minute, "the fixed pool to be consolidated", func(context.Context) (bool, error) {
		got, text := len(claimNames(t, l, bad.name)), bad.message(t, l)
		if got != 1 || strings.Contains(text, "schedule") {
			return false, fmt.Errorf("%d nodes; the message is %q", got, text)
		}
		return true, nil
	})
}

package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// TestExpiry waits until a node expires. The controller must launch a replacement, and delete the old NodeClaim only
// when the replacement is ready. No pod may be evicted before this deletion. The evictions honor a PodDisruptionBudget,
// and finally all pods run on the replacement.
func TestExpiry(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	name := newTestNamespace(t, l)
	const life = 40 * time.Second
	// The test changes expireAfter, so the node drifts. The annotation prevents the replacement of the drifted node.
	manifest := strings.Replace(pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
		"metadata: {name: "+name+"}", "metadata: {name: "+name+", annotations: {joiner.sh/drift: observe}}", 1)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		strings.Replace(manifest, "nodeClassRef:", "expireAfter: "+life.String()+"\n      nodeClassRef:", 1),
		deployment(name, "web", 3, "250m", "256Mi", "test: "+name),
		fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: %s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
`, name))
	awaitRunning(t, l, name, 3, life-5*time.Second) // before the node expires
	claims, _ := claimsOf(t, l, name)
	if len(claims) != 1 {
		t.Fatalf("%d claims for three small pods, want 1", len(claims))
	}
	old := claims[0]
	p := &karpenterv1.NodePool{}
	if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
		t.Fatal(err)
	}
	before := p.DeepCopy()
	p.Spec.Template.Spec.ExpireAfter = karpenterv1.After(720 * time.Hour) // for the replacement; the old node keeps its own
	if err := l.Client.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	history := watchHistory(t, l, name, old)

	due := old.CreationTimestamp.Add(life)
	within(t, l, life+time.Minute, "the deletion of the old claim to start", func(ctx context.Context) (bool, error) {
		claim := &karpenterv1.NodeClaim{}
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(&old), claim)
		if claim.DeletionTimestamp != nil {
			old = *claim
		}
		return old.DeletionTimestamp != nil, client.IgnoreNotFound(err)
	})
	if old.DeletionTimestamp.Time.Before(due) {
		t.Errorf("the NodeClaim was deleted at %s, want its expiration at %s or later", old.DeletionTimestamp, due)
	}
	t.Logf("the NodeClaim was deleted %.0f s after its expiration", old.DeletionTimestamp.Sub(due).Seconds())
	claims, _ = claimsOf(t, l, name)
	i := slices.IndexFunc(claims, func(c karpenterv1.NodeClaim) bool { return c.Name != old.Name })
	if i < 0 {
		t.Fatalf("the NodeClaim was deleted without a replacement, want a replacement\n%s", l.Evidence(context.Background()))
	}
	initialized, _ := claims[i].StatusConditions().Find(karpenterv1.ConditionInitialized)
	if initialized.Status != "True" || initialized.LastTransitionTime.After(old.DeletionTimestamp.Time) {
		t.Errorf("the NodeClaim was deleted at %s, want the replacement initialized before: %+v",
			old.DeletionTimestamp, initialized)
	}
	within(t, l, time.Minute, "the old claim to be gone", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKeyFromObject(&old), &karpenterv1.NodeClaim{})
		return err != nil, client.IgnoreNotFound(err)
	})
	awaitRunning(t, l, name, 3, time.Minute)
	want := []string{"claim added", "old claim deleted", "pod deleted", "pod deleted", "pod deleted"}
	if happened := history(); !slices.Equal(happened, want) {
		t.Errorf("events: %v\nwant:   %v", happened, want)
	}
	cleanUp(t, l, name)
}

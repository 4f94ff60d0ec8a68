package lab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

// TestStaticPool checks that a pool with two replicas keeps two nodes without pods, replaces one that a user deletes,
// and follows kubectl scale.
func TestStaticPool(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	name := newTestNamespace(t, l)
	t.Cleanup(func() { killController(l) }) // its feature gate is for this test only
	restartController(t, l, "FEATURE_GATES=StaticCapacity=true")
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "replicas: 2\n  limits: {nodes: 3}", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
	)
	awaitNodes := func(want int) {
		t.Helper()
		within(t, l, 90*time.Second, fmt.Sprintf("%d nodes", want), func(ctx context.Context) (bool, error) {
			var nodes corev1.NodeList
			err := l.Client.List(ctx, &nodes, client.MatchingLabels{"test": name, karpenterv1.LabelInitialized: "true"})
			left, errLeft := nodeObjects(ctx, l, name)
			p := &karpenterv1.NodePool{}
			errPool := l.Client.Get(ctx, client.ObjectKey{Name: name}, p)
			isClean := want > 0 || len(left) == 0 // without nodes, no claim and no instance may be left
			return len(nodes.Items) == want && isClean && p.Status.Nodes == int64(want), errors.Join(err, errLeft, errPool)
		})
	}
	awaitNodes(2)
	var nodes corev1.NodeList
	if err := l.Client.List(t.Context(), &nodes, client.MatchingLabels{"test": name}); err != nil || len(nodes.Items) != 2 {
		t.Fatalf("%d nodes (%v), want 2", len(nodes.Items), err)
	}
	deleted := nodes.Items[0].Name
	if err := l.Client.Delete(t.Context(), &nodes.Items[0]); err != nil {
		t.Fatal(err)
	}
	within(t, l, time.Minute, "the deleted node to be removed", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Name: deleted}, &corev1.Node{})
		return err != nil, client.IgnoreNotFound(err)
	})
	awaitNodes(2)
	for _, size := range []int32{1, 0} {
		resize(t, l, name, size)
		awaitNodes(int(size))
	}
	cleanUp(t, l, name)
}

// resize scales the pool like kubectl scale nodepool.
func resize(t *testing.T, l *lab.Lab, name string, size int32) {
	t.Helper()
	p, scale := &karpenterv1.NodePool{}, &autoscalingv1.Scale{}
	p.Name = name
	if err := l.Client.SubResource("scale").Get(t.Context(), p, scale); err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = size
	if err := l.Client.SubResource("scale").Update(t.Context(), p, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
}

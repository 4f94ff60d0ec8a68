package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// TestClaimGoneBeforeSeen: a claim that is deleted before the cache has it never appears in the cache. After cacheLag,
// the reader must ask the API server about the claim; otherwise the claim's pods would wait forever.
func TestClaimGoneBeforeSeen(t *testing.T) {
	t.Parallel()
	c := kubetest.FakeClient(t, interceptor.Funcs{}, kubetest.PendingPod("p"))
	ledger := &Ledger{}
	ledger.Record(kubetest.Noon, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "u", Annotations: map[string]string{conversion.AnnotationPods: "default/p"},
	}})
	r := &Reader{Cache: c, Live: c, Ledger: ledger}
	s, err := r.Snapshot(t.Context(), kubetest.Noon.Add(cacheLag), nil)
	if err != nil || len(s.Pods) != 0 || len(s.Nodes) != 1 {
		t.Errorf("at cacheLag: %d unplaced pods, %d nodes, error %v; want 0 and 1", len(s.Pods), len(s.Nodes), err)
	}
	s, err = r.Snapshot(t.Context(), kubetest.Noon.Add(cacheLag+time.Second), nil)
	if err != nil || len(s.Pods) != 1 || len(s.Nodes) != 0 || ledger.Len() != 0 {
		t.Errorf("after cacheLag: %d unplaced pods, %d nodes, %d claims in the ledger, error %v; want 1, 0 and 0",
			len(s.Pods), len(s.Nodes), ledger.Len(), err)
	}
}

func TestSnapshotWithoutAnswer(t *testing.T) {
	t.Parallel()
	broken := errors.New("no route to host")
	c := kubetest.FakeClient(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList,
		...client.ListOption) error {
		return broken
	}})
	_, err := (&Reader{Cache: c}).Snapshot(t.Context(), kubetest.Noon, nil)
	if !errors.Is(err, broken) || kubeclient.Classify(err) != kubeclient.Retry {
		t.Errorf("the error is %v (%s), want \"no route to host\" (Retry)", err, kubeclient.Classify(err))
	}
}

func TestLookUps(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-1"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpv1.NodeClaimStatus{ProviderID: "aws:///z/i-1"}}
	here, there := kubetest.PendingPod("here"), kubetest.PendingPod("there")
	here.Spec.NodeName, there.Spec.NodeName = "ip-1", "ip-2"
	r := &Reader{Cache: kubetest.FakeClient(t, interceptor.Funcs{}, node, claim, here, there)}
	nodes, err := r.NodesOf(t.Context(), "aws:///z/i-1")
	if err != nil || len(nodes) != 1 || nodes[0].Name != "ip-1" {
		t.Errorf("NodesOf returns %v, %v; want ip-1", nodes, err)
	}
	claims, err := r.ClaimsOf(t.Context(), "aws:///z/i-1")
	if err != nil || len(claims) != 1 || claims[0].Name != "c" {
		t.Errorf("ClaimsOf returns %v, %v; want c", claims, err)
	}
	pods, err := r.PodsOn(t.Context(), "ip-1")
	if err != nil || len(pods) != 1 || pods[0].Name != "here" {
		t.Errorf("PodsOn returns %v, %v; want here", pods, err)
	}
	for _, id := range []string{"", "aws:///z/i-2"} {
		if nodes, err := r.NodesOf(t.Context(), id); err != nil || len(nodes) != 0 {
			t.Errorf("NodesOf(%q) returns %v, %v; want none", id, nodes, err)
		}
	}
	if attachments, err := r.AttachmentsOn(t.Context(), "ip-1"); err != nil || len(attachments) != 0 {
		t.Errorf("AttachmentsOn returns %v, %v; want none", attachments, err)
	}
}

// TestConcurrentLedger: all access to the ledger must hold its lock; run it with -race.
func TestConcurrentLedger(t *testing.T) {
	t.Parallel()
	var l Ledger
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			l.Record(kubetest.Noon, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('a' + i))}})
		}
	}()
	for range 100 {
		l.updateFromCache(kubetest.Noon, nil)
		l.Len()
	}
	<-done
	if l.Len() != 100 {
		t.Errorf("the ledger has %d claims, want 100", l.Len())
	}
}

package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// late is a cache that does not show claims until it has caught up.
type late struct {
	client.Reader
	caughtUp bool
}

func (l *late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*karpv1.NodeClaimList); ok && !l.caughtUp {
		return nil
	}
	return l.Reader.List(ctx, list, opts...)
}

func pendingPod(name string) *corev1.Pod {
	pod := crowdPod(name)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return pod
}

// TestReadYourWrites follows two pods from the purchase for one of them to its
// binding: at no time may a pass see the first as in need of a machine again.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	c := server(t, interceptor.Funcs{}, generalPool(), pendingPod("bought-for"), pendingPod("later"))
	ledger := &Ledger{}
	cache := &late{Reader: c}
	now := noon
	r := &Reader{Cache: cache, Live: c, Ledger: ledger}
	w := &Writer{Client: c, Ledger: ledger, Now: func() time.Time { return now }}
	snapshot := func() cluster.Snapshot {
		t.Helper()
		s, err := r.Snapshot(t.Context(), now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	expect := func(when string, nodes int, pods ...string) {
		t.Helper()
		s := snapshot()
		var got []string
		for _, p := range s.Pods {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(pods, got); diff != "" || len(s.Nodes) != nodes {
			t.Errorf("%s: %d nodes, want %d; pods (-want +got):\n%s", when, len(s.Nodes), nodes, diff)
		}
	}

	expect("before", 0, "bought-for", "later")
	made := w.CreateClaims(t.Context(), []packing.PlannedNode{machine("default/bought-for")})
	if made[0].Err != nil {
		t.Fatal(made[0].Err)
	}
	claim := made[0].Claim
	expect("the cache lags", 1, "later")
	now = now.Add(time.Minute)
	expect("the cache lags for long, and the server has it", 1, "later")
	cache.caughtUp = true
	expect("the cache shows it", 1, "later")

	claim, err := w.PatchClaim(t.Context(), claim, func(c *karpv1.NodeClaim) {
		c.StatusConditions().SetTrue(now, karpv1.ConditionInitialized)
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(settled)
	expect("ready, kube-scheduler may still bind it", 1, "later")
	now = now.Add(time.Second)
	expect("kube-scheduler does not want it there", 1, "bought-for", "later")

	claim.Finalizers = nil
	if err := c.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	expect("gone", 0, "bought-for", "later")
	if ledger.Len() != 0 {
		t.Errorf("the ledger still holds %d claims", ledger.Len())
	}
}

// A claim that is made and deleted before the cache has seen it never shows up;
// without a look at the server its pods would wait for ever.
func TestClaimGoneBeforeSeen(t *testing.T) {
	t.Parallel()
	c := server(t, interceptor.Funcs{}, pendingPod("p"))
	ledger := &Ledger{}
	ledger.Record(noon, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "u", Annotations: map[string]string{AnnotationPods: "default/p"},
	}})
	r := &Reader{Cache: c, Live: c, Ledger: ledger}
	s, err := r.Snapshot(t.Context(), noon.Add(cacheLag), nil)
	if err != nil || len(s.Pods) != 0 || len(s.Nodes) != 1 {
		t.Errorf("within the lag: %d pods, %d nodes, %v", len(s.Pods), len(s.Nodes), err)
	}
	s, err = r.Snapshot(t.Context(), noon.Add(cacheLag+time.Second), nil)
	if err != nil || len(s.Pods) != 1 || len(s.Nodes) != 0 || ledger.Len() != 0 {
		t.Errorf("after it: %d pods, %d nodes, %d in the ledger, %v", len(s.Pods), len(s.Nodes), ledger.Len(), err)
	}
}

func TestSnapshotWithoutAnswer(t *testing.T) {
	t.Parallel()
	broken := errors.New("no route to host")
	c := server(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken }})
	_, err := (&Reader{Cache: c}).Snapshot(t.Context(), noon, nil)
	if !errors.Is(err, broken) || WhatNext(err) != Retry {
		t.Errorf("error %v (%s)", err, WhatNext(err))
	}
}

func TestLookUps(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-1"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpv1.NodeClaimStatus{ProviderID: "aws:///z/i-1"}}
	here, there := pendingPod("here"), pendingPod("there")
	here.Spec.NodeName, there.Spec.NodeName = "ip-1", "ip-2"
	r := &Reader{Cache: server(t, interceptor.Funcs{}, node, claim, here, there)}
	nodes, err := r.NodesOf(t.Context(), "aws:///z/i-1")
	if err != nil || len(nodes) != 1 || nodes[0].Name != "ip-1" {
		t.Errorf("nodes %v, %v", nodes, err)
	}
	claims, err := r.ClaimsOf(t.Context(), "aws:///z/i-1")
	if err != nil || len(claims) != 1 || claims[0].Name != "c" {
		t.Errorf("claims %v, %v", claims, err)
	}
	pods, err := r.PodsOn(t.Context(), "ip-1")
	if err != nil || len(pods) != 1 || pods[0].Name != "here" {
		t.Errorf("pods %v, %v", pods, err)
	}
	for _, id := range []string{"", "aws:///z/i-2"} {
		if nodes, err := r.NodesOf(t.Context(), id); err != nil || len(nodes) != 0 {
			t.Errorf("nodes of %q: %v, %v", id, nodes, err)
		}
	}
	if attachments, err := r.AttachmentsOn(t.Context(), "ip-1"); err != nil || len(attachments) != 0 {
		t.Errorf("attachments %v, %v", attachments, err)
	}
}

// Nothing reads or writes past the lock: run with -race.
func TestLedgerAtOnce(t *testing.T) {
	t.Parallel()
	var l Ledger
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			l.Record(noon, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('a' + i))}})
		}
	}()
	for range 100 {
		l.missing(noon, nil)
		l.Len()
	}
	<-done
	if l.Len() != 100 {
		t.Errorf("%d claims, want 100", l.Len())
	}
}

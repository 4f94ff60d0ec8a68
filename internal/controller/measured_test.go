package controller

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// reportedCapacity is what the t3.medium nodes of these tests report. Joiner predicts 3788Mi of memory (of 4096Mi),
// 20Gi of disk and 17 pods.
var reportedCapacity = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("3950Mi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("20893676Ki"), corev1.ResourcePods: resource.MustParse("17"),
}

// measuredRig returns a rig and the claim of its ready node, which has reported reportedCapacity. The pending pod
// "large" fits this capacity, but not the predicted one.
func measuredRig(t *testing.T) (*rig, karpv1.NodeClaim) {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "small", "500m", "512Mi")
	r.addPendingPod(t, "large", "500m", "3300Mi")
	r.plan(t)
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("%d claims, want one: the predicted allocatable memory is 3246Mi\n%s", n, r.log)
	}
	r.reconcileClaims(t)
	node := r.nodeOf(t, r.claims(t)[0])
	node.Status.Capacity = reportedCapacity
	r.create(t, node)
	r.reconcileClaims(t)
	claim := r.claims(t)[0]
	if !claim.StatusConditions().IsReady() || claim.Status.ImageID == "" {
		t.Fatalf("the claim is not ready: %+v\n%s", claim.Status, r.log)
	}
	return r, claim
}

// wantMeasured checks that m has the reported capacity for t3.medium and the image of the claim.
func (r *rig) wantMeasured(t *testing.T, when string, m *offerings.Measured, claim karpv1.NodeClaim) {
	t.Helper()
	got, ok := m.Of(claim.Status.ImageID, "t3.medium")
	if !ok || got.Memory != 3950<<20 || len(got.Disk) != 1 || got.Disk[0] != (catalog.Correction{Computed: 20 << 30, Real: 20893676 << 10}) ||
		len(got.Pods) != 1 || got.Pods[0] != (catalog.Correction{Computed: 17, Real: 17}) {
		t.Errorf("%s: measured: %t, %+v, want the reported capacity\n%s", when, ok, got, r.log)
	}
}

// TestNextPlanIsExact: a pod is too large for the predicted capacity of a node, but not for the real one. The pod gets
// a node as soon as another node of the same type has reported its capacity.
func TestNextPlanIsExact(t *testing.T) {
	t.Parallel()
	r, _ := measuredRig(t)
	r.plan(t)
	if n := len(r.claims(t)); n != 2 {
		t.Fatalf("%d claims, want a second one for the large pod: the measured allocatable memory is 3408Mi\n%s", n, r.log)
	}
	r.reconcileClaims(t)
	for _, c := range r.claims(t) {
		capacity := conversion.Amounts(c.Status.Capacity)
		if c.Status.NodeName != "" {
			continue // the first claim
		}
		want := resources.Amounts{CPU: 2000, Memory: 3950 << 20, EphemeralStorage: 20893676 << 10, Pods: 17}
		if !capacity.Equal(want) {
			t.Errorf("the capacity of the new claim is %v, want %v", capacity, want)
		}
	}
}

// TestMeasuredSurvivesRestarts: a new process reads measurements from the Nodes if they were not saved before, and from
// the ConfigMap if no Node is left.
func TestMeasuredSurvivesRestarts(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	r.start(t) // the previous process ended before it saved the measurements
	if _, ok := r.Market.Measured.Of(claim.Status.ImageID, "t3.medium"); ok {
		t.Fatal("a new process has measurements that it has not read")
	}
	r.Market.Measured.Load(t.Context(), r.now())
	r.wantMeasured(t, "after a restart, from the Node", r.Market.Measured, claim)
	if c, ok := r.Market.Type("default", "apps", "t3.medium"); ok {
		t.Fatalf("the catalog has t3.medium before the market was computed: %+v", c)
	}
	r.Market.Market(r.now())
	// 442 MiB are reserved for Kubernetes, and 100 MiB are the eviction threshold.
	if c, ok := r.Market.Type("default", "apps", "t3.medium"); !ok || c.Allocatable.Memory != (3950-442-100)<<20 {
		t.Errorf("allocatable of t3.medium is %v, want 3408Mi of memory", c.Allocatable)
	}

	var stored corev1.ConfigMap
	if err := r.api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: kubeclient.MeasuredName}, &stored); err != nil {
		t.Fatal(err)
	}
	measured, _ := r.Market.Measured.Of(claim.Status.ImageID, "t3.medium")
	line := "t3.medium memory=3950Mi disk=20Gi:20893676Ki pods=17:17 seen=" + measured.Seen.String() + "\n"
	if stored.Data[claim.Status.ImageID] != line {
		t.Errorf("the ConfigMap has %v, want %q", stored.Data, line)
	}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r.start(t)
	m := r.Market.Measured
	m.Cache = fake.NewClientBuilder().WithScheme(scheme).Build() // no Node is left
	m.Load(t.Context(), r.now())
	r.wantMeasured(t, "after a restart, from the ConfigMap", m, claim)
	if m.Saved != m.Version {
		t.Error("unchanged measurements are written again")
	}
}

// restrictedStore counts its writes.
type restrictedStore struct {
	offerings.MeasuredStore
	isForbidden bool // reads are forbidden
	writes      int
	duringWrite func() // runs during each write; may be nil
}

func (d *restrictedStore) Read(ctx context.Context) (catalog.Measurements, error) {
	if d.isForbidden {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, kubeclient.MeasuredName, nil)
	}
	return d.MeasuredStore.Read(ctx)
}

func (d *restrictedStore) Write(ctx context.Context, m catalog.Measurements, since catalog.Day) (catalog.Measurements, error) {
	d.writes++
	if d.duringWrite != nil {
		d.duringWrite()
	}
	return d.MeasuredStore.Write(ctx, m, since)
}

// TestMeasuredWithoutPermission: without the permission to read the store, measurements are used nevertheless, and the
// error is logged once. When the permission is granted, the measurements are written.
func TestMeasuredWithoutPermission(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	r.start(t)
	m := r.Market.Measured
	store := &restrictedStore{MeasuredStore: m.Store, isForbidden: true}
	m.Store = store
	pause := m.Report(m.Pass(t.Context(), r.now()), r.now())
	for range 12 {
		pause = m.Report(m.Pass(t.Context(), r.now()), r.now())
	}
	r.wantMeasured(t, "without permission", m, claim)
	if n := strings.Count(r.log.String(), "cannot store the measured capacity of nodes"); n != 1 || pause != offerings.MeasuredMaxPause {
		t.Errorf("the error is logged %d times, the next try is after %s; want once and MeasuredMaxPause\n%s", n, pause, r.log)
	}
	if !strings.Contains(r.log.String(), "give this user that permission") {
		t.Errorf("the log has no hint about the permission: %s", r.log)
	}
	store.isForbidden = false
	if pause = m.Report(m.Pass(t.Context(), r.now()), r.now()); pause != offerings.MeasuredPause || store.writes != 1 {
		t.Errorf("with permission: next pass after %s, %d writes; want MeasuredPause and 1 write\n%s", pause, store.writes, r.log)
	}
}

// TestMeasuredIsSavedOnce: without a change nothing is written. A change during a write is saved by the next write.
func TestMeasuredIsSavedOnce(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	m := r.Market.Measured
	store := &restrictedStore{MeasuredStore: m.Store}
	m.Store = store
	node := r.nodes(t)[0]
	less := node.DeepCopy()
	less.Status.Capacity[corev1.ResourceMemory] = resource.MustParse("3949Mi")
	store.duringWrite = func() { m.Note(&claim, less, r.now()) }
	for i, want := range []int{1, 2, 2, 2} { // pass 2 writes the 3949Mi that are noted during the first write
		m.Note(&claim, &node, r.now())
		if err := m.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		if store.writes != want {
			t.Errorf("after pass %d: %d writes, want %d", i+1, store.writes, want)
		}
	}
	stored, err := store.Read(t.Context())
	if got := stored[catalog.Sample{Image: claim.Status.ImageID, Type: "t3.medium"}].Memory; err != nil || got != 3949<<20 {
		t.Errorf("the store has %d bytes of memory, want 3949Mi; %v", got, err)
	}
}

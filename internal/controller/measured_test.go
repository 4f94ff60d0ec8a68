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

// Capacity that the t3.medium of these tests reports. Predicted are 3788Mi of memory (of 4096Mi), 20Gi of disk and 17 pods.
var shown = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("3950Mi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("20893676Ki"), corev1.ResourcePods: resource.MustParse("17"),
}

// measuredRig has a ready node that reports its capacity, and a pod that fits the reported but not the predicted capacity.
func measuredRig(t *testing.T) (*rig, karpv1.NodeClaim) {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "small", "500m", "512Mi")
	r.pending(t, "large", "500m", "3300Mi")
	r.plan(t)
	if n := len(r.claims(t)); n != 1 {
		t.Fatalf("%d claims, want one: the estimate is 3246Mi allocatable\n%s", n, r.log)
	}
	r.work(t)
	node := r.nodeOf(t, r.claims(t)[0])
	node.Status.Capacity = shown
	r.create(t, node)
	r.work(t)
	claim := r.claims(t)[0]
	if !claim.StatusConditions().IsReady() || claim.Status.ImageID == "" {
		t.Fatalf("the claim is not ready: %+v\n%s", claim.Status, r.log)
	}
	return r, claim
}

// want checks what m knows about the type and image of the claim.
func (r *rig) want(t *testing.T, when string, m *offerings.Measured, claim karpv1.NodeClaim) {
	t.Helper()
	is, ok := m.Of(claim.Status.ImageID, "t3.medium")
	if !ok || is.Memory != 3950<<20 || len(is.Disk) != 1 || is.Disk[0] != (catalog.Correction{Computed: 20 << 30, Real: 20893676 << 10}) ||
		len(is.Pods) != 1 || is.Pods[0] != (catalog.Correction{Computed: 17, Real: 17}) {
		t.Errorf("%s: known: %t, %+v\n%s", when, ok, is, r.log)
	}
}

// TestNextPlanIsExact: a pod that no predicted node could hold gets a node as soon as a node of the type has reported its capacity.
func TestNextPlanIsExact(t *testing.T) {
	t.Parallel()
	r, _ := measuredRig(t)
	r.plan(t)
	if n := len(r.claims(t)); n != 2 {
		t.Fatalf("%d claims, want a second one for the large pod: 3408Mi are allocatable\n%s", n, r.log)
	}
	r.work(t)
	for _, c := range r.claims(t) {
		promised := conversion.Amounts(c.Status.Capacity)
		if c.Status.NodeName != "" {
			continue // the one of before
		}
		want := resources.Amounts{CPU: 2000, Memory: 3950 << 20, EphemeralStorage: 20893676 << 10, Pods: 17}
		if !promised.Equal(want) {
			t.Errorf("promised are %v, want %v", promised, want)
		}
	}
}

// TestMeasuredSurvivesRestarts: measurements are read from the store when no Node is left, and from the Nodes when they were never saved.
func TestMeasuredSurvivesRestarts(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	r.start(t) // it ended before it saved
	if _, ok := r.Market.Measured.Of(claim.Status.ImageID, "t3.medium"); ok {
		t.Fatal("a new process has measurements that it has not read")
	}
	r.Market.Measured.Load(t.Context(), r.now())
	r.want(t, "after a restart, from the Node", r.Market.Measured, claim)
	if c, ok := r.Market.Type("default", "apps", "t3.medium"); ok {
		t.Fatalf("built before it was asked for: %+v", c)
	}
	r.Market.Market(r.now())
	if c, ok := r.Market.Type("default", "apps", "t3.medium"); !ok || c.Allocatable.Memory != (3950-442-100)<<20 {
		t.Errorf("allocatable of t3.medium is %v", c.Allocatable)
	}

	var kept corev1.ConfigMap
	if err := r.api.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: kubeclient.MeasuredName}, &kept); err != nil {
		t.Fatal(err)
	}
	is, _ := r.Market.Measured.Of(claim.Status.ImageID, "t3.medium")
	line := "t3.medium memory=3950Mi disk=20Gi:20893676Ki pods=17:17 seen=" + is.Seen.String() + "\n"
	if kept.Data[claim.Status.ImageID] != line {
		t.Errorf("kept is %v, want %q", kept.Data, line)
	}
	scheme, err := kubeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r.start(t)
	m := r.Market.Measured
	m.Cache = fake.NewClientBuilder().WithScheme(scheme).Build() // no Node is left
	m.Load(t.Context(), r.now())
	r.want(t, "after a restart, from the ConfigMap", m, claim)
	if m.Saved != m.Version {
		t.Error("unchanged measurements are written again")
	}
}

// denied is a store that may not be read or written while it is closed. It counts the writes.
type denied struct {
	offerings.MeasuredStore
	closed bool
	writes int
	during func()
}

func (d *denied) Read(ctx context.Context) (catalog.Measurements, error) {
	if d.closed {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, kubeclient.MeasuredName, nil)
	}
	return d.MeasuredStore.Read(ctx)
}

func (d *denied) Write(ctx context.Context, m catalog.Measurements, since catalog.Day) (catalog.Measurements, error) {
	d.writes++
	if d.during != nil {
		d.during()
	}
	return d.MeasuredStore.Write(ctx, m, since)
}

// TestMeasuredWithoutPermission: plans are exact without the permission, the error is logged once, and the measurements are written once
// the store is accessible.
func TestMeasuredWithoutPermission(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	r.start(t)
	m := r.Market.Measured
	store := &denied{MeasuredStore: m.Store, closed: true}
	m.Store = store
	last := m.Report(m.Pass(t.Context(), r.now()), r.now())
	for range 12 {
		last = m.Report(m.Pass(t.Context(), r.now()), r.now())
	}
	r.want(t, "without permission", m, claim)
	if n := strings.Count(r.log.String(), "cannot store the measured capacity of nodes"); n != 1 || last != offerings.MeasuredRetryMost {
		t.Errorf("reported %d times, next try after %s\n%s", n, last, r.log)
	}
	if !strings.Contains(r.log.String(), "give this user that permission") {
		t.Errorf("no hint: %s", r.log)
	}
	store.closed = false
	if pause := m.Report(m.Pass(t.Context(), r.now()), r.now()); pause != offerings.MeasuredPause || store.writes != 1 {
		t.Errorf("with permission: next pass after %s, %d writes\n%s", pause, store.writes, r.log)
	}
}

// TestMeasuredIsSavedOnce: without a change nothing is written, and a change during a write is saved by the next one.
func TestMeasuredIsSavedOnce(t *testing.T) {
	t.Parallel()
	r, claim := measuredRig(t)
	m := r.Market.Measured
	store := &denied{MeasuredStore: m.Store}
	m.Store = store
	node := r.nodes(t)[0]
	less := node.DeepCopy()
	less.Status.Capacity[corev1.ResourceMemory] = resource.MustParse("3949Mi")
	store.during = func() { m.Note(&claim, less, r.now()) }
	for i, want := range []int{1, 2, 2, 2} {
		m.Note(&claim, &node, r.now())
		if err := m.Pass(t.Context(), r.now()); err != nil {
			t.Fatal(err)
		}
		if store.writes != want {
			t.Errorf("after pass %d: %d writes, want %d", i+1, store.writes, want)
		}
	}
	kept, err := store.Read(t.Context())
	if got := kept[catalog.Sample{Image: claim.Status.ImageID, Type: "t3.medium"}].Memory; err != nil || got != 3949<<20 {
		t.Errorf("kept are %d bytes, %v", got, err)
	}
}

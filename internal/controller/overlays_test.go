package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/aws/pricing"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/kube/writer"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// newOverlay returns a NodeOverlay that changes nothing yet.
func newOverlay(name string, requirements ...karpv1alpha1.Requirement) *karpv1alpha1.NodeOverlay {
	return &karpv1alpha1.NodeOverlay{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       karpv1alpha1.NodeOverlaySpec{Requirements: requirements},
	}
}

func ofType(names ...string) karpv1alpha1.Requirement {
	return karpv1alpha1.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: names}
}

// newOverlayLoop enables NodeOverlays, and returns their loop.
func (r *rig) newOverlayLoop() *offerings.OverlayReconciler {
	r.Market.Options.Overlays = true
	writer := &writer.Writer{Client: r.api}
	return &offerings.OverlayReconciler{Cache: r.api, Objects: writer, Market: r.Market, Batch: r.Batch(),
		Metrics: r.Market.Metrics, Log: r.Market.Log}
}

// overlayConditions reconciles the overlays. By name, it returns "True" for those that are ready, and otherwise the
// reason and the message of the condition ValidationSucceeded.
func (r *rig) overlayConditions(t *testing.T, loop *offerings.OverlayReconciler) map[string]string {
	t.Helper()
	result, err := loop.Reconcile(t.Context(), named(offerings.AllOverlays))
	if err != nil || result.RequeueAfter == 0 {
		t.Fatalf("the reconcile returns %+v, %v, want a later reconcile", result, err)
	}
	var list karpv1alpha1.NodeOverlayList
	if err := r.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		c := list.Items[i].StatusConditions()
		valid, _ := c.Find(karpv1.ConditionValidationSucceeded)
		out[list.Items[i].Name] = valid.Reason + ": " + valid.Message
		if c.IsReady() {
			out[list.Items[i].Name] = "True"
		}
	}
	return out
}

// TestOverlayPrice: the price that an overlay sets decides which instance type is launched, and an annotation of the
// claim records that a price overlay was used. Without the feature gate, the overlay has no effect.
func TestOverlayPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isEnabled bool
		want      string // the launched instance type
	}{
		"on":  {true, "m5.large"},
		"off": {false, "t3.medium"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium", "m5.large")
			r.reconcileClassAndPool(t)
			cheap := newOverlay("cheap", ofType("m5.large"))
			cheap.Spec.Price = ptr.To("0.001")
			r.create(t, cheap)
			loop := r.newOverlayLoop()
			r.Market.Options.Overlays = c.isEnabled
			if c.isEnabled {
				if got := r.overlayConditions(t, loop)["cheap"]; got != "True" {
					t.Fatalf("overlay cheap is not ready: %s", got)
				}
			}
			r.addPendingPod(t, "web", "500m", "512Mi")
			r.plan(t)
			r.reconcileClaims(t)
			launched := r.instances()
			if len(launched) != 1 || launched[0].Type != c.want {
				t.Fatalf("launched %+v, want one %s\n%s", launched, c.want, r.log)
			}
			claim := r.claims(t)[0]
			if got := claim.Annotations[karpv1.AnnotationPriceOverlay]; (got == "true") != c.isEnabled {
				t.Errorf("the price overlay annotation of the claim is %q, want true only if overlays are on", got)
			}
			if claim.Annotations[karpv1.AnnotationCapacityOverlay] != "" {
				t.Error("the claim has the annotation for a capacity overlay, but no overlay sets a capacity")
			}
		})
	}
}

// TestOverlayCapacity: a resource that only an overlay gives an instance type counts in plans, and in the status of the
// claim.
func TestOverlayCapacity(t *testing.T) {
	t.Parallel()
	const dongle = corev1.ResourceName("example.com/dongle")
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "reader"},
		Spec: corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), dongle: resource.MustParse("1"),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	r.create(t, pod)
	loop := r.newOverlayLoop()
	r.plan(t)
	if n := len(r.claims(t)); n != 0 {
		t.Fatalf("%d claims for a pod whose resource no instance type has yet, want none", n)
	}
	dongles := newOverlay("dongles", ofType("m5.large"),
		karpv1alpha1.Requirement{Key: karpv1.LabelNodePool, Operator: corev1.NodeSelectorOpIn, Values: []string{"apps"}})
	dongles.Spec.Capacity = corev1.ResourceList{dongle: resource.MustParse("2")}
	r.create(t, dongles)
	if got := r.overlayConditions(t, loop)["dongles"]; got != "True" {
		t.Fatalf("overlay dongles is not ready: %s", got)
	}
	r.plan(t)
	r.reconcileClaims(t)
	if launched := r.instances(); len(launched) != 1 || launched[0].Type != "m5.large" {
		t.Fatalf("launched %+v, want one m5.large\n%s", launched, r.log)
	}
	claim := r.claims(t)[0]
	for field, list := range map[string]corev1.ResourceList{"capacity": claim.Status.Capacity, "allocatable": claim.Status.Allocatable} {
		if q := list[dongle]; q.Value() != 2 {
			t.Errorf("status.%s has %s of %s, want 2", field, q.String(), dongle)
		}
	}
	if claim.Annotations[karpv1.AnnotationCapacityOverlay] != "true" || claim.Annotations[karpv1.AnnotationPriceOverlay] != "" {
		t.Errorf("the claim has the annotations %v, want the one for a capacity overlay only", claim.Annotations)
	}
}

// TestOverlayConditions: an overlay that is invalid, or that conflicts with another one, is not applied, and its
// condition says why. It is applied once the conflict is resolved.
func TestOverlayConditions(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	loop := r.newOverlayLoop()
	first, second, other := newOverlay("a", ofType("m5.large")), newOverlay("b", ofType("m5.large", "t3.medium")),
		newOverlay("c", ofType("c5.large"))
	first.Spec.Price, second.Spec.Price, other.Spec.Price = ptr.To("0.1"), ptr.To("0.2"), ptr.To("0.3")
	restricted := newOverlay("restricted",
		karpv1alpha1.Requirement{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}})
	restricted.Spec.PriceAdjustment = ptr.To("+10%")
	unmatched := newOverlay("unmatched", ofType("m5.large"), ofType("t3.medium"))
	for _, o := range []*karpv1alpha1.NodeOverlay{first, second, other, restricted, unmatched} {
		r.create(t, o)
	}
	got := r.overlayConditions(t, loop)
	for name, want := range map[string]string{ // of two overlays with the same weight, the second by name is applied
		"a": "Conflict: conflict with another overlay: b ", "b": "True", "c": "True",
		"restricted": "RuntimeValidation: spec.requirements[0]: kubernetes.io/hostname cannot be known", "unmatched": "True",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("overlay %s: %q, want a text that begins with %q", name, got[name], want)
		}
	}
	prices := func() map[string]string {
		out := map[string]string{}
		for _, typ := range r.Market.Market(time.Now()).Types("default", "apps") {
			out[typ.Name] = typ.Offerings[0].Price.String()
		}
		return out
	}
	if diff := cmp.Diff(map[string]string{"m5.large": "0.2000", "t3.medium": "0.2000"}, prices()); diff != "" {
		t.Errorf("prices (-want +got):\n%s", diff)
	}
	weight := int32(5)
	r.changeOverlay(t, "a", func(o *karpv1alpha1.NodeOverlay) { o.Spec.Weight, o.Generation = &weight, 2 })
	if got := r.overlayConditions(t, loop); got["a"] != "True" || got["b"] != "True" {
		t.Errorf("with weight 5 for a, a is %s and b is %s, want True for both", got["a"], got["b"])
	}
	if diff := cmp.Diff(map[string]string{"m5.large": "0.1000", "t3.medium": "0.2000"}, prices()); diff != "" {
		t.Errorf("prices with weight 5 for a (-want +got):\n%s", diff)
	}
	before := r.Market.OverlayResult
	r.Market.Market(time.Now())
	if r.Market.OverlayResult != before {
		t.Error("the overlays are applied again although nothing has changed")
	}
}

// TestOverlayGivesAPrice: an instance type without an AWS price can be launched once an overlay sets its price.
func TestOverlayGivesAPrice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium", "m5.large")
	r.reconcileClassAndPool(t)
	book := r.Market.Prices.Book()
	book.Prices.OnDemand = map[string]catalog.Price{"t3.medium": book.Prices.OnDemand["t3.medium"]}
	r.Market.Prices = fixedBook{book}
	r.Market.Version++
	isOffered := func() bool {
		for _, typ := range r.Market.Market(time.Now())["default"].Types {
			if typ.Name == "m5.large" {
				return len(typ.Offerings) > 0
			}
		}
		return false
	}
	if isOffered() {
		t.Fatal("an instance type without a price can be launched")
	}
	loop := r.newOverlayLoop()
	preview := newOverlay("preview", ofType("m5.large"))
	preview.Spec.Price = ptr.To("0.4")
	r.create(t, preview)
	r.overlayConditions(t, loop)
	if !isOffered() {
		t.Error("the instance type cannot be launched, although an overlay sets its price")
	}
}

type fixedBook struct{ book pricing.Book }

func (b fixedBook) Book() pricing.Book            { return b.book }
func (b fixedBook) Refresh(context.Context) error { return nil }

func (r *rig) changeOverlay(t *testing.T, name string, change func(*karpv1alpha1.NodeOverlay)) {
	t.Helper()
	var overlay karpv1alpha1.NodeOverlay
	if err := r.api.Get(t.Context(), client.ObjectKey{Name: name}, &overlay); err != nil {
		t.Fatal(err)
	}
	change(&overlay)
	if err := r.api.Update(t.Context(), &overlay); err != nil {
		t.Fatal(err)
	}
}

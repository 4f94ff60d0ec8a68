package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	karpv1alpha1 "github.com/joiner-sh/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
)

// fieldWarner returns the loop that warns of fields without effect, with the given feature gates.
func (r *rig) fieldWarner(gates nodeclass.Gates) *nodeclass.IneffectiveFieldWarner {
	return &nodeclass.IneffectiveFieldWarner{Cache: r.api, Gates: gates, Events: r.events, Log: r.Claims.Log}
}

// ineffectiveFields returns the log lines about fields without effect: OBJECT | FIELD | INSTEAD.
func (r *rig) ineffectiveFields(t *testing.T) []string {
	t.Helper()
	var out []string
	for text := range strings.Lines(r.log.String()) {
		var line struct{ Msg, Level, Object, Field, Instead string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg == "this field has no effect" && line.Level == "WARN" {
			out = append(out, line.Object+" | "+line.Field+" | "+line.Instead)
		}
	}
	return out
}

// objectsWithIneffectiveFields returns objects that together set all fields without effect, and for each the loop of
// its kind. All fields of the NodePool moving have an effect.
func objectsWithIneffectiveFields(t *testing.T, warner *nodeclass.IneffectiveFieldWarner) map[client.Object]reconcile.Func {
	t.Helper()
	decode := func(into client.Object, text string) client.Object {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
		return into
	}
	ref := `"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}`
	return map[client.Object]reconcile.Func{
		decode(&karpv1.NodePool{}, `{"metadata": {"name": "moving"}, "spec": {"template": {"spec": {`+ref+`}}, "disruption": {"consolidateAfter": "0s",
			"consolidationPolicy": "Balanced", "budgets": [{"nodes": "0", "schedule": "@daily", "duration": "8h"}, {"nodes": "1", "schedule": "@hourly", "duration": "1m"}]}}}`): warner.Pool,
		decode(&karpv1.NodePool{}, `{"metadata": {"name": "fixed"}, "spec": {"replicas": 3, "template": {"spec": {`+ref+
			`}}, "disruption": {"consolidateAfter": "0s"}}}`): warner.Pool,
		decode(&awsv1.EC2NodeClass{},
			`{"metadata": {"name": "reserving"}, "spec": {"capacityReservationSelectorTerms": [{"id": "cr-0"}]}}`): warner.Class,
		decode(&karpv1alpha1.NodeOverlay{},
			`{"metadata": {"name": "cheaper"}, "spec": {"requirements": [], "priceAdjustment": "-10%"}}`): warner.Overlay,
		decode(&karpv1.NodeClaim{}, `{"metadata": {"name": "claim", "annotations": {"karpenter.sh/requested-dra-drivers": "gpu.nvidia.com"}}, "spec": {`+ref+`}}`): warner.Claim,
	}
}

// TestNothingIsSilentlyIgnored: each field without effect is logged once, with the object and what happens instead, and
// reported by an event. Further reconciles log nothing. A field that needs a feature gate is reported only while the
// gate is off.
func TestNothingIsSilentlyIgnored(t *testing.T) {
	t.Parallel()
	always := []string{
		"NodeClaim claim | metadata.annotations[karpenter.sh/requested-dra-drivers] | the node counts as initialized without waiting for the devices of these drivers",
	}
	gated := []string{
		"NodePool fixed | spec.replicas | no node is launched for this NodePool: the feature gate StaticCapacity is off",
		"EC2NodeClass reserving | spec.capacityReservationSelectorTerms | capacity reservations are not used: the feature gate ReservedCapacity is off",
		"NodeOverlay cheaper | spec | prices and sizes are those of AWS: the feature gate NodeOverlay is off",
	}
	for name, c := range map[string]struct {
		gates nodeclass.Gates
		want  []string
	}{
		"gates off": {nodeclass.Gates{}, slices.Concat(gated, always)},
		"gates on":  {nodeclass.Gates{Overlays: true, Reservations: true, Statics: true}, always},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "m5.large")
			warner := r.fieldWarner(c.gates)
			for object, loop := range objectsWithIneffectiveFields(t, warner) {
				r.create(t, object)
				for range 3 {
					reconcileOnce(t, loop, object.GetName())
				}
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), slices.Sorted(slices.Values(r.ineffectiveFields(t)))); diff != "" {
				t.Errorf("log lines about fields without effect (-want +got):\n%s", diff)
			}
			if r.events.find("FieldNotHonoured", "requested-dra-drivers] has no effect: ") == "" {
				t.Error("no event reports that requested-dra-drivers has no effect")
			}
		})
	}
}

// TestFieldSetAgainIsReportedAgain: a field that was removed and set again is reported again. An object without such a
// field, or of another controller, is not reported.
func TestFieldSetAgainIsReportedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "m5.large")
	warner := r.fieldWarner(nodeclass.Gates{})
	pool := &karpv1.NodePool{}
	setReplicas := func(replicas *int64) (lines string) { // returns the number of log lines so far
		if err := r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool); err != nil {
			t.Fatal(err)
		}
		pool.Spec.Replicas = replicas
		if err := r.api.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		reconcileOnce(t, warner.Pool, "apps")
		return fmt.Sprint(strings.Count(strings.Join(r.ineffectiveFields(t), "\n"), "NodePool apps"))
	}
	one, two := int64(1), int64(2)
	got := setReplicas(nil) + setReplicas(&one) + setReplicas(&two) + setReplicas(nil) + setReplicas(&one)
	if want := "01112"; got != want { // setting 2 instead of 1 is not reported again
		t.Errorf("log lines after each change: %s, want %s", got, want)
	}
	pool.Spec.Template.Spec.NodeClassRef.Kind = "OtherNodeClass"
	if err := r.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	reconcileOnce(t, r.fieldWarner(nodeclass.Gates{}).Pool, "apps")
	if lines := len(r.ineffectiveFields(t)); lines != 2 {
		t.Errorf("%d log lines, want 2: a pool of another controller is not reported", lines)
	}
	reconcileOnce(t, warner.Pool, "gone") // a pool that does not exist
}

// reconcileOnce reconciles the object. This must succeed and request no further reconcile.
func reconcileOnce(t *testing.T, loop func(context.Context, reconcile.Request) (reconcile.Result, error), name string) {
	t.Helper()
	if result, err := loop(t.Context(), named(name)); err != nil || result.RequeueAfter != 0 {
		t.Fatalf("%s: the reconcile returns %+v, %v, want no further reconcile and no error", name, result, err)
	}
}

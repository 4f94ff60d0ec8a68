package snapshot

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func TestReservations(t *testing.T) {
	t.Parallel()
	class := &awsv1.EC2NodeClass{Status: awsv1.EC2NodeClassStatus{CapacityReservations: []awsv1.CapacityReservation{
		{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: "us-east-1a"},
		{ID: "cr-2", InstanceType: "p5.48xlarge", AvailabilityZone: "us-east-1b", ReservationType: awsv1.CapacityReservationBlock,
			Interruptible: true, State: awsv1.CapacityReservationExpiring},
		{ID: "cr-3", InstanceType: "m5.large", AvailabilityZone: "us-east-1c"},
	}}}
	known, unknown := Reservations(class, map[string]int{"cr-1": 4, "cr-2": 0, "cr-9": 1})
	want := []catalog.ReservedCapacity{
		{Reservation: catalog.Reservation{ID: "cr-1", Type: catalog.ReservationDefault, Left: 4}, InstanceType: "m5.large", Zone: "us-east-1a"},
		{Reservation: catalog.Reservation{ID: "cr-2", Type: catalog.ReservationBlock, Interruptible: true},
			InstanceType: "p5.48xlarge", Zone: "us-east-1b", Expiring: true},
	}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	if !slices.Equal(unknown, []string{"cr-3"}) {
		t.Errorf("unknown: %v, want cr-3", unknown)
	}
}

// TestReservedClaim: a claim for a capacity reservation allows no other reservation. Before the launch, the
// snapshot's node has the reservation as a label, but the claim has not.
func TestReservedClaim(t *testing.T) {
	t.Parallel()
	pool := kubetest.GeneralPool()
	planned := packing.PlannedNode{
		Name: "general-1", Pool: "general", NodeClass: "default", Pods: []string{"default/a"},
		Requirements: []requirements.Requirement{
			{Key: catalog.LabelReservationID, Operator: requirements.In, Values: []string{"cr-1"}},
			{Key: catalog.LabelInstanceType, Operator: requirements.In, Values: []string{"m5.large"}},
		},
		Offerings: []packing.Choice{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: catalog.Reserved, Reservation: "cr-1"}},
	}
	claim, err := conversion.ClaimFor(planned, pool)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, r := range claim.Spec.Requirements {
		got[r.Key] = r.Values
	}
	want := map[string][]string{
		catalog.LabelReservationID: {"cr-1"}, catalog.LabelCapacityType: {catalog.Reserved},
		catalog.LabelInstanceType: {"m5.large"}, catalog.LabelZone: {"us-east-1a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
	if id, ok := claim.Labels[catalog.LabelReservationID]; ok {
		t.Errorf("label %s=%s is set before EC2 has launched the instance", catalog.LabelReservationID, id)
	}
	if value, ok := claim.Annotations[karpv1.AnnotationMinValuesRelaxed]; ok {
		t.Errorf("the claim has the annotation %s=%s, but the pool has no minValues", karpv1.AnnotationMinValuesRelaxed, value)
	}
	claim.Name, claim.CreationTimestamp = "general-x1", metav1.Time{Time: kubetest.Noon}
	s := Objects{Pools: []*karpv1.NodePool{pool}, Claims: []*karpv1.NodeClaim{claim}}.Snapshot(View{Now: kubetest.Noon})
	if id := s.Nodes[0].Labels[catalog.LabelReservationID]; id != "cr-1" {
		t.Errorf("the node has the label of reservation %q, want cr-1", id)
	}
}

// TestMinValuesRelaxed: a claim records whether minValues were relaxed, and has minValues of the planned node, which
// never exceed the number of values. RelaxMinValues of the View reaches the pools of the snapshot.
func TestMinValuesRelaxed(t *testing.T) {
	t.Parallel()
	pool := kubetest.GeneralPool()
	pool.Spec.Template.Spec.Requirements = karpv1.Requirements{{Key: catalog.LabelInstanceType, Operator: "Exists", MinValues: ptr.To(5)}}
	planned := kubetest.PlannedNode("default/a")
	planned.Requirements = []requirements.Requirement{
		{Key: catalog.LabelInstanceType, Operator: requirements.In, Values: []string{"t2.small", "t3.small"}, MinValues: 2},
	}
	for annotation, relaxed := range map[string][]packing.Relaxation{
		"true": {{Key: catalog.LabelInstanceType, Asked: 5, Have: 2}}, "false": nil,
	} {
		planned.Relaxed = relaxed
		claim, err := conversion.ClaimFor(planned, pool)
		if err != nil {
			t.Fatal(err)
		}
		if got := claim.Annotations[karpv1.AnnotationMinValuesRelaxed]; got != annotation {
			t.Errorf("relaxed %v: the annotation is %q, want %q", relaxed, got, annotation)
		}
		i := slices.IndexFunc(claim.Spec.Requirements, func(r karpv1.Requirement) bool { return r.Key == catalog.LabelInstanceType })
		if n := claim.Spec.Requirements[i].MinValues; n == nil || *n != 2 {
			t.Errorf("minValues of the claim are %v, want 2", n)
		}
	}
	for _, relax := range []bool{true, false} {
		s := Objects{Pools: []*karpv1.NodePool{pool}}.Snapshot(View{Now: kubetest.Noon, RelaxMinValues: relax})
		if s.Pools[0].RelaxesMinValues != relax {
			t.Errorf("RelaxMinValues %t gives the pool RelaxesMinValues %t", relax, s.Pools[0].RelaxesMinValues)
		}
	}
}

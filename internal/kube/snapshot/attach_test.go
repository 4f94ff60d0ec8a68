package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// TestClaimRequestsNoVolumes: a claim must not request attachable volumes as a resource. No Node reports such a
// resource, so the node of the claim would never be initialized.
func TestClaimRequestsNoVolumes(t *testing.T) {
	t.Parallel()
	planned := kubetest.PlannedNode("default/p")
	planned.Requests = resources.Amounts{CPU: 1000}.With(conversion.AttachablePrefix+conversion.DriverEBS, 3).With("nvidia.com/gpu", 1)
	claim, err := conversion.ClaimFor(planned, kubetest.GeneralPool())
	if err != nil {
		t.Fatal(err)
	}
	want := resources.Amounts{CPU: 1000}.With("nvidia.com/gpu", 1)
	if diff := cmp.Diff(want, conversion.Amounts(claim.Spec.Resources.Requests)); diff != "" {
		t.Errorf("the claim requests (-want +got):\n%s", diff)
	}
}

// TestVolumesOfUnlaunchedClaim: a claim without an instance can attach as many volumes as the type with the lowest
// limit among the known types that it lists.
func TestVolumesOfUnlaunchedClaim(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{}
	claim.Name, claim.Spec.NodeClassRef = "c", &karpv1.NodeClassReference{Name: "default"}
	claim.Spec.Requirements = karpv1.Requirements{{
		Key: catalog.LabelInstanceType, Operator: corev1.NodeSelectorOpIn, Values: []string{"large", "small", "unknown"},
	}}
	market := catalog.Market{"default": {Types: []catalog.Type{{Name: "large", Volumes: 31}, {Name: "small", Volumes: 25}}}}
	s := Objects{Claims: []*karpv1.NodeClaim{claim}}.Snapshot(View{Now: kubetest.Noon, Live: true, Market: market})
	if got := s.Nodes[0].Allocatable.Of(conversion.AttachablePrefix + conversion.DriverEBS); got != 25 {
		t.Errorf("%d volumes can be attached, want 25", got)
	}
	s = Objects{Claims: []*karpv1.NodeClaim{claim}}.Snapshot(View{Now: kubetest.Noon, Live: true})
	if got := s.Nodes[0].Allocatable.Of(conversion.AttachablePrefix + conversion.DriverEBS); got != 0 {
		t.Errorf("%d volumes can be attached without a market, want no limit (0)", got)
	}
}

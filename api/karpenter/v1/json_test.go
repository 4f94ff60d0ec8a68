package v1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestJSON checks that empty fields are not encoded. So the API server sets defaults, and no update clears a status.
func TestJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object any
		want   string
	}{
		"NodeClaim with required fields only": {
			object: NodeClaim{Spec: NodeClaimSpec{
				Requirements: Requirements{},
				NodeClassRef: &NodeClassReference{Group: "g", Kind: "K", Name: "n"},
				ExpireAfter:  After(time.Hour),
			}},
			want: `{"metadata":{},"spec":{"requirements":[],"nodeClassRef":{"kind":"K","name":"n","group":"g"},` +
				`"expireAfter":"1h0m0s"}}`,
		},
		"NodePool with required fields only": {
			object: NodePool{Spec: NodePoolSpec{
				Template: NodeClaimTemplate{Spec: NodeClaimTemplateSpec{Requirements: Requirements{}}},
			}},
			want: `{"metadata":{},"spec":{"template":{"spec":{"requirements":[],"nodeClassRef":null,` +
				`"expireAfter":"Never"}},"disruption":{"consolidateAfter":"Never"}}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestScheme(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"NodePool", "NodePoolList", "NodeClaim", "NodeClaimList"} {
		if !scheme.Recognizes(GroupVersion.WithKind(kind)) {
			t.Errorf("the scheme does not recognize %s", kind)
		}
	}
}

func TestNodeClassReferenceLabelKey(t *testing.T) {
	t.Parallel()
	ref := NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "general"}
	if got, want := ref.LabelKey(), "karpenter.k8s.aws/ec2nodeclass"; got != want {
		t.Errorf("label key %q, want %q", got, want)
	}
}

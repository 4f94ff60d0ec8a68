package evidence

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// silent is a cluster that returns the same error for each Get.
type silent struct {
	client.Reader
	err error
}

func (s silent) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return s.err
}

// TestUnreadAccount: a forbidden service account is reported, because it has Karpenter's role; a missing one is not.
func TestUnreadAccount(t *testing.T) {
	t.Parallel()
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	for name, c := range map[string]struct {
		err    error
		unseen int
	}{
		"gone":    {apierrors.NewNotFound(accounts, "karpenter"), 0},
		"refused": {apierrors.NewForbidden(accounts, "karpenter", errors.New("no")), 1},
	} {
		deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "kube-system", "name": "karpenter"},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "karpenter"}}}}}
		out, unseen, err := (&Witness{live: silent{err: c.err}}).accounts(t.Context(), []*unstructured.Unstructured{deployment})
		if err != nil || len(out) != 0 || len(unseen) != c.unseen {
			t.Errorf("%s: %v, %v, %v", name, out, unseen, err)
		}
		for _, u := range unseen {
			if !u.Asked || u.What != "service account kube-system/karpenter" {
				t.Errorf("%s: it is %+v", name, u)
			}
		}
	}
}

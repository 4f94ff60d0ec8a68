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

type failingReader struct {
	client.Reader
	err error
}

func (f failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

// TestUnreadAccount: a service account that may not be read is reported, because its annotation has Karpenter's role. A
// missing one is not reported.
func TestUnreadAccount(t *testing.T) {
	t.Parallel()
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	for name, c := range map[string]struct {
		err        error
		wantUnseen int
	}{
		"missing":   {apierrors.NewNotFound(accounts, "karpenter"), 0},
		"forbidden": {apierrors.NewForbidden(accounts, "karpenter", errors.New("no")), 1},
	} {
		deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "kube-system", "name": "karpenter"},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"serviceAccountName": "karpenter"}}}}}
		out, unseen, err := (&Reader{objects: failingReader{err: c.err}}).accounts(t.Context(), []*unstructured.Unstructured{deployment})
		if err != nil || len(out) != 0 || len(unseen) != c.wantUnseen {
			t.Errorf("%s: accounts %v, unseen %v, error %v; want no account and %d unseen", name, out, unseen, err, c.wantUnseen)
		}
		for _, u := range unseen {
			if !u.Asked || u.What != "service account kube-system/karpenter" {
				t.Errorf("%s: unseen is %+v, want service account kube-system/karpenter, asked for", name, u)
			}
		}
	}
}

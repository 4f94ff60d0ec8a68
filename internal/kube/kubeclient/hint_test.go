package kubeclient

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestInternalHint: an internal error gives a hint about the API server, or about the webhook that the error names.
func TestInternalHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"of the API server": {apierrors.NewInternalError(errors.New("etcd is gone")), "/readyz"},
		"of a conversion webhook": {&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: `conversion webhook for karpenter.sh/v1, Kind=NodePool failed: Post "https://karpenter.kube-system.svc:8443/": service "karpenter" not found`}}, "spec.conversion"},
		"of an admission webhook": {apierrors.NewInternalError(errors.New(`failed calling webhook "defaulting.webhook.karpenter.sh": no endpoints available`)), "remove it from its webhook configuration"},
	} {
		if got := Hint(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
	}
}

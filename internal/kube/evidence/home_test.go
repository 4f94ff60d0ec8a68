package evidence

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// TestHiddenDNS: if the user is not allowed to list the endpoints of cluster DNS, Home reports the missing permission,
// and not that DNS is down.
func TestHiddenDNS(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
			_, _ = io.WriteString(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "uid-1"}}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`)
	}))
	t.Cleanup(api.Close)
	reader, err := NewReader(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	home, err := reader.Home(t.Context())
	if err != nil || home.UID != "uid-1" || home.DNSReady || home.DNSAbsent != diagnosis.Denied ||
		home.DNSWhy != "to list endpointslices in kube-system" {
		t.Errorf("Home returns %+v, %v; want that listing endpointslices is denied", home, err)
	}
}

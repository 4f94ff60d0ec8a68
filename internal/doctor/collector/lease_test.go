package collector_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/kube/evidence"
)

// TestLease: the controller's Lease, or the reason why it is missing, is evidence.
func TestLease(t *testing.T) {
	t.Parallel()
	const leases = "/apis/coordination.k8s.io/v1/leases"
	for name, c := range map[string]struct {
		code   int
		answer string
		absent diagnosis.Absence
		why    string
	}{
		"exists": {200, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [{"metadata": {"namespace": "kube-system", "name": "karpenter-leader-election"},
			"spec": {"holderIdentity": "joiner-0", "leaseDurationSeconds": 15, "renewTime": "2099-05-01T12:00:00.000000Z"}}]}`, "", ""},
		"none":   {200, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": []}`, diagnosis.Missing, ""},
		"denied": {403, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`, diagnosis.Denied, "to get and list leases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path != leases || !strings.Contains(r.URL.Query().Get("fieldSelector"), evidence.LeaseName) {
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none"}`)
					return
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.answer)
			}))
			t.Cleanup(api.Close)
			reader, err := evidence.NewReader(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Collect(t.Context(),
				collector.Clients{Kube: reader, NoAWS: "none", Cluster: "prod", Region: "us-east-1"}).Lease
			if got.Absent != c.absent || got.Why != c.why || got.At.IsZero() {
				t.Errorf("the Lease is %+v, want absence %q because %q, and a time", got, c.absent, c.why)
			}
			if want := time.Date(2099, 5, 1, 12, 0, 0, 0, time.UTC); c.absent == "" &&
				(got.Source != "lease kube-system/karpenter-leader-election" || got.Value.Holder != "joiner-0" || !got.Value.Renewed.Equal(want)) {
				t.Errorf("the Lease is %+v, want its source, holder and renewal time", got)
			}
		})
	}
}

// TestLeaseAhead: if the local clock is an hour ahead of the cluster's, a Lease counts as renewed now if its renewal
// time changes between two readings.
func TestLeaseAhead(t *testing.T) {
	t.Parallel()
	for name, perReading := range map[string]time.Duration{"renewed": 2 * time.Second, "not renewed": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renewed := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
			next := renewed
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path != "/apis/coordination.k8s.io/v1/leases" {
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "none"}`)
					return
				}
				_, _ = fmt.Fprintf(w, `{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [{"metadata": {"namespace": "kube-system", "name": "karpenter-leader-election"},
					"spec": {"holderIdentity": "joiner-0", "leaseDurationSeconds": 15, "renewTime": %q}}]}`, next.Format("2006-01-02T15:04:05.000000Z"))
				next = next.Add(perReading)
			}))
			t.Cleanup(api.Close)
			reader, err := evidence.NewReader(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Collect(t.Context(),
				collector.Clients{Kube: reader, NoAWS: "none", Cluster: "prod", Region: "us-east-1"}).Lease
			if isNow := time.Since(got.Value.Renewed) < time.Minute; isNow != (perReading > 0) ||
				perReading == 0 && !got.Value.Renewed.Equal(renewed) {
				t.Errorf("the Lease is %+v, want it renewed now only if it changes between the readings", got)
			}
		})
	}
}

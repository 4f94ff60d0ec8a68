package emulator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// describeAll is a request for all instances.
func describeAll() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag-key&Filter.1.Value.1=aws%3Aec2%3Afleet-id"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+account+"/20260801/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=00")
	r.Header.Set("X-Amz-Date", "20260801T000000Z")
	return r
}

// TestThousandInstances lists a thousand instances in well under 100 ms.
func TestThousandInstances(t *testing.T) {
	b := newBench(t)
	if _, err := b.ec2.CreateFleet(t.Context(), fleet(b.template(t, "joiner-a", types.RequestLaunchTemplateData{}), 1000, b.override("m5.large", 0))); err != nil {
		t.Fatal(err)
	}
	best := time.Hour
	for range 5 { // the best of five: the machine may be busy with other tests
		began := time.Now()
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, describeAll())
		best = min(best, time.Since(began))
		if n := strings.Count(w.Body.String(), "<instanceId>"); n != 1000 {
			t.Fatalf("%d instances, want 1000", n)
		}
	}
	t.Logf("1000 instances in %s", best)
	if best > 100*time.Millisecond && !underRace {
		t.Errorf("1000 instances took %s", best)
	}
}

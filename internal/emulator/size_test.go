package emulator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// describeAll returns a request that lists all instances of fleets. The server does not verify its signature, because
// the access key is unknown.
func describeAll() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag-key&Filter.1.Value.1=aws%3Aec2%3Afleet-id"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential="+account+"/20260801/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=00")
	r.Header.Set("X-Amz-Date", "20260801T000000Z")
	return r
}

// TestThousandInstances: a list of a thousand instances takes no more allocations per instance than a list of ten.
func TestThousandInstances(t *testing.T) {
	allocs10, allocs1000 := listAllocations(t, 10), listAllocations(t, 1000)
	t.Logf("%.0f allocations for 10 instances, %.0f for 1000", allocs10, allocs1000)
	if allocs1000 > 100*allocs10 {
		t.Errorf("%.0f allocations for 1000 instances, want at most 100 times %.0f", allocs1000, allocs10)
	}
}

// listAllocations returns the number of allocations of a call that lists n instances.
func listAllocations(t *testing.T, n int) float64 {
	t.Helper()
	b := newFixture(t)
	if _, err := b.ec2.CreateFleet(t.Context(),
		fleet(b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{}), int32(n), b.override("m5.large", 0))); err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(3, func() {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, describeAll())
		if got := strings.Count(w.Body.String(), "<instanceId>"); got != n {
			t.Fatalf("%d instances, want %d", got, n)
		}
	})
}

package awserr_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// TestFastServer reads long answers of a server that answers immediately. Then the SDK closes the request's body while
// net/http still reads the body, which must not close the connection. Without readOnlyBodyClient about one answer in a
// hundred fails here.
func TestFastServer(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(`<DescribeInstanceTypesResponse><requestId>r</requestId><instanceTypeSet>`)
	for i := range 2000 {
		fmt.Fprintf(&page, "<item><instanceType>m5.%dlarge</instanceType></item>", i)
	}
	page.WriteString(`</instanceTypeSet></DescribeInstanceTypesResponse>`)
	body := []byte(page.String())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "r")
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	for i := range 400 {
		// Each call uses a new connection, because the race is most likely on the first call.
		client := ec2.NewFromConfig(awserr.ClientConfig(config(srv.URL)))
		out, err := client.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if len(out.InstanceTypes) != 2000 {
			t.Fatalf("call %d: %d types, want 2000", i, len(out.InstanceTypes))
		}
	}
}

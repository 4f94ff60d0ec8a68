package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/migration"
)

// TestUntaggedInstances: if EC2 refuses to describe the instances of NodeClaims, this is recorded as one unseen item,
// because the instances may block a migration. Instances that no longer exist are not recorded.
func TestUntaggedInstances(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		response string
		unseen   int // number of unseen items
	}{
		"gone": {200, `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>`, 0},
		"refused": {403, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized to perform this operation.</Message></Error></Errors></Response>`,
			1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-Requestid", "r-1") // the client accepts no response without this header
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.response)
			}))
			t.Cleanup(api.Close)
			awsClient, err := ec2.New(aws.Config{Region: "us-east-1", BaseEndpoint: &api.URL, RetryMaxAttempts: 1,
				Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")},
				ec2.Cluster{Name: "prod", UID: "uid-1", Region: "us-east-1"})
			if err != nil {
				t.Fatal(err)
			}
			seen := migration.Installation{Claims: []migration.Claim{{Name: "a", ProviderID: "aws:///us-east-1a/i-0123456789abcdef0"},
				{Name: "b", ProviderID: "aws:///us-east-1a/i-0123456789abcdef1"}}}
			m := migrationAWS{seen: &seen, clients: collector.Clients{EC2: awsClient}}
			m.addUntaggedInstances(t.Context())
			if len(seen.Unseen) != c.unseen || len(seen.Instances) != 0 {
				t.Fatalf("%+v, want %d unseen items and no instance", seen, c.unseen)
			}
			for _, u := range seen.Unseen {
				if !u.Asked || u.What != "instances without the cluster's tags" {
					t.Errorf("unseen item %+v, want Asked and instances without the cluster's tags", u)
				}
			}
		})
	}
}

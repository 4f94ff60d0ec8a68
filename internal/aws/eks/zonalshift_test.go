package eks_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestShifts: Shifts returns the shifts of users and of AWS only while they are in force.
func TestShifts(t *testing.T) {
	t.Parallel()
	start := time.Now().UTC().Truncate(time.Second)
	now := start
	server := &emulator.Server{World: &world.World{}, Now: func() time.Time { return now }}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL),
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	var region *world.Region
	var arn string
	server.Do(func(w *world.World, now time.Time) {
		region = w.Region(emulator.DefaultAccount, "us-east-1")
		made, err := region.EKS.CreateCluster(now, ekscluster.Cluster{Name: "prod"})
		if err != nil {
			t.Fatal(err)
		}
		arn = made.ARN
	})
	d := eks.NewZonalShifts(cfg, arn)
	if _, err := d.Shifts(t.Context(), now); !awserr.Is(err, awserr.Misconfigured) || !strings.Contains(err.Error(), "--zonal-shift-config") {
		t.Fatalf("before zonal shift is enabled: %v, want Misconfigured and the command that enables it", err)
	}
	_, err := awseks.NewFromConfig(cfg).UpdateClusterConfig(t.Context(), &awseks.UpdateClusterConfigInput{
		Name: aws.String("prod"), ZonalShiftConfig: &ekstypes.ZonalShiftConfigRequest{Enabled: aws.Bool(true)}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want ...eks.Shift) {
		t.Helper()
		got, err := d.Shifts(t.Context(), now)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	check("no shift")
	user := arczonalshift.NewFromConfig(cfg)
	startShift := func(zone, duration string) string {
		out, err := user.StartZonalShift(t.Context(), &arczonalshift.StartZonalShiftInput{
			ResourceIdentifier: aws.String(arn), AwayFrom: aws.String(zone), ExpiresIn: aws.String(duration), Comment: aws.String("test")})
		if err != nil {
			t.Fatal(err)
		}
		return *out.ZonalShiftId
	}
	id := startShift("use1-az2", "2h")
	check("a user's shift", eks.Shift{ZoneID: "use1-az2", Until: start.Add(2 * time.Hour)})
	if _, err := user.CancelZonalShift(t.Context(), &arczonalshift.CancelZonalShiftInput{ZonalShiftId: aws.String(id)}); err != nil {
		t.Fatal(err)
	}
	check("the user's shift was canceled")
	startShift("use1-az1", "30m")
	now = now.Add(31 * time.Minute)
	check("the user's shift has expired")
	server.Do(func(_ *world.World, now time.Time) {
		if err := region.ZonalShifts.StartAutoshift(now, arn, "use1-az3"); err != nil {
			t.Error(err)
		}
	})
	check("AWS's autoshift", eks.Shift{ZoneID: "use1-az3"})
	startShift("use1-az1", "1h")
	check("a user's shift overrides AWS's autoshift", eks.Shift{ZoneID: "use1-az1", Until: now.Add(time.Hour)})
	server.Do(func(*world.World, time.Time) { region.ZonalShifts.EndAutoshift(arn) })
	check("AWS's autoshift has ended", eks.Shift{ZoneID: "use1-az1", Until: now.Add(time.Hour)})

	server.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "arc-zonal-shift:GetManagedResource"}}
	})
	if _, err := d.Shifts(t.Context(), now); !awserr.Is(err, awserr.Denied) {
		t.Errorf("without permission: %v, want Denied", err)
	}
}

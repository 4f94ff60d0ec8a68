package eks_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

func TestFactsAndEntries(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	w, estate, err := world.New(now, world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	server := &emulator.Server{World: w}
	srv := httptest.NewServer(server)
	t.Cleanup(srv.Close)
	if _, err := w.Account(emulator.DefaultAccount).CreateRole(now, identity.Role{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	d, err := eks.New(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Facts(t.Context()); !awserr.Is(err, awserr.Gone) || !strings.Contains(err.Error(), "prod") {
		t.Errorf("Facts before the cluster exists: %v, want Gone", err)
	}
	nodeRole := "arn:aws:iam::" + emulator.DefaultAccount + ":role/node"
	server.Do(func(w *world.World, now time.Time) {
		_, err := estate.Region.EKS.CreateCluster(now,
			ekscluster.Cluster{Name: "prod", Version: "1.33", Endpoint: "https://example.com", CA: "Q0E=", AuthMode: ekscluster.AuthBoth,
				VPCID: estate.VPC.ID, ClusterGroupID: estate.ClusterSG.ID, SubnetIDs: []string{"subnet-b", "subnet-a"},
				Issuer: "https://oidc.example.com/id/X"})
		if err != nil {
			t.Error(err)
		}
		if _, err := estate.Region.EKS.CreateAccessEntry(now, "prod",
			ekscluster.AccessEntry{Principal: nodeRole, Kind: ekscluster.EntryEC2Linux}); err != nil {
			t.Error(err)
		}
	})
	got, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type comparedFacts struct {
		Version, Endpoint, CA, CIDR, VPC, Group, Issuer, Mode string
		Subnets                                               []string
	}
	// The emulator chooses the CIDR.
	want := comparedFacts{"1.33", "https://example.com", "Q0E=", "10.100.0.0/16", estate.VPC.ID, estate.ClusterSG.ID,
		"https://oidc.example.com/id/X", "API_AND_CONFIG_MAP", []string{"subnet-a", "subnet-b"}}
	if diff := cmp.Diff(want, comparedFacts{got.Version, got.Endpoint, got.CA, got.ServiceCIDR, got.VPC, got.SecurityGroup,
		got.Issuer, got.AuthMode, got.Subnets}); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	entries, err := d.Entries(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Principal != nodeRole || entries[0].Type != "EC2_LINUX" || len(entries[0].Groups) == 0 {
		t.Errorf("entries %+v, %v; want the EC2_LINUX entry of the node role, with groups", entries, err)
	}
	if _, err := d.Entry(t.Context(), nodeRole+"x"); !awserr.Is(err, awserr.Gone) {
		t.Errorf("Entry of a principal without an entry: %v, want Gone", err)
	}
}

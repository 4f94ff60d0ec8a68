package collector_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/eks"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/checks"
	"github.com/joiner-sh/joiner/internal/doctor/collector"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

type testAccount struct {
	server  *emulator.Server
	estate  world.ClusterResources
	clients collector.Clients
}

func newTestAccount(t *testing.T) testAccount {
	t.Helper()
	now := time.Now().UTC()
	w, estate, err := world.New(now, world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	account := w.Account(emulator.DefaultAccount)
	const trust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":["SERVICE"]},"Action":"sts:AssumeRole"}}`
	for name, service := range map[string]string{"node": "ec2.amazonaws.com", "fargate": "eks-fargate-pods.amazonaws.com"} {
		if _, err := account.CreateRole(now, identity.Role{Name: name, TrustPolicy: strings.Replace(trust, "SERVICE", service, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := account.AttachPolicy("node", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"); err != nil {
		t.Fatal(err)
	}
	_, err = estate.Region.EKS.CreateCluster(now,
		ekscluster.Cluster{Name: "prod", Version: "1.33", Endpoint: "https://example.com", CA: "Q0E=", AuthMode: ekscluster.AuthBoth,
			VPCID: estate.VPC.ID, ClusterGroupID: estate.ClusterSG.ID})
	if err != nil {
		t.Fatal(err)
	}
	for role, kind := range map[string]string{"node": ekscluster.EntryEC2Linux, "fargate": ekscluster.EntryFargateLinux} {
		if _, err := estate.Region.EKS.CreateAccessEntry(now, "prod", ekscluster.AccessEntry{Principal: arn(role), Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = estate.Region.EKS.CreateFargateProfile(now, "prod",
		ekscluster.FargateProfile{Name: "system", Role: arn("fargate"), SubnetIDs: []string{estate.PrivateSubnets[0].ID},
			Selectors: []ekscluster.FargateSelector{{Namespace: "kube-system"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := testAccount{server: &emulator.Server{World: w}, estate: estate}
	srv := httptest.NewServer(s.server)
	t.Cleanup(srv.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
	k, err := eks.New(cfg, "prod")
	if err != nil {
		t.Fatal(err)
	}
	e, err := ec2.New(cfg, ec2.Cluster{Name: "prod", UID: "uid"})
	if err != nil {
		t.Fatal(err)
	}
	s.clients = collector.Clients{EKS: k, IAM: iam.New(cfg, iam.Cluster{Name: "prod"}), EC2: e, Images: ami.New(cfg),
		Network: vpc.New(cfg), Cluster: "prod", Region: "us-east-1", NoKube: "there is no kubeconfig"}
	return s
}

func arn(role string) string { return "arn:aws:iam::" + emulator.DefaultAccount + ":role/" + role }

// TestCollect: without faults of AWS, all items of AWS are known, also without Kubernetes.
func TestCollect(t *testing.T) {
	t.Parallel()
	s := newTestAccount(t)
	e := collector.Collect(t.Context(), s.clients)
	for what, known := range map[string]bool{
		"cluster": e.Cluster.Known(), "caller": e.Caller.Known(), "entries": e.Entries.Known(), "node groups": e.NodeGroups.Known(),
		"fargate": e.Fargate.Known(), "vpc": e.VPC.Known(), "subnets": e.Subnets.Known(), "routes": e.Routes.Known(),
		"endpoints": e.Endpoints.Known(), "groups": e.Groups.Known(), "nat": e.NATAddresses.Known(), "images": e.Images.Known(),
		"instances": e.Instances.Known(), "role": e.Roles["fargate"].Known(),
	} {
		if !known {
			t.Errorf("the item %s is not known: %+v", what, e)
		}
	}
	if e.Account != emulator.DefaultAccount || e.Cluster.Value.AuthMode != ekscluster.AuthBoth ||
		e.VPC.Value != (diagnosis.VPC{ID: s.estate.VPC.ID, DNSSupport: true, DNSHostnames: true}) {
		t.Errorf("account %s, cluster %+v, VPC %+v; want those of the test account", e.Account, e.Cluster.Value, e.VPC.Value)
	}
	if r := e.Roles["node"].Value; r.ARN != arn("node") || !slices.Equal(r.Trusts, []string{"ec2.amazonaws.com"}) ||
		len(r.Policies) != 1 || r.Created.IsZero() {
		t.Errorf("role %+v, want trust of EC2, one policy and a creation time", r)
	}
	if p := e.Fargate.Value; len(p) != 1 || p[0].Role != arn("fargate") || len(p[0].Selectors) != 1 ||
		p[0].Selectors[0].Namespace != "kube-system" {
		t.Errorf("Fargate profiles %+v, want the one for kube-system", p)
	}
	if len(e.Subnets.Value) == 0 || len(e.Routes.Value) == 0 || len(e.NATAddresses.Value) == 0 ||
		len(e.Entries.Value) != 2 || e.Entries.Value[0].Created.IsZero() {
		t.Errorf("subnets %d, routes %d, addresses %v, entries %+v; want some of each, and 2 entries with creation times",
			len(e.Subnets.Value), len(e.Routes.Value), e.NATAddresses.Value, e.Entries.Value)
	}
	if g := e.Groups.Value; !slices.ContainsFunc(g,
		func(g diagnosis.Group) bool { return g.ID == s.estate.NodeSG.ID && len(g.In) > 0 && len(g.Out) > 0 }) {
		t.Errorf("groups %+v, want that of the nodes with rules in both directions", g)
	}
	if !e.Identity.Is(diagnosis.NotAsked) || e.Identity.Why != "there is no kubeconfig" {
		t.Errorf("identity %+v, want it not asked because there is no kubeconfig", e.Identity)
	}
	if findings := diagnosis.Actionable(checks.Diagnose(e)); len(findings) > 0 {
		t.Errorf("findings %+v, want none", findings)
	}
}

// TestAbsent: an item whose request fails has the reason, and the items of other requests are known.
func TestAbsent(t *testing.T) {
	t.Parallel()
	s := newTestAccount(t)
	s.server.Do(func(w *world.World, _ time.Time) {
		w.Faults.Denials = []world.Denial{{Call: "eks:ListAccessEntries"}, {Call: "iam:ListAttachedRolePolicies"}}
		w.Faults.CallErrors = []*world.CallError{{Call: "ec2:DescribeRouteTables", Count: 100, Status: 503, Code: "Unavailable"}}
	})
	e := collector.Collect(t.Context(), s.clients)
	if !e.Entries.Is(diagnosis.Denied) || e.Entries.Why != "eks:ListAccessEntries" {
		t.Errorf("entries %+v, want them denied", e.Entries)
	}
	if r := e.Roles["fargate"]; !r.Is(diagnosis.Denied) || r.Why != "iam:ListAttachedRolePolicies" {
		t.Errorf("role %+v, want it denied", r)
	}
	if !e.Routes.Is(diagnosis.Failed) || !strings.Contains(e.Routes.Why, "Unavailable") {
		t.Errorf("routes %+v, want them failed with Unavailable", e.Routes)
	}
	if !e.Subnets.Known() || !e.Groups.Known() {
		t.Error("subnets or security groups are absent, want them known")
	}
	s.clients.Cluster = "staging"
	s.clients.EKS, _ = eks.New(aws.Config{Region: "us-east-1"}, "staging")
	s.clients.IAM = iam.New(aws.Config{Region: "us-east-1"}, iam.Cluster{Name: "staging"})
	s.clients.ItemTimeout = time.Nanosecond // every request times out
	if e := collector.Collect(t.Context(), s.clients); !e.Cluster.Is(diagnosis.Failed) || e.Cluster.Why != "there was no answer in time" {
		t.Errorf("cluster %+v, want it failed by timeout", e.Cluster)
	}
	if e := collector.Collect(t.Context(),
		collector.Clients{NoAWS: "no credentials", NoKube: "no kubeconfig"}); !e.Cluster.Is(diagnosis.NotAsked) ||
		e.Groups.Why != "no credentials" || e.Instances.Why != "no credentials" {
		t.Errorf("without any client: %+v, want all items not asked, with the reason", e)
	}
}

// TestMissingCluster: the item of a cluster that does not exist is Missing, not Failed.
func TestMissingCluster(t *testing.T) {
	t.Parallel()
	s := newTestAccount(t)
	s.server.Do(func(*world.World, time.Time) {
		if _, err := s.estate.Region.EKS.DeleteCluster("prod"); err != nil {
			t.Error(err)
		}
	})
	if e := collector.Collect(t.Context(), s.clients); !e.Cluster.Is(diagnosis.Missing) || e.VPC.Why != "the cluster's VPC is not known" {
		t.Errorf("cluster %+v, VPC %+v; want a missing cluster and an unknown VPC", e.Cluster, e.VPC)
	}
}

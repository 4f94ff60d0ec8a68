package ec2_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const (
	region      = "us-east-1"
	clusterName = "prod"
)

type fixture struct {
	*emulator.Server
	cfg    aws.Config
	estate world.ClusterResources
	image  map[string]string // IDs of AL2023 images, by architecture: amd64, arm64
}

// newFixture emulates a region that offers the types and has an instance profile "node".
func newFixture(t *testing.T, types ...string) *fixture {
	t.Helper()
	now := time.Now().UTC()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	setup := world.Setup{Account: emulator.DefaultAccount, Region: region, Cluster: clusterName}
	prices, err := table.Region(region)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range types {
		f, ok := table.Facts(typ)
		if !ok {
			t.Fatalf("the embedded table lacks %s", typ)
		}
		setup.Stock = append(setup.Stock, world.OfferedType{Facts: f, OnDemand: prices.OnDemand[typ]})
	}
	w, estate, err := world.New(now, setup)
	if err != nil {
		t.Fatal(err)
	}
	account := w.Account(emulator.DefaultAccount)
	if _, err := account.CreateRole(now, identity.Role{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	if _, err := account.CreateProfile(now, identity.Profile{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	if err := account.AddRoleToProfile("node", "node"); err != nil {
		t.Fatal(err)
	}
	s := &fixture{Server: &emulator.Server{World: w}, estate: estate, image: map[string]string{}}
	for arch, path := range map[string]string{"amd64": "x86_64", "arm64": "arm64"} {
		p, err := estate.Region.SSM.Parameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/" + path + "/standard/recommended/image_id")
		if err != nil {
			t.Fatal(err)
		}
		s.image[arch] = p.Value
	}
	srv := httptest.NewServer(s.Server)
	t.Cleanup(srv.Close)
	s.cfg = config(srv.URL)
	return s
}

func config(url string) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}
}

func (s *fixture) client(t *testing.T, uid string) *ec2.Client {
	t.Helper()
	d, err := ec2.New(s.cfg, ec2.Cluster{Name: clusterName, UID: uid, Account: emulator.DefaultAccount})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request returns a request for an on-demand instance of one of the choices.
func (s *fixture) request(claim string, choices ...ec2.Choice) ec2.LaunchRequest {
	return ec2.LaunchRequest{Claim: claim, ClaimUID: "uid-of-" + claim, Attempt: 1, NodePool: "apps", NodeClass: "default",
		CapacityType: catalog.OnDemand, Tags: map[string]string{"team": "a"},
		Groups: []ec2.Group{{Blueprint: s.blueprint("amd64"), Choices: choices}}}
}

func (s *fixture) blueprint(arch string) ec2.Blueprint {
	return ec2.Blueprint{ImageID: s.image[arch], UserData: []byte("#!/bin/sh\necho hello\n"), Profile: "node",
		SecurityGroups: []string{s.estate.NodeSG.ID},
		Disks:          []ec2.Disk{{Device: "/dev/xvda", GiB: 20, Type: "gp3", Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}},
		Metadata:       ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"}}
}

// choice returns the type in zone n, counted from 0.
func (s *fixture) choice(typ string, n int) ec2.Choice {
	subnet := s.estate.PrivateSubnets[n]
	return ec2.Choice{InstanceType: typ, Zone: subnet.Zone.Name, SubnetID: subnet.ID, Price: catalog.Dollar / 10}
}

func (s *fixture) change(f func(r *world.Region, w *world.World)) {
	s.Do(func(w *world.World, _ time.Time) { f(s.estate.Region, w) })
}

// liveInstances returns the emulator's instances that are pending or running.
func (s *fixture) liveInstances() []world.Instance {
	var out []world.Instance
	s.change(func(r *world.Region, _ *world.World) {
		for _, i := range r.Instances.All() {
			if i.State == world.Pending || i.State == world.Running {
				out = append(out, i)
			}
		}
	})
	return out
}

// configLosingAnswer returns the configuration of a client. The emulator carries out the client's n-th call of an
// action, but the connection breaks before the answer.
func (s *fixture) configLosingAnswer(t *testing.T, action string, n int64) aws.Config {
	t.Helper()
	var seen atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAction(r, action) && seen.Add(1) == n {
			s.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return config(srv.URL)
}

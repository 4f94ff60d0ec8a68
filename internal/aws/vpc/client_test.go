package vpc_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// newClient emulates a region with subnets and returns a client, the resources of the region, and the emulated world.
func newClient(t *testing.T) (*vpc.Client, world.ClusterResources, *world.World) {
	t.Helper()
	w, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&emulator.Server{World: w})
	t.Cleanup(srv.Close)
	return vpc.New(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL),
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "secret", "")}), estate, w
}

func TestSubnets(t *testing.T) {
	t.Parallel()
	d, e, _ := newClient(t)
	e.PrivateSubnets[1].Free = 9000
	otherVPC, err := e.Region.Network.CreateVPC("10.9.0.0/16", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := e.Region.Network.CreateSubnet(otherVPC.ID, e.PrivateSubnets[0].Zone.Name, "10.9.0.0/24",
		map[string]string{"karpenter.sh/discovery": "prod"})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := e.PrivateSubnets[0].ID, e.PrivateSubnets[1].ID, e.PrivateSubnets[2].ID
	if c < a { // b has the most free addresses, so it is first; the others are sorted by ID
		a, c = c, a
	}
	discovery := vpc.Term{Tags: map[string]string{"karpenter.sh/discovery": "prod"}}
	for name, s := range map[string]struct {
		vpc           string
		terms         []vpc.Term
		want          []string
		wantUnmatched []string
	}{
		"tag, in the VPC":       {e.VPC.ID, []vpc.Term{discovery}, []string{b, a, c}, nil},
		"any value":             {e.VPC.ID, []vpc.Term{{Tags: map[string]string{"karpenter.sh/discovery": "*"}}}, []string{b, a, c}, nil},
		"no VPC given":          {"", []vpc.Term{{ID: foreign.ID}}, []string{foreign.ID}, nil},
		"subnet of another VPC": {e.VPC.ID, []vpc.Term{{ID: foreign.ID}}, nil, []string{"id=" + foreign.ID + " (only in " + otherVPC.ID + ")"}},
		"two terms, one subnet": {e.VPC.ID, []vpc.Term{{ID: b}, discovery}, []string{b, a, c}, nil},
		"one term without a match": {e.VPC.ID, []vpc.Term{{ID: b}, {Tags: map[string]string{"x": "y", "a": "b"}}}, []string{b},
			[]string{"tags{a=b,x=y}"}},
		"no such id": {e.VPC.ID, []vpc.Term{{ID: "subnet-0123456789abcdef0"}}, nil, []string{"id=subnet-0123456789abcdef0"}},
		"empty term": {e.VPC.ID, []vpc.Term{{}}, nil, []string{"tags{}"}},
		"only one of two tags matches": {e.VPC.ID,
			[]vpc.Term{{Tags: map[string]string{"karpenter.sh/discovery": "prod", "Name": "no-such-name"}}}, nil,
			[]string{"tags{Name=no-such-name,karpenter.sh/discovery=prod}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, unmatched, err := d.Subnets(t.Context(), s.vpc, s.terms)
			if err != nil {
				t.Fatal(err)
			}
			var ids, missed []string
			for _, subnet := range got {
				ids = append(ids, subnet.ID)
				if subnet.Zone == "" || subnet.ZoneID == "" || subnet.VPC == "" || subnet.Free == 0 {
					t.Errorf("a field of the subnet is missing: %+v", subnet)
				}
			}
			for _, u := range unmatched {
				missed = append(missed, u.String())
			}
			if diff := cmp.Diff(s.want, ids); diff != "" {
				t.Errorf("subnets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s.wantUnmatched, missed); diff != "" {
				t.Errorf("unmatched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	d, e, _ := newClient(t)
	for name, s := range map[string]struct {
		term vpc.Term
		want string // ID of the group; empty: none
	}{
		"tag":          {vpc.Term{Tags: map[string]string{"karpenter.sh/discovery": "prod"}}, e.NodeSG.ID},
		"name":         {vpc.Term{Name: e.ClusterSG.Name}, e.ClusterSG.ID},
		"id":           {vpc.Term{ID: e.NodeSG.ID}, e.NodeSG.ID},
		"no such name": {vpc.Term{Name: "no-such-group"}, ""},
		"no such ID":   {vpc.Term{ID: "sg-0123456789abcdef0"}, ""},
	} {
		got, unmatched, err := d.Groups(t.Context(), e.VPC.ID, []vpc.Term{s.term})
		if err != nil {
			t.Fatal(err)
		}
		found := len(got) == 1 && got[0].ID == s.want && got[0].Name != "" && got[0].VPC == e.VPC.ID && unmatched == nil
		missed := len(got) == 0 && s.want == "" && len(unmatched) == 1
		if !found && !missed {
			t.Errorf("%s: %v, unmatched %v; want %q", name, got, unmatched, s.want)
		}
	}
}

func TestPerZone(t *testing.T) {
	t.Parallel()
	all := []vpc.Subnet{{ID: "s1", Zone: "a", Free: 5}, {ID: "s3", Zone: "a", Free: 9}, {ID: "s2", Zone: "a", Free: 9}, {ID: "s4", Zone: "b"}}
	got := vpc.PerZone(all, nil)
	if got["a"].ID != "s2" || got["b"].ID != "s4" || len(got) != 2 {
		t.Errorf("subnets by zone: %v, want s2 in a and s4 in b", got)
	}
	got = vpc.PerZone(all, func(s vpc.Subnet) bool { return s.Free == 0 || s.ID == "s2" })
	if got["a"].ID != "s3" || len(got) != 1 {
		t.Errorf("subnets by zone, with s2 and s4 skipped: %v, want only s3 in a", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := []vpc.Subnet{{ID: "s1", Zone: "a", Free: 10}, {ID: "s2", Zone: "a", Free: 8}}
	var a vpc.Addresses
	a.Take(now, "s1", 4)
	a.Take(now.Add(30*time.Second), "s1", 100)
	if got := vpc.PerZone(a.Left(now, all), nil)["a"]; got.ID != "s2" {
		t.Errorf("after launches took 104 addresses of s1, the next launch uses %s, want s2", got.ID)
	}
	if got := a.Left(now.Add(time.Minute), all)[0].Free; got != 0 {
		t.Errorf("after a minute %d addresses are left in s1, want 0: 100 of 10 were taken 30 s ago", got)
	}
	if got := a.Left(now.Add(2*time.Minute), all)[0].Free; got != 10 {
		t.Errorf("after two minutes %d addresses are left in s1, want EC2's number, 10", got)
	}
}

func TestAddressesHeld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := []vpc.Subnet{{ID: "s1", Zone: "a", Free: 10}, {ID: "s2", Zone: "b", Free: 8}}
	free := func(a *vpc.Addresses, at time.Time) [2]int {
		left := a.Left(at, all)
		return [2]int{left[0].Free, left[1].Free}
	}
	var a vpc.Addresses
	a.Release("unknown")
	a.Hold(now, "one", map[string]int{"s1": 3, "s2": 3})
	a.Hold(now.Add(time.Minute), "two", map[string]int{"s1": 4})
	if got := free(&a, now.Add(time.Minute)); got != [2]int{3, 5} {
		t.Errorf("two launches in progress leave %v addresses, want 3 and 5", got)
	}
	a.Hold(now.Add(time.Minute), "two", map[string]int{"s2": 4})
	if got := free(&a, now.Add(time.Minute)); got != [2]int{7, 1} {
		t.Errorf("after the second launch held addresses of another subnet, %v are left, want 7 and 1", got)
	}
	a.Release("two")
	a.Take(now.Add(time.Minute), "s2", 4)
	if got := free(&a, now.Add(time.Minute)); got != [2]int{7, 1} {
		t.Errorf("after the second launch took its addresses, %v are left, want 7 and 1", got)
	}
	if got := free(&a, now.Add(5*time.Minute)); got != [2]int{10, 8} {
		t.Errorf("after five minutes %v addresses are left, want 10 and 8: the reservations have expired", got)
	}
}

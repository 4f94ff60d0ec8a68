package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
)

// TestLaunchesShareSubnets: concurrent launches do not all use the subnet that has the most free addresses, although
// EC2 does not count their addresses yet. A launch that has ended frees the addresses that were reserved for it.
func TestLaunchesShareSubnets(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium") // a t3.medium node takes 18 addresses: its own and those of 17 pods
	r.reconcileClassAndPool(t)
	for i := range 6 {
		r.addPendingPod(t, fmt.Sprint("web-", i), "1500m", "2Gi") // fills a node
	}
	r.plan(t)
	claims := r.claims(t)
	if len(claims) != 6 {
		t.Fatalf("%d claims, want 6", len(claims))
	}
	first, second := r.estate.PrivateSubnets[0], r.estate.PublicSubnets[0]
	zone := first.Zone.Name
	class := r.class(t)
	class.Status.Subnets = []awsv1.Subnet{{ID: first.ID, Zone: zone}, {ID: second.ID, Zone: zone}}
	r.Claims.Offers.NoteSubnets(class.Name, []vpc.Subnet{{ID: first.ID, Zone: zone, Free: 40}, {ID: second.ID, Zone: zone, Free: 30}})
	now := time.Now()
	requestFor := func(claim *karpv1.NodeClaim) (subnet string, _ ec2.LaunchRequest) {
		t.Helper()
		request, err := r.Claims.Offers.Request(claim, class, 0, now)
		if err != nil {
			t.Fatal(err)
		}
		return request.Groups[0].Choices[0].SubnetID, request
	}
	var got []string
	var requests []ec2.LaunchRequest
	for i := range 4 {
		subnet, request := requestFor(&claims[i])
		got, requests = append(got, subnet), append(requests, request)
	}
	if want := []string{first.ID, second.ID, first.ID, second.ID}; !slices.Equal(got, want) {
		t.Errorf("four concurrent launches use subnets %v, want %v", got, want)
	}
	// 4 addresses are left in the first subnet, none in the second. The fourth launch fails, and frees 12 in the
	// second.
	r.Claims.Offers.EndLaunch(&claims[3])
	if subnet, _ := requestFor(&claims[4]); subnet != second.ID {
		t.Errorf("the launch after a failed one uses subnet %s, want %s", subnet, second.ID)
	}
	// EC2 places the third launch in the second subnet. This frees the addresses that were reserved for it in the
	// first.
	r.Claims.Offers.NoteLaunched(now, ec2.Instance{Type: "t3.medium", Zone: zone, SubnetID: second.ID}, &requests[2])
	if subnet, _ := requestFor(&claims[5]); subnet != first.ID {
		t.Errorf("the launch after one that EC2 placed in the other subnet uses %s, want %s", subnet, first.ID)
	}
}

// TestFailedLaunchHoldsNoAddresses: a launch that EC2 has definitely refused frees the addresses reserved for it.
func TestFailedLaunchHoldsNoAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium") // a node takes 18 addresses
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "1500m", "2Gi")
	r.plan(t)
	claim := onlyClaim(t, r)
	all := r.subnets()
	if _, err := r.Claims.Offers.Request(claim, r.class(t), 0, r.now()); err != nil {
		t.Fatal(err)
	}
	if left := r.Claims.Offers.Taken.Left(r.now(), all); left[0].Free != all[0].Free-18 {
		t.Errorf("during the launch %d of %d addresses are free, want 18 less", left[0].Free, all[0].Free)
	}
	v := nodeclaim.View{Claim: claim, Class: r.class(t)}
	a := nodeclaim.Attempt{Request: &ec2.LaunchRequest{}}
	if _, err := r.Claims.LaunchFailed(t.Context(), v, a, ec2.Launch{Spent: true},
		awserr.FromCode("CreateFleet", "InsufficientInstanceCapacity", ""), r.now()); err != nil {
		t.Fatal(err)
	}
	if left := r.Claims.Offers.Taken.Left(r.now(), all); left[0].Free != all[0].Free {
		t.Errorf("after the failed launch %d of %d addresses are free, want all", left[0].Free, all[0].Free)
	}
}

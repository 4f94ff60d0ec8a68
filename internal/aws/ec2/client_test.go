package ec2_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// isAction reports whether r calls the action of EC2. The body of r stays readable.
func isAction(r *http.Request, action string) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte("Action="+action+"&"))
}

// TestLife launches an instance, reads it and terminates it.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	if err := d.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	launch, err := d.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	launched := launch.Instance
	seen, err := d.Instance(t.Context(), launched.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantTags := map[string]string{"Name": "apps-1", "team": "a", "kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod",
		"karpenter.sh/nodepool": "apps", "karpenter.sh/nodeclaim": "apps-1", "karpenter.k8s.aws/ec2nodeclass": "default", "joiner.sh/cluster-uid": "uid-1"}
	for key, want := range wantTags {
		if seen.Tags[key] != want {
			t.Errorf("tag %s is %q, want %q", key, seen.Tags[key], want)
		}
	}
	type facts struct{ Type, Zone, Subnet, Image, Capacity, Claim string }
	want := facts{"m5.large", "us-east-1a", s.estate.PrivateSubnets[0].ID, s.image["amd64"], catalog.OnDemand, "apps-1"}
	for what, i := range map[string]ec2.Instance{"returned by Launch": launched, "returned by Instance": seen} {
		if diff := cmp.Diff(want, facts{i.Type, i.Zone, i.SubnetID, i.ImageID, i.CapacityType, i.Claim()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if seen.Owner != ec2.Ours || seen.PrivateDNS == "" || seen.Launched.IsZero() || !strings.HasSuffix(seen.Profile, "/node") {
		t.Errorf("Instance returned %+v, want owner Ours, a private DNS name, a launch time and the profile", seen)
	}
	emulated := s.liveInstances()[0]
	if emulated.UserData != "#!/bin/sh\necho hello\n" || emulated.Metadata.Tokens != "required" {
		t.Errorf("the instance has user data %q, metadata %+v; want those of the blueprint", emulated.UserData, emulated.Metadata)
	}
	s.AppendConsole(launched.ID, "hello from the console\n")
	if text, err := d.Console(t.Context(), launched.ID); err != nil || text != "hello from the console\n" {
		t.Errorf("console %q, %v; want the appended line", text, err)
	}
	for range 2 { // in the second call the instance is already terminating, which is not an error
		if err := d.Terminate(t.Context(), launched.ID, ec2.ByTags); err != nil {
			t.Fatal(err)
		}
	}
	if left := s.liveInstances(); len(left) != 0 {
		t.Errorf("%d instances still run after Terminate", len(left))
	}
	if n, err := d.DeleteTemplates(t.Context(), "default"); n != 1 || err != nil {
		t.Errorf("deleted %d launch templates, %v; want 1", n, err)
	}
}

func TestLaunchIsIdempotent(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	r := s.request("apps-1", s.choice("m5.large", 0), s.choice("m5.large", 1))
	first, err := s.client(t, "uid-1").Launch(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	// Another process of the same cluster repeats the call after a crash.
	again, err := s.client(t, "uid-1").Launch(t.Context(), r)
	if err != nil || again.Instance.ID != first.Instance.ID {
		t.Fatalf("the second launch gave %s, %v; want %s", again.Instance.ID, err, first.Instance.ID)
	}
	// The same attempt with other choices fails with InDoubt. LaunchedFor then finds the instance.
	r.Groups[0].Choices = r.Groups[0].Choices[:1]
	launch, err := s.client(t, "uid-1").Launch(t.Context(), r)
	if !awserr.Is(err, awserr.InDoubt) || launch.Spent {
		t.Fatalf("other choices for the same attempt: %+v, %v; want InDoubt and an attempt that is not spent", launch, err)
	}
	found, err := s.client(t, "uid-1").LaunchedFor(t.Context(), "apps-1")
	if err != nil || len(found) != 1 || found[0].ID != first.Instance.ID {
		t.Errorf("LaunchedFor returned %v, %v; want only %s", found, err, first.Instance.ID)
	}
	if n := len(s.liveInstances()); n != 1 {
		t.Errorf("%d instances live, want 1", n)
	}
}

// TestLaunchLosesTheAnswer: EC2 launches the instance, but the connection breaks before the response. Launch returns
// the instance nevertheless.
func TestLaunchLosesTheAnswer(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	s.cfg = s.configLosingAnswer(t, "CreateFleet", 1)
	launch, err := s.client(t, "uid-1").Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	if left := s.liveInstances(); len(left) != 1 || left[0].ID != launch.Instance.ID {
		t.Errorf("%d instances live, want only %s, which Launch returned", len(left), launch.Instance.ID)
	}
}

func TestShortage(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large", "m6i.large")
	s.change(func(r *world.Region, _ *world.World) { r.Capacity.Limit(world.CapacityPool{Type: "m5.large"}, 0) })
	d := s.client(t, "uid-1")

	// One of two offerings is short: an instance of the other is launched, and the shortage is returned.
	launch, err := d.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0), s.choice("m6i.large", 0)))
	if err != nil || launch.Instance.Type != "m6i.large" {
		t.Fatalf("launched %q, %v; want m6i.large", launch.Instance.Type, err)
	}
	want := []ec2.Shortage{{CapacityType: catalog.OnDemand, InstanceType: "m5.large", Zone: "us-east-1a", Reason: "InsufficientCapacity"}}
	if diff := cmp.Diff(want, launch.Shortages); diff != "" {
		t.Errorf("shortages (-want +got):\n%s", diff)
	}

	// All offerings are short.
	launch, err = d.Launch(t.Context(), s.request("apps-2", s.choice("m5.large", 0), s.choice("m5.large", 1)))
	if !awserr.Is(err, awserr.Shortage) || !launch.Spent || len(launch.Shortages) != 2 {
		t.Fatalf("%+v, %v; want two shortages and a spent attempt", launch, err)
	}
	if line := err.Error(); !strings.Contains(line, "apps-2") ||
		!strings.Contains(line, "no on-demand capacity for m5.large in us-east-1a, m5.large in us-east-1b") {
		t.Errorf("error %s, want one that names apps-2 and both offerings", line)
	}

	// Capacity is available again. The same attempt stays spent; the next attempt launches an instance.
	s.change(func(r *world.Region, _ *world.World) { r.Capacity.RemoveLimit(world.CapacityPool{Type: "m5.large"}) })
	r := s.request("apps-2", s.choice("m5.large", 0), s.choice("m5.large", 1))
	if launch, err = d.Launch(t.Context(), r); !launch.Spent {
		t.Fatalf("a spent attempt gave %+v, %v; want Spent", launch, err)
	}
	r.Attempt = 2
	if launch, err = d.Launch(t.Context(), r); err != nil || launch.Instance.Type != "m5.large" {
		t.Fatalf("the next attempt gave %+v, %v; want an m5.large", launch, err)
	}
}

func TestShortageOfQuotaAndAddresses(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	s.change(func(r *world.Region, _ *world.World) { s.estate.PrivateSubnets[0].Free = 0 })
	launch, err := d.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0)))
	if e := awserr.Of(err); e == nil || e.Reason != "InsufficientFreeAddressesInSubnet" || len(launch.Shortages) != 1 ||
		launch.Shortages[0].SubnetID != s.estate.PrivateSubnets[0].ID {
		t.Fatalf("no addresses: %+v, %v; want a shortage of the subnet", launch, err)
	}
	s.change(func(r *world.Region, _ *world.World) {
		r.Capacity.Quotas = map[world.Quota]int64{world.QuotaOf("m5.large", false): 1} // vCPU, and an m5.large has 2
	})
	launch, err = d.Launch(t.Context(), s.request("apps-2", s.choice("m5.large", 1)))
	if e := awserr.Of(err); e == nil || e.Kind != awserr.Shortage || e.Reason != "VCPULimitExceeded" ||
		!strings.Contains(err.Error(), "Service Quotas") {
		t.Fatalf("no quota: %v, want VCPULimitExceeded and Service Quotas", err)
	}
	var known ec2.Shortages
	known.Note(time.Now(), launch.Shortages...)
	if known.Until(time.Now(), "m5.large", "us-east-1c", catalog.OnDemand).IsZero() {
		t.Errorf("shortages %+v, want a shortage in all zones, which share the quota", launch.Shortages)
	}
}

func TestLaunchMisconfigured(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large", "m6g.large")
	d := s.client(t, "uid-1")
	for what, c := range map[string]struct {
		change     func(*ec2.LaunchRequest)
		wantReason string
		wantText   string
	}{
		"unknown image": {func(r *ec2.LaunchRequest) { r.Groups[0].Blueprint.ImageID = "ami-0123456789abcdef0" },
			"AMINotFound", "amiSelectorTerms"},
		"architecture": {func(r *ec2.LaunchRequest) { r.Groups[0].Choices[0].InstanceType = "m6g.large" },
			"ArchitectureMismatch", "does not match"},
		"unknown subnet": {func(r *ec2.LaunchRequest) { r.Groups[0].Choices[0].SubnetID = "subnet-0123456789abcdef0" },
			"SubnetNotFound", "subnetSelectorTerms"},
		"unknown security group": {func(r *ec2.LaunchRequest) { r.Groups[0].Blueprint.SecurityGroups = []string{"sg-0123456789abcdef0"} },
			"SecurityGroupNotFound", "securityGroupSelectorTerms"},
		"unknown profile": {func(r *ec2.LaunchRequest) { r.Groups[0].Blueprint.Profile = "no-such-profile" },
			"InstanceProfileNameInvalid", "spec.instanceProfile"},
		"reserved tag": {func(r *ec2.LaunchRequest) { r.Tags = map[string]string{"karpenter.sh/nodepool": "x"} },
			"TagValidationFailed", "spec.tags"},
		"no choices":            {func(r *ec2.LaunchRequest) { r.Groups = nil }, "NoChoices", "apps-"},
		"too many choices":      {func(r *ec2.LaunchRequest) { r.Groups[0].Choices = make([]ec2.Choice, ec2.MaxChoices+1) }, "TooManyChoices", "61"},
		"no reservation":        {func(r *ec2.LaunchRequest) { r.CapacityType = catalog.Reserved }, "ReservationMismatch", "reserved"},
		"unknown capacity type": {func(r *ec2.LaunchRequest) { r.CapacityType = "barter" }, "UnknownCapacityType", "barter"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := s.request("apps-"+what, s.choice("m5.large", 0))
			c.change(&r)
			_, err := d.Launch(t.Context(), r)
			e := awserr.Of(err)
			if e == nil || e.Reason != c.wantReason || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("%v\nwant reason %s and %q", err, c.wantReason, c.wantText)
			}
		})
	}
}

// TestLaunchSpotAndTwoArchitectures: a launch has one group per architecture, and EC2 uses the group with capacity.
func TestLaunchSpotAndTwoArchitectures(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large", "m6g.large")
	r := s.request("apps-1", s.choice("m5.large", 0))
	r.CapacityType = catalog.Spot
	r.Groups = append(r.Groups, ec2.Group{Blueprint: s.blueprint("arm64"), Choices: []ec2.Choice{s.choice("m6g.large", 1)}})
	s.change(func(r *world.Region, _ *world.World) { r.Capacity.Limit(world.CapacityPool{Type: "m5.*"}, 0) })
	d := s.client(t, "uid-1")
	launch, err := d.Launch(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := d.Instance(t.Context(), launch.Instance.ID)
	if err != nil || seen.CapacityType != catalog.Spot || seen.Type != "m6g.large" || seen.ImageID != s.image["arm64"] {
		t.Errorf("%+v, %v; want a spot m6g.large from the arm64 image", seen, err)
	}
}

// TestClusterWithSameName: two clusters of one account have the same name. Neither changes the other's resources.
func TestClusterWithSameName(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	a, b := s.client(t, "uid-a"), s.client(t, "uid-b")
	launch, err := a.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Launch(t.Context(), s.request("apps-2", s.choice("m5.large", 0))); err != nil {
		t.Fatal(err)
	}
	for _, proof := range []ec2.Proof{ec2.ByTags, ec2.ByProviderID} {
		err := b.Terminate(t.Context(), launch.Instance.ID, proof)
		if !awserr.Is(err, awserr.Refused) || !strings.Contains(err.Error(), "uid-a") {
			t.Errorf("Terminate(%q) by the cluster with the same name: %v; want a refusal that names uid-a", proof, err)
		}
	}
	all, err := b.Instances(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d instances, %v; want 2", len(all), err)
	}
	for _, i := range all {
		want := ec2.Ours
		if i.ID == launch.Instance.ID {
			want = ec2.SameName
		}
		if i.Owner != want {
			t.Errorf("%s is %s, want %s", i.ID, i.Owner, want)
		}
	}
	if n, err := b.SweepTemplates(t.Context(), func(ec2.Template) bool { return false }); n != 1 || err != nil {
		t.Errorf("the cluster with the same name deleted %d launch templates, %v; want only its own", n, err)
	}
	if left, err := a.Templates(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("%d of our launch templates are left, %v; want 1", len(left), err)
	}
	if found, err := b.LaunchedFor(t.Context(), "apps-1"); err != nil || len(found) != 0 {
		t.Errorf("LaunchedFor of the cluster with the same name: %v, %v; want none", found, err)
	}
	if n := len(s.liveInstances()); n != 2 {
		t.Errorf("%d instances live, want 2", n)
	}
}

// TestLegacy: an instance without the UID tag, such as one of Karpenter, is terminated only with the proof
// ByProviderID.
func TestLegacy(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	launch, err := d.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	id := launch.Instance.ID
	s.change(func(r *world.Region, _ *world.World) {
		if err := r.Tag(time.Now(), []string{id}, nil, []string{ec2.TagUID}); err != nil {
			t.Error(err)
		}
	})
	if err := d.Terminate(t.Context(), id, ec2.ByTags); !awserr.Is(err, awserr.Refused) {
		t.Errorf("Terminate with ByTags: %v, want a refusal", err)
	}
	if err := d.Terminate(t.Context(), id, ec2.ByProviderID); err != nil {
		t.Errorf("Terminate with ByProviderID: %v", err)
	}
	if n := len(s.liveInstances()); n != 0 {
		t.Errorf("%d instances live, want none", n)
	}
}

func TestTerminateUnknown(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	if err := s.client(t, "uid-1").Terminate(t.Context(), "i-0123456789abcdef0", ec2.ByTags); err != nil {
		t.Errorf("Terminate of an instance that EC2 does not know: %v, want no error", err)
	}
	_, err := s.client(t, "uid-1").Instance(t.Context(), "i-0123456789abcdef0")
	if !awserr.Is(err, awserr.Gone) {
		t.Errorf("Instance: %v, want Gone", err)
	}
}

// TestBurst: 60 concurrent claims under EC2's rate limits. Each gets one instance. They share a launch template, and
// EC2 is called at most ten times to read all of them, and ten times to terminate them.
func TestBurst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	s.change(func(_ *world.Region, w *world.World) {
		w.Faults.Throttle = map[string]world.Bucket{"ec2:*": {Size: 50, Refill: 20}, "ec2:Describe*": {Size: 20, Refill: 20}}
	})
	d := s.client(t, "uid-1")
	const claims = 60
	ids := make([]string, claims)
	parallel(claims, func(i int) {
		launch, err := d.Launch(t.Context(), s.request(fmt.Sprint("apps-", i), s.choice("m5.large", i%3)))
		if err != nil {
			t.Error(err)
			return
		}
		ids[i] = launch.Instance.ID
	})
	if n := len(s.liveInstances()); n != claims {
		t.Fatalf("%d instances live, want %d", n, claims)
	}
	parallel(claims, func(i int) {
		if err := d.Terminate(t.Context(), ids[i], ec2.ByTags); err != nil {
			t.Error(err)
		}
	})
	calls := s.Calls()
	if n := len(s.liveInstances()); n != 0 || calls["ec2:CreateLaunchTemplate"] != 1 {
		t.Errorf("%d instances live, %d launch templates made; want 0 and 1", n, calls["ec2:CreateLaunchTemplate"])
	}
	if reads, terminations := calls["ec2:DescribeInstances"], calls["ec2:TerminateInstances"]; reads > 10 || terminations > 10 {
		t.Errorf("%d calls read and %d calls terminate %d instances, want at most 10 each", reads, terminations, claims)
	}
}

// parallel calls f concurrently with 0 to n-1, and waits for all calls.
func parallel(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// TestTemplateDeleted: launches succeed although another client deletes the launch template after each launch.
func TestTemplateDeleted(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	for i := range 3 {
		if _, err := d.Launch(t.Context(), s.request(fmt.Sprint("apps-", i), s.choice("m5.large", 0))); err != nil {
			t.Fatal(err)
		}
		s.change(func(r *world.Region, _ *world.World) {
			for _, template := range r.LaunchTemplates.All() {
				if _, err := r.LaunchTemplates.Delete(template.ID, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if n := len(s.liveInstances()); n != 3 {
		t.Errorf("%d instances live, want 3", n)
	}
}

func TestMarket(t *testing.T) {
	t.Parallel()
	types := []string{"m5.large", "m6g.large", "g5.12xlarge", "inf2.xlarge", "p5.48xlarge", "t3.micro", "m5.metal", "i3.large", "t2.micro"}
	s := newFixture(t, types...)
	s.change(func(_ *world.Region, w *world.World) {
		stock, _ := w.Market(region).Stock("m6g.large")
		stock.Zones = []string{"us-east-1c"}
		w.Market(region).Offer(stock)
	})
	market, err := s.client(t, "uid-1").Market(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if len(market.Facts) != len(types) {
		t.Errorf("%d types, want %d", len(market.Facts), len(types))
	}
	for _, got := range market.Facts {
		want, _ := table.Facts(got.Name)
		got = table.Complete(got)
		want.Unknown = nil // as in all Facts that EC2 returned
		for i := range want.Network.Cards {
			if want.Network.Cards[i].Performance == "" { // EC2 returns the performance, which the table lacks
				got.Network.Cards[i].Performance = ""
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs from what the emulator serves (-want +got):\n%s", got.Name, diff)
		}
	}
	if diff := cmp.Diff([]string{"us-east-1c"}, market.Zones["m6g.large"]); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
}

// TestEventualConsistency: EC2 does not list an instance that it has just launched. Launch returns the instance
// nevertheless, and a second call launches no other instance.
func TestEventualConsistency(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	s.change(func(_ *world.Region, w *world.World) { w.Faults.ReadLag = time.Hour })
	d := s.client(t, "uid-1")
	r := s.request("apps-1", s.choice("m5.large", 0))
	launch, err := d.Launch(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Instance(t.Context(), launch.Instance.ID); !awserr.Is(err, awserr.Gone) {
		t.Errorf("Instance: %v, want Gone", err)
	}
	if all, err := d.Instances(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("Instances: %v, %v; want none", all, err)
	}
	again, err := d.Launch(t.Context(), r)
	if err != nil || again.Instance.ID != launch.Instance.ID || len(s.liveInstances()) != 1 {
		t.Errorf("second call: %s, %v, %d instances; want %s and no other", again.Instance.ID, err, len(s.liveInstances()), launch.Instance.ID)
	}
}

// TestSweptTemplate: a launch whose launch template was deleted creates the template again. A later process that
// repeats the call gets the same instance.
func TestSweptTemplate(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	if _, err := d.Launch(t.Context(), s.request("apps-1", s.choice("m5.large", 0))); err != nil {
		t.Fatal(err)
	}
	s.change(func(region *world.Region, _ *world.World) {
		for _, template := range region.LaunchTemplates.All() {
			if _, err := region.LaunchTemplates.Delete(template.ID, ""); err != nil {
				t.Error(err)
			}
		}
	})
	r := s.request("apps-2", s.choice("m5.large", 0))
	launch, err := d.Launch(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.client(t, "uid-1").Launch(t.Context(), r)
	if err != nil || next.Instance.ID != launch.Instance.ID || len(s.liveInstances()) != 2 {
		t.Errorf("the next process got %s, %v, want %s; %d instances live, want 2", next.Instance.ID, err, launch.Instance.ID, len(s.liveInstances()))
	}
}

// TestPages: Instances returns each instance once, if there are more than fit on one page.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "uid-1")
	const n = 1100 // EC2 returns at most 1000 per page
	r := s.request("apps-0", s.choice("m5.large", 0))
	if _, err := d.Launch(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.change(func(region *world.Region, w *world.World) {
		first := region.Instances.All()[0]
		template := region.LaunchTemplates.All()[0]
		_, err := region.Launches.CreateFleet(time.Now(), world.FleetRequest{OnDemand: n - 1, Tags: world.Tagging{"instance": first.Tags},
			Configs: []world.FleetConfig{{TemplateID: template.ID, Version: "1",
				Overrides: []world.FleetOverride{{InstanceType: "m5.large", SubnetID: first.SubnetID}}}}})
		if err != nil {
			t.Error(err)
		}
	})
	all, err := d.Instances(t.Context())
	if err != nil || len(all) != n {
		t.Fatalf("%d instances, %v; want %d", len(all), err, n)
	}
}

// TestGarbage: an invalid answer becomes an error of one line within five seconds.
func TestGarbage(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>hello from a proxy</html>")
	}))
	t.Cleanup(srv.Close)
	d, err := ec2.New(config(srv.URL), ec2.Cluster{Name: clusterName, UID: "uid-1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if all, err := d.Instances(ctx); !awserr.Is(err, awserr.Transient) {
		t.Errorf("instances: %v, %v; want a transient error: without an error, all instances would seem to be terminated", all, err)
	}
	_, err = d.Market(ctx)
	if e := awserr.Of(err); e == nil || e.Kind != awserr.Transient || strings.Contains(e.Error(), "\n") {
		t.Errorf("market: %v, want a transient error of one line", err)
	}
	if _, err := ec2.New(config(srv.URL), ec2.Cluster{Name: clusterName}); err == nil {
		t.Error("a client without a UID was made")
	}
}

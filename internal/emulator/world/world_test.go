package world_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

const (
	account = "111122223333"
	region  = "us-east-1"
)

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// stock returns two small instance types, and a large one without spot that only zone a offers.
func stock() []world.OfferedType {
	facts := func(name string, vcpus int64, usage ...string) catalog.Facts {
		return catalog.Facts{Name: name, UsageClasses: usage, Processor: catalog.Processor{Architectures: []string{"x86_64"}, VCPUs: vcpus}}
	}
	return []world.OfferedType{
		{Facts: facts("m5.large", 2, "on-demand", "spot"), OnDemand: catalog.Dollar / 10},
		{Facts: facts("m5.xlarge", 4, "on-demand", "spot"), OnDemand: catalog.Dollar / 5},
		{Facts: facts("x1.huge", 64, "on-demand"), OnDemand: catalog.Dollar, Zones: []string{"us-east-1a"}},
	}
}

// newClusterWorld returns a world with one region that is ready for a cluster.
func newClusterWorld(t *testing.T) (*world.World, world.ClusterResources) {
	t.Helper()
	w, e, err := world.New(noon(), world.Setup{Account: account, Region: region, Cluster: "demo", Stock: stock()})
	if err != nil {
		t.Fatal(err)
	}
	return w, e
}

// image returns the id of an AL2023 image.
func image(t *testing.T, r *world.Region) string {
	t.Helper()
	p, err := r.SSM.Parameter("/aws/service/eks/optimized-ami/1.31/amazon-linux-2023/x86_64/standard/recommended/image_id")
	if err != nil {
		t.Fatal(err)
	}
	return p.Value
}

// launchIn launches n instances in the subnet s.
func launchIn(t *testing.T, now time.Time, e world.ClusterResources, s *network.Subnet, typeName string, n int) ([]world.Instance, error) {
	t.Helper()
	return e.Region.Launches.RunInstances(now, world.RunRequest{
		Data: world.TemplateData{ImageID: image(t, e.Region), InstanceType: typeName}, SubnetID: s.ID, Min: n, Max: n,
	})
}

// code returns the code of an AWS error; the text of any other error.
func code(err error) string {
	var apiErr *failure.Error
	if errors.As(err, &apiErr) {
		return apiErr.Code
	}
	return fmt.Sprint(err)
}

// TestSameCallsSameWorld: the same calls in two worlds have the same results, including ids.
func TestSameCallsSameWorld(t *testing.T) {
	t.Parallel()
	runCalls := func() []world.Instance {
		w, e := newClusterWorld(t)
		now := noon()
		for i, s := range e.PrivateSubnets {
			if _, err := launchIn(t, now, e, s, "m5.large", i+1); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Second)
		}
		w.Advance(now)
		w.FailHost(now, e.Region.Instances.All()[2].ID)
		return append(w.Changes(), e.Region.Instances.All()...)
	}
	first, second := runCalls(), runCalls()
	if d := cmp.Diff(first, second); d != "" {
		t.Errorf("two worlds differ:\n%s", d)
	}
	w, _ := newClusterWorld(t)
	w.Seed = "other"
	if w.NewID("i") == (&world.World{}).NewID("i") {
		t.Error("two seeds give the same id")
	}
}

// TestEmptyWorld: calls of the zero value return errors and do not panic.
func TestEmptyWorld(t *testing.T) {
	t.Parallel()
	w := &world.World{}
	r := w.Region(account, "eu-west-1")
	w.Advance(noon())
	_, err := r.Launches.RunInstances(noon(),
		world.RunRequest{Data: world.TemplateData{ImageID: "ami-0", InstanceType: "m5.large"}, Min: 1, Max: 1})
	if code(err) != "InvalidParameterValue" {
		t.Errorf("got %v, want InvalidParameterValue", err)
	}
	if w.Interrupt(noon(), "i-0") || w.FailHost(noon(), "i-0") || w.AppendConsole("i-0", "x") || len(r.Instances.All()) != 0 {
		t.Error("an empty world has instances")
	}
	if _, err := w.InstanceSession(noon(), "i-0"); err == nil {
		t.Error("an unknown instance has credentials")
	}
}

// TestAddresses assigns all addresses of a subnet, and reuses a released one.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	s, err := e.Region.Network.CreateSubnet(e.VPC.ID, "us-east-1a", "10.0.200.0/28", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Free != 11 {
		t.Errorf("a /28 has %d addresses, want 11", s.Free)
	}
	all, err := launchIn(t, noon(), e, s, "m5.large", 11)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, i := range all {
		seen[i.PrivateIP] = true
	}
	if len(seen) != 11 || seen["10.0.200.0"] || seen["10.0.200.3"] || seen["10.0.200.15"] || !seen["10.0.200.4"] || !seen["10.0.200.14"] {
		t.Errorf("assigned addresses: %v, want all 11 that AWS does not reserve", seen)
	}
	if _, err := launchIn(t, noon(), e, s, "m5.large", 1); code(err) != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("a full subnet: %v, want InsufficientFreeAddressesInSubnet", err)
	}
	if _, _, err := e.Region.Instances.Terminate(noon(), []string{all[3].ID}); err != nil {
		t.Fatal(err)
	}
	w.Advance(noon())
	again, err := launchIn(t, noon(), e, s, "m5.large", 1)
	if err != nil || again[0].PrivateIP != all[3].PrivateIP {
		t.Errorf("after one instance was terminated: %v, %v, want its address", again, err)
	}
	// A conflict, a block outside of the VPC, no block, too large, too small.
	for _, cidr := range []string{"10.0.200.0/27", "10.1.0.0/24", "nonsense", "10.0.0.0/8", "10.0.240.0/29"} {
		if _, err := e.Region.Network.CreateSubnet(e.VPC.ID, "us-east-1a", cidr, nil); !strings.HasPrefix(code(err), "InvalidSubnet.") {
			t.Errorf("subnet %s: %v, want an error InvalidSubnet", cidr, err)
		}
	}
}

// TestCapacity checks overlapping limits of pools.
func TestCapacity(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	c := &e.Region.Capacity
	c.Limit(world.CapacityPool{Type: "m5.*"}, 3)
	c.Limit(world.CapacityPool{Zone: "us-east-1a"}, 2)
	a, b := e.PrivateSubnets[0], e.PrivateSubnets[1]
	first, err := launchIn(t, noon(), e, a, "m5.large", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := launchIn(t, noon(), e, a, "m5.xlarge", 1); code(err) != "InsufficientInstanceCapacity" {
		t.Errorf("a third instance in zone a: %v, want InsufficientInstanceCapacity", err)
	}
	if _, err := launchIn(t, noon(), e, b, "m5.large", 2); code(err) != "InsufficientInstanceCapacity" {
		t.Errorf("a fourth instance of the family: %v, want InsufficientInstanceCapacity", err)
	}
	if _, err := launchIn(t, noon(), e, b, "m5.large", 1); err != nil {
		t.Errorf("a third instance of the family: %v, want no error", err)
	}
	w.FailHost(noon(), first[0].ID)
	c.RemoveLimit(world.CapacityPool{Zone: "us-east-1a"})
	if _, err := launchIn(t, noon(), e, a, "m5.large", 1); err != nil {
		t.Errorf("after a failed host, without the limit of zone a: %v, want no error", err)
	}
	if _, err := launchIn(t, noon(), e, b, "x1.huge", 1); code(err) != "Unsupported" {
		t.Errorf("a type that the zone does not offer: %v, want Unsupported", err)
	}
}

// TestSpotPrices checks the price before the first SetSpotPrice, and the prices of several periods.
func TestSpotPrices(t *testing.T) {
	t.Parallel()
	w, _ := newClusterWorld(t)
	m := w.Market(region)
	now := noon()
	usual := m.SpotPrices("m5.large", "us-east-1b", now, now)
	if len(usual) != 1 || usual[0].Price < catalog.Dollar/10*28/100 || usual[0].Price > catalog.Dollar/10*49/100 {
		t.Errorf("price before the first SetSpotPrice: %v, want one between 0.028 and 0.049", usual)
	}
	m.SetSpotPrice(now.Add(time.Hour), "m5.large", "us-east-1b", catalog.Dollar/20)
	m.SetSpotPrice(now.Add(2*time.Hour), "m5.large", "us-east-1b", catalog.Dollar/25)
	for name, test := range map[string]struct {
		start, end time.Duration
		want       []catalog.Price
	}{
		"before":  {0, 0, []catalog.Price{usual[0].Price}},
		"between": {90 * time.Minute, 90 * time.Minute, []catalog.Price{catalog.Dollar / 20}},
		"after":   {3 * time.Hour, 3 * time.Hour, []catalog.Price{catalog.Dollar / 25}},
		"all":     {0, 3 * time.Hour, []catalog.Price{usual[0].Price, catalog.Dollar / 20, catalog.Dollar / 25}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []catalog.Price
			for _, p := range m.SpotPrices("m5.large", "us-east-1b", now.Add(test.start), now.Add(test.end)) {
				got = append(got, p.Price)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("prices (-want +got):\n%s", d)
			}
		})
	}
	if got := m.SpotPrices("x1.huge", "us-east-1a", now, now); got != nil {
		t.Errorf("a type without spot offerings has the spot prices %v", got)
	}
}

// TestZoneIDs checks the zone ids of various regions.
func TestZoneIDs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"us-east-1": "use1-az1", "us-west-2": "usw2-az1", "eu-central-1": "euc1-az1", "ap-southeast-2": "apse2-az1",
		"ap-northeast-1": "apne1-az1", "us-gov-west-1": "usgw1-az1", "sa-east-1": "sae1-az1", "ca-central-1": "cac1-az1",
		"ap-south-1": "aps1-az1",
	} {
		if got := (&world.World{}).Region(account, name).Zones()[0].ID; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestTags: Tag adds and removes tags. For an unknown resource or a key with the prefix aws:, it returns an error.
func TestTags(t *testing.T) {
	t.Parallel()
	_, e := newClusterWorld(t)
	r, s := e.Region, e.PrivateSubnets[0]
	if err := r.Tag(noon(), []string{s.ID, "subnet-00000000000000000"}, map[string]string{"a": "1"},
		nil); code(err) != "InvalidSubnetID.NotFound" {
		t.Errorf("an unknown subnet: %v, want InvalidSubnetID.NotFound", err)
	}
	if s.Tags["a"] != "" {
		t.Error("a failed call has changed tags")
	}
	if err := r.Tag(noon(), []string{s.ID}, map[string]string{"aws:x": "1"}, nil); code(err) != "InvalidParameterValue" {
		t.Errorf("a tag with the prefix aws: %v, want InvalidParameterValue", err)
	}
	if err := r.Tag(noon(), []string{s.ID}, map[string]string{"a": "1"}, []string{"Name"}); err != nil ||
		s.Tags["a"] != "1" || s.Tags["Name"] != "" {
		t.Errorf("after adding a=1 and removing Name, the tags are %v, %v, want both changes", s.Tags, err)
	}
}

// TestConsole: the last 64 KiB of the console output are kept.
func TestConsole(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	launched, err := launchIn(t, noon(), e, e.PrivateSubnets[0], "m5.large", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		w.AppendConsole(launched[0].ID, strings.Repeat("x", 1000)+"\n")
	}
	w.AppendConsole(launched[0].ID, "end")
	text, err := e.Region.Instances.Console(launched[0].ID)
	if err != nil || len(text) != 64<<10 || !strings.HasSuffix(text, "x\nend") {
		t.Errorf("the console has %d bytes, %v, want the last 65536", len(text), err)
	}
}

// TestProfileLag: with Faults.ProfileLag, EC2 does not know a new instance profile.
func TestProfileLag(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	w.Faults.ProfileLag = 10 * time.Second
	a := e.Region.Account
	if _, err := a.CreateRole(noon(), identity.Role{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateProfile(noon(), identity.Profile{Name: "node"}); err != nil {
		t.Fatal(err)
	}
	launch := func(after time.Duration) error {
		_, err := e.Region.Launches.RunInstances(noon().Add(after), world.RunRequest{
			Data:     world.TemplateData{ImageID: image(t, e.Region), InstanceType: "m5.large", Profile: &world.ProfileRef{Name: "node"}},
			SubnetID: e.PrivateSubnets[0].ID, Min: 1, Max: 1,
		})
		return err
	}
	if err := launch(time.Second); code(err) != "InvalidParameterValue" ||
		!strings.Contains(err.Error(), "Invalid IAM Instance Profile name") {
		t.Errorf("after 1 s: %v, want InvalidParameterValue", err)
	}
	if err := launch(10 * time.Second); code(err) != "InvalidParameterValue" || !strings.Contains(err.Error(), "no associated IAM Roles") {
		t.Errorf("without a role: %v, want InvalidParameterValue", err)
	}
	if err := a.AddRoleToProfile("node", "node"); err != nil {
		t.Fatal(err)
	}
	if err := launch(11 * time.Second); err != nil {
		t.Errorf("with a role: %v, want no error", err)
	}
}

// TestReservationWarnings checks the warnings of the end of a capacity block, and of the interruption of a reserved
// instance.
func TestReservationWarnings(t *testing.T) {
	t.Parallel()
	w, e := newClusterWorld(t)
	r := e.Region
	if _, err := r.SQS.CreateQueue(noon(), "demo", nil); err != nil {
		t.Fatal(err)
	}
	launched, err := launchIn(t, noon(), e, e.PrivateSubnets[0], "m5.large", 1)
	if err != nil {
		t.Fatal(err)
	}
	r.EventQueues = []string{"demo"}
	r.WarnBlockExpiry(noon(), "cr-0123456789abcdef0", noon().Add(40*time.Minute))
	if !w.InterruptReserved(noon(), launched[0].ID) || w.InterruptReserved(noon(), "i-00000000000000000") {
		t.Error("InterruptReserved must succeed for the running instance, and fail for an unknown one")
	}
	got, err := r.SQS.ReceiveMessages(noon(), "demo", 10, -1)
	if err != nil || len(got) != 2 ||
		!strings.Contains(got[0].Body, `"capacity-reservation-id":"cr-0123456789abcdef0"`) ||
		!strings.Contains(got[0].Body, `"detail-type":"Capacity Block Reservation Expiration Warning"`) ||
		!strings.Contains(got[1].Body, `"instance-id":"`+launched[0].ID+`"`) ||
		!strings.Contains(got[1].Body, "Interruptible Capacity Reservation Instance Interruption") {
		t.Fatalf("events: %+v, %v, want both warnings", got, err)
	}
	w.Advance(noon().Add(3 * time.Minute))
	if reclaimed, _ := w.Instance(launched[0].ID); reclaimed.Alive() {
		t.Error("the interrupted instance did not end")
	}
}

package ec2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

func (s *fixture) createGroup(t *testing.T, strategy string, partitions int) *world.PlacementGroup {
	t.Helper()
	var created *world.PlacementGroup
	s.Do(func(_ *world.World, now time.Time) {
		var err error
		if created, err = s.estate.Region.PlacementGroups.Create(now,
			world.PlacementGroup{Name: "g-" + strategy, Strategy: strategy, Partitions: partitions}); err != nil {
			t.Fatal(err)
		}
	})
	return created
}

// requestInGroup returns a request for an m5.large in the placement group, in one of the zones.
func (s *fixture) requestInGroup(claim string, ref ec2.PlacementRef, zones ...int) ec2.LaunchRequest {
	var choices []ec2.Choice
	for _, n := range zones {
		choices = append(choices, s.choice("m5.large", n))
	}
	r := s.request(claim, choices...)
	r.Groups[0].Blueprint.Placement = ref
	return r
}

func TestPlacementGroup(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "u1")
	cluster, partition := s.createGroup(t, "cluster", 0), s.createGroup(t, "partition", 5)
	launch, err := d.Launch(t.Context(), s.requestInGroup("apps-1", ec2.PlacementRef{Group: cluster.ID}, 1))
	if err != nil {
		t.Fatal(err)
	}
	arn := func(g *world.PlacementGroup) string {
		return "arn:aws:ec2:us-east-1:111122223333:placement-group/" + g.Name
	}
	for name, c := range map[string]struct {
		term ec2.PlacementTerm
		want ec2.PlacementGroup
	}{
		"by name": {ec2.PlacementTerm{Name: "g-cluster"}, ec2.PlacementGroup{ID: cluster.ID, ARN: arn(cluster), Strategy: catalog.PlaceCluster,
			Members: map[string]string{launch.Instance.ID: "us-east-1b"}}},
		"by id": {ec2.PlacementTerm{ID: partition.ID},
			ec2.PlacementGroup{ID: partition.ID, ARN: arn(partition), Strategy: catalog.PlacePartition, Partitions: 5}},
	} {
		got, err := d.PlacementGroup(t.Context(), c.term)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	seen, err := d.Instance(t.Context(), launch.Instance.ID)
	if err != nil || seen.Placement != launch.Instance.Placement || seen.Placement.Group != cluster.ID ||
		seen.Tenancy != catalog.TenancyDefault {
		t.Errorf("Instance: %+v, tenancy %s, %v; want %+v as from Launch, tenancy default",
			seen.Placement, seen.Tenancy, err, launch.Instance.Placement)
	}
	for name, term := range map[string]ec2.PlacementTerm{"unknown name": {Name: "no-such-group"}, "unknown id": {ID: "pg-0123456789abcdef0"}} {
		if _, err := d.PlacementGroup(t.Context(), term); !awserr.Is(err, awserr.Misconfigured) ||
			awserr.Of(err).Reason != "PlacementGroupNotFound" ||
			!strings.Contains(err.Error(), "spec.placementGroupSelector") {
			t.Errorf("%s: %v, want PlacementGroupNotFound", name, err)
		}
	}
	s.change(func(*world.Region, *world.World) { cluster.State = "deleting" })
	if _, err := d.PlacementGroup(t.Context(), ec2.PlacementTerm{ID: cluster.ID}); !awserr.Is(err, awserr.Misconfigured) ||
		!strings.Contains(err.Error(), "deleting") {
		t.Errorf("a group that is being deleted: %v, want Misconfigured", err)
	}
}

// TestLaunchSpread: a zone with seven instances of a spread group is full for all types and capacity types, but only
// for launches into this group.
func TestLaunchSpread(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "u1")
	ref := ec2.PlacementRef{Group: s.createGroup(t, "spread", 0).ID}
	for n := range ec2.MaxSpreadInstances {
		if _, err := d.Launch(t.Context(), s.requestInGroup(fmt.Sprint("apps-", n), ref, 0)); err != nil {
			t.Fatal(err)
		}
	}
	launch, err := d.Launch(t.Context(), s.requestInGroup("apps-7", ref, 0))
	want := []ec2.Shortage{{PlacementGroup: ref.Group, Zone: "us-east-1a", Reason: "SpreadPlacementGroupFull"}}
	if !awserr.Is(err, awserr.Shortage) || !launch.Spent || !cmp.Equal(want, launch.Shortages) {
		t.Fatalf("the eighth launch returned %+v, %v; want shortages %+v", launch, err, want)
	}
	var known ec2.Shortages
	now := time.Now()
	known.Note(now, launch.Shortages...)
	types := []catalog.Type{{Name: "c5.large", Offerings: []catalog.Offering{
		{Zone: "us-east-1a", CapacityType: catalog.Spot, Available: true}, {Zone: "us-east-1b", CapacityType: catalog.Spot, Available: true}}}}
	// By group of the launch: whether the offerings in zones a and b are available.
	for group, want := range map[string][2]bool{ref.Group: {false, true}, "pg-other": {true, true}, "": {true, true}} {
		got := known.Apply(now, catalog.Catalog{Types: types, PlacementGroup: group}).Types[0].Offerings
		if got[0].Available != want[0] || got[1].Available != want[1] {
			t.Errorf("in group %q: offerings %+v, want available %v", group, got, want)
		}
		if mayRequest := known.Admit(now, "l", catalog.Spot, group, []ec2.Choice{{InstanceType: "c5.large", Zone: "us-east-1a"}}); mayRequest[0] != want[0] {
			t.Errorf("in group %q a launch may request c5.large in us-east-1a: %t, want %t", group, mayRequest[0], want[0])
		}
	}
	if launch, err = d.Launch(t.Context(), s.requestInGroup("apps-8", ref, 0, 1)); err != nil || launch.Instance.Zone != "us-east-1b" {
		t.Errorf("with a second zone: %+v, %v; want a launch in us-east-1b", launch, err)
	}
}

// TestLaunchCluster: a cluster group has all its instances in one zone. A shortage in the group does not affect
// launches outside of it.
func TestLaunchCluster(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "u1")
	ref := ec2.PlacementRef{Group: s.createGroup(t, "cluster", 0).ID}
	if _, err := d.Launch(t.Context(), s.requestInGroup("apps-1", ref, 2)); err != nil {
		t.Fatal(err)
	}
	launch, err := d.Launch(t.Context(), s.requestInGroup("apps-2", ref, 0))
	if !awserr.Is(err, awserr.Shortage) || len(launch.Shortages) != 1 || launch.Shortages[0].PlacementGroup != ref.Group {
		t.Fatalf("a launch in another zone: %+v, %v; want a shortage in the group", launch, err)
	}
	var known ec2.Shortages
	known.Note(time.Now(), launch.Shortages...)
	if !known.Until(time.Now(), "m5.large", "us-east-1a", catalog.OnDemand).IsZero() {
		t.Error("the offering is marked as short outside of the group")
	}
	launched := ec2.Instance{Type: "m5.large", Zone: "us-east-1a", CapacityType: catalog.OnDemand, Placement: ref}
	if !known.NoteLaunched(launched) {
		t.Error("a launch in the group does not end the shortage")
	}
}

// TestLaunchPartition: a launch that names a partition uses this partition. For other launches, EC2 chooses a
// partition, which Launch does not return yet.
func TestLaunchPartition(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "m5.large")
	d := s.client(t, "u1")
	ref := ec2.PlacementRef{Group: s.createGroup(t, "partition", 3).ID}
	for n, want := range []struct{ requested, got int32 }{{3, 3}, {0, 1}, {0, 2}} { // EC2 chooses the partition with the fewest instances
		ref.Partition = want.requested
		launch, err := d.Launch(t.Context(), s.requestInGroup(fmt.Sprint("apps-", n), ref, 0))
		if err != nil {
			t.Fatal(err)
		}
		seen, err := d.Instance(t.Context(), launch.Instance.ID)
		if err != nil || launch.Instance.Placement.Partition != want.requested || seen.Placement.Partition != want.got {
			t.Errorf("partition %d requested: Launch returned %d, Instance returned %d, want %d; %v", want.requested, launch.Instance.Placement.Partition,
				seen.Placement.Partition, want.got, err)
		}
	}
}

package emulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// createGroup creates a placement group with the SDK, and a launch template for instances in the group. It returns the
// group and the template's name.
func (b *fixture) createGroup(t *testing.T, strategy types.PlacementStrategy, partitions int32) (types.PlacementGroup, string) {
	t.Helper()
	in := &ec2.CreatePlacementGroupInput{GroupName: aws.String("g-" + string(strategy)), Strategy: strategy}
	if partitions > 0 {
		in.PartitionCount = aws.Int32(partitions)
	}
	out, err := b.ec2.CreatePlacementGroup(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.PlacementGroup, b.createTemplate(t, "joiner-"+string(strategy), types.RequestLaunchTemplateData{
		Placement: &types.LaunchTemplatePlacementRequest{GroupId: out.PlacementGroup.GroupId}})
}

// requestInstances requests n instances. errs has the number of errors by code.
func (b *fixture) requestInstances(t *testing.T, n int32, template string,
	overrides ...types.FleetLaunchTemplateOverridesRequest) (ids []string, errs map[string]int) {
	t.Helper()
	out, err := b.ec2.CreateFleet(t.Context(), fleet(template, n, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	errs = map[string]int{}
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	for _, e := range out.Errors {
		errs[*e.ErrorCode]++
	}
	return ids, errs
}

// TestPlacementGroups creates placement groups with the SDK, and finds them by name, id, state and strategy.
func TestPlacementGroups(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	partition, _ := b.createGroup(t, types.PlacementStrategyPartition, 3)
	spread, _ := b.createGroup(t, types.PlacementStrategySpread, 0)
	if *partition.PartitionCount != 3 || partition.State != types.PlacementGroupStateAvailable || spread.SpreadLevel != types.SpreadLevelRack {
		t.Errorf("created groups: %+v and %+v, want three partitions and the spread level rack", partition, spread)
	}
	find := func(in ec2.DescribePlacementGroupsInput) []string {
		out, err := b.ec2.DescribePlacementGroups(t.Context(), &in)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, g := range out.PlacementGroups {
			ids = append(ids, *g.GroupId)
		}
		return ids
	}
	available := []types.Filter{{Name: aws.String("state"), Values: []string{"available"}}}
	for name, c := range map[string]struct {
		in   ec2.DescribePlacementGroupsInput
		want []string
	}{
		"all":     {ec2.DescribePlacementGroupsInput{}, []string{*partition.GroupId, *spread.GroupId}},
		"by name": {ec2.DescribePlacementGroupsInput{GroupNames: []string{"g-spread"}}, []string{*spread.GroupId}},
		"by id":   {ec2.DescribePlacementGroupsInput{GroupIds: []string{*partition.GroupId}, Filters: available}, []string{*partition.GroupId}},
		"by strategy": {ec2.DescribePlacementGroupsInput{Filters: []types.Filter{{Name: aws.String("strategy"),
			Values: []string{"cluster"}}}}, []string{}},
	} {
		if diff := cmp.Diff(c.want, find(c.in)); diff != "" {
			t.Errorf("groups found: %s (-want +got):\n%s", name, diff)
		}
	}
	b.server.Do(func(*world.World, time.Time) {
		b.estate.Region.PlacementGroups.ByNameOrID(*partition.GroupId).State = "deleting"
	})
	if got := find(ec2.DescribePlacementGroupsInput{GroupIds: []string{*partition.GroupId}, Filters: available}); len(got) > 0 {
		t.Errorf("a group in the state deleting is listed as available: %v", got)
	}
	if _, err := b.ec2.DescribePlacementGroups(t.Context(),
		&ec2.DescribePlacementGroupsInput{GroupNames: []string{"unknown"}}); code(t, err) != "InvalidPlacementGroup.Unknown" {
		t.Errorf("an unknown name: %v, want InvalidPlacementGroup.Unknown", err)
	}
	if _, err := b.ec2.CreatePlacementGroup(t.Context(),
		&ec2.CreatePlacementGroupInput{GroupName: aws.String("g-spread"), Strategy: "spread"}); code(t,
		err) != "InvalidPlacementGroup.Duplicate" {
		t.Errorf("a used name: %v, want InvalidPlacementGroup.Duplicate", err)
	}
}

// TestSpreadGroup: a spread group has at most seven instances per zone, not counting terminated ones.
func TestSpreadGroup(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	group, template := b.createGroup(t, types.PlacementStrategySpread, 0)
	ids, errs := b.requestInstances(t, 9, template, b.override("m5.large", 0))
	if len(ids) != 7 || errs["PlacementGroupLimitExceeded"] != 1 {
		t.Fatalf("%d instances, errors %v, want 7 and PlacementGroupLimitExceeded", len(ids), errs)
	}
	if _, err := b.ec2.DeletePlacementGroup(t.Context(),
		&ec2.DeletePlacementGroupInput{GroupName: group.GroupName}); code(t, err) != "InvalidPlacementGroup.InUse" {
		t.Errorf("deleting a group in use: %v, want InvalidPlacementGroup.InUse", err)
	}
	if other, errs := b.requestInstances(t, 1, template, b.override("m5.large", 1)); len(other) != 1 {
		t.Errorf("launch in another zone: %v, want no error", errs)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids[:1]}); err != nil {
		t.Fatal(err)
	}
	if again, errs := b.requestInstances(t, 1, template, b.override("m5.large", 0)); len(again) != 1 {
		t.Errorf("launch after one instance was terminated: %v, want no error", errs)
	}
	in, err := b.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("placement-group-name"), Values: []string{"g-spread"}}, {Name: aws.String("instance-state-name"),
			Values: []string{"pending", "running"}}}})
	n := 0
	for _, r := range in.Reservations {
		n += len(r.Instances)
	}
	if err != nil || n != 8 { // seven in the first zone, and one in another
		t.Errorf("the filter by group name finds %d instances, want 8; error %v", n, err)
	}
}

// TestClusterGroup: the first instance determines the group's zone. Instance types that a cluster group does not
// support are rejected.
func TestClusterGroup(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, template := b.createGroup(t, types.PlacementStrategyCluster, 0)
	if ids, errs := b.requestInstances(t, 2, template, b.override("m5.large", 1)); len(ids) != 2 {
		t.Fatalf("the first launch: %v, want no error", errs)
	}
	if ids, errs := b.requestInstances(t, 1, template, b.override("m5.large", 0)); len(ids) != 0 || errs["InsufficientInstanceCapacity"] != 1 {
		t.Errorf("launch in another zone: %v, %v, want InsufficientInstanceCapacity", ids, errs)
	}
	if ids, errs := b.requestInstances(t, 1, template, b.override("t3.large", 1)); len(ids) != 0 || errs["InvalidParameterCombination"] != 1 {
		t.Errorf("a type without support for cluster groups: %v, %v, want InvalidParameterCombination", ids, errs)
	}
}

// TestPartitionGroup: an instance gets the requested partition. Instances without a requested partition are spread
// evenly.
func TestPartitionGroup(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	group, template := b.createGroup(t, types.PlacementStrategyPartition, 3)
	partition2 := b.createTemplate(t, "joiner-second", types.RequestLaunchTemplateData{
		Placement: &types.LaunchTemplatePlacementRequest{GroupName: group.GroupName, PartitionNumber: aws.Int32(2)}})
	ids, errs := b.requestInstances(t, 2, partition2, b.override("m5.large", 0))
	if len(ids) != 2 {
		t.Fatal(errs)
	}
	more, errs := b.requestInstances(t, 4, template, b.override("m5.large", 0))
	if len(more) != 4 {
		t.Fatal(errs)
	}
	instancesIn := map[int32]int{} // by partition
	for _, i := range b.instances(t.Context(), t, append(ids, more...)...) {
		instancesIn[aws.ToInt32(i.Placement.PartitionNumber)]++
		if *i.Placement.GroupId != *group.GroupId || *i.Placement.GroupName != *group.GroupName {
			t.Errorf("an instance has the placement %+v, want the group's id and name", i.Placement)
		}
	}
	if diff := cmp.Diff(map[int32]int{1: 2, 2: 2, 3: 2}, instancesIn); diff != "" {
		t.Errorf("instances by partition (-want +got):\n%s", diff)
	}
	partition4 := b.createTemplate(t, "joiner-fourth", types.RequestLaunchTemplateData{
		Placement: &types.LaunchTemplatePlacementRequest{GroupId: group.GroupId, PartitionNumber: aws.Int32(4)}})
	if ids, errs := b.requestInstances(t, 1, partition4, b.override("m5.large", 0)); len(ids) != 0 || errs["InvalidParameterValue"] != 1 {
		t.Errorf("a partition that the group does not have: %v, %v, want InvalidParameterValue", ids, errs)
	}
}

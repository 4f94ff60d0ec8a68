package ec2

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// PlacementTerm selects a placement group by ID or by name.
type PlacementTerm struct {
	Name string // name of the placement group
	ID   string // "pg-0123…"; if it is set, Name is ignored
}

// String returns "id " and the ID, or "name " and the name.
func (t PlacementTerm) String() string {
	if t.ID != "" {
		return "id " + t.ID
	}
	return "name " + t.Name
}

// PlacementGroup is a placement group as EC2 shows it.
type PlacementGroup struct {
	ID         string // "pg-0123…"
	ARN        string // "arn:…"
	Strategy   string // catalog.PlaceCluster, PlaceSpread or PlacePartition
	Partitions int    // number of partitions of a group with the partition strategy, else 0

	// Members has the zone of each pending or running instance in the group, of any owner, by instance ID. It is nil
	// for a partition group, because no caller needs the members of such a group.
	Members map[string]string
}

// MaxSpreadInstances is EC2's maximum number of running instances of a spread group in one zone.
const MaxSpreadInstances = 7

// PlacementRef is the placement group and partition of an instance or a launch. The zero value means no group.
type PlacementRef struct {
	Group     string // ID of the group
	Partition int32  // counted from 1; 0: EC2 chooses
}

// PlacementGroup finds the placement group that a term selects, with its members. The error is awserr.Misconfigured if
// no usable group matches.
func (d *Client) PlacementGroup(ctx context.Context, t PlacementTerm) (PlacementGroup, error) {
	const op = "DescribePlacementGroups"
	in := &awsec2.DescribePlacementGroupsInput{}
	if t.ID != "" {
		in.GroupIds = []string{t.ID}
	} else {
		in.GroupNames = []string{t.Name}
	}
	out, err := d.reads.DescribePlacementGroups(ctx, in)
	if e := awserr.Of(awserr.Classify(op, err)); e != nil && (e.Reason == reasonNoPlacement || e.Kind == awserr.Gone) {
		return PlacementGroup{}, awserr.Misconfiguredf(op, reasonNoPlacement,
			"there is no placement group with %s in this region: correct spec.placementGroupSelector of the EC2NodeClass", t)
	}
	if err != nil {
		return PlacementGroup{}, awserr.Classify(op, err)
	}
	if len(out.PlacementGroups) == 0 {
		return PlacementGroup{}, awserr.Misconfiguredf(op, reasonNoPlacement,
			"there is no placement group with %s in this region: correct spec.placementGroupSelector of the EC2NodeClass", t)
	}
	found := out.PlacementGroups[0]
	if found.State != awstypes.PlacementGroupStateAvailable {
		return PlacementGroup{}, awserr.Misconfiguredf(op, reasonNoPlacement,
			"the placement group with %s is %s, and cannot be used: select another one "+
				"in spec.placementGroupSelector of the EC2NodeClass", t, found.State)
	}
	group := PlacementGroup{
		ID: aws.ToString(found.GroupId), ARN: aws.ToString(found.GroupArn), Strategy: string(found.Strategy),
		Partitions: int(aws.ToInt32(found.PartitionCount)),
	}
	if group.Strategy == catalog.PlacePartition {
		return group, nil
	}
	group.Members, err = d.members(ctx, aws.ToString(found.GroupName))
	return group, err
}

func (d *Client) members(ctx context.Context, group string) (map[string]string, error) {
	found, err := d.describe(ctx, &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters: []awstypes.Filter{
			filter("placement-group-name", group), filter("instance-state-name", string(Pending), string(Running)),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("list the instances of placement group %s: %w", group, err)
	}
	out := make(map[string]string, len(found))
	for _, i := range found {
		out[i.ID] = i.Zone
	}
	return out, nil
}

func (b Blueprint) setPlacement(data *awstypes.RequestLaunchTemplateData) {
	if b.Tenancy == "" && b.Placement == (PlacementRef{}) {
		return
	}
	data.Placement = &awstypes.LaunchTemplatePlacementRequest{
		Tenancy: awstypes.Tenancy(b.Tenancy), GroupId: textOrNil(b.Placement.Group),
	}
	if b.Placement.Partition > 0 {
		data.Placement.PartitionNumber = aws.Int32(b.Placement.Partition)
	}
}

// blueprintOf returns the blueprint of the request's choice with this type and zone; zero if there is none.
func (r LaunchRequest) blueprintOf(instanceType, zone string) Blueprint {
	for _, g := range r.Groups {
		for _, c := range g.Choices {
			if c.InstanceType == instanceType && c.Zone == zone {
				return g.Blueprint
			}
		}
	}
	return Blueprint{}
}

// addPlacementGroup adds the placement group of the launch to its shortages, because EC2 may have capacity outside of
// the group. A full spread group is a shortage of all types in the zone. Shortages of a subnet, a quota or all spot
// capacity stay unchanged, because they do not depend on the group.
func (r LaunchRequest) addPlacementGroup(shortages []Shortage) []Shortage {
	for i, s := range shortages {
		group := r.blueprintOf(s.InstanceType, s.Zone).Placement.Group
		switch {
		case group == "" || s.SubnetID != "" || s.InstanceType == "" || isQuota(s.Reason):
		case s.Reason == reasonSpreadFull:
			shortages[i] = Shortage{PlacementGroup: group, Zone: s.Zone, Reason: s.Reason}
		default:
			shortages[i].PlacementGroup = group
		}
	}
	return shortages
}

package ec2

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// State is the state of an instance, in EC2's words.
type State string

// The states. EC2 shows a terminated instance for about an hour.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
)

// Ended reports whether the instance is shutting down or terminated.
func (s State) Ended() bool { return s == ShuttingDown || s == Terminated }

// Instance is an instance as EC2 shows it.
type Instance struct {
	ID           string // "i-0123…"
	Type         string // "m5.large"
	Zone         string // "us-east-1a"
	ZoneID       string // "use1-az1", empty if EC2 did not return it
	CapacityType string // catalog.OnDemand, Spot or Reserved
	// Reservation is the capacity reservation that the instance was launched into; zero unless CapacityType is
	// Reserved.
	Reservation catalog.Reservation
	Placement   PlacementRef // placement group; its partition is 0 right after a launch in which EC2 chose the partition
	Tenancy     string       // catalog.TenancyDefault or TenancyDedicated
	ImageID     string       // "ami-0123"
	State       State
	// StateReason is EC2's reason for the end of the instance: "Server.SpotInstanceTermination: …".
	StateReason    string
	Launched       time.Time // zero in the result of Launch
	PrivateDNS     string
	PrivateIP      string
	Addresses      []string // all private addresses of all network interfaces, IPv4 and IPv6, sorted
	SubnetID       string
	VPC            string
	SecurityGroups []string // IDs, sorted
	Profile        string   // ARN of the instance profile, empty if none
	EFA            int      // number of EFA interfaces

	Tags  map[string]string // all tags, by key
	Owner Ownership         // derived from Tags
}

// ProviderID returns the provider ID that the instance's Node and NodeClaim have.
func (i Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Claim returns the name of the NodeClaim that the instance was launched for, empty if its tags have none.
func (i Instance) Claim() string { return i.Tags[TagNodeClaim] }

// ParseProviderID returns the instance ID in a Node's provider ID, "aws:///us-east-1a/i-0123". ok is false for a
// provider ID without instance ID.
func ParseProviderID(providerID string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(providerID, "aws:///")
	if !ok {
		return "", false
	}
	_, id, ok = strings.Cut(rest, "/")
	return id, ok && strings.HasPrefix(id, "i-")
}

// Instances returns all instances that are not terminated and whose tags have this cluster's name, a NodePool and an
// EC2NodeClass, sorted by ID. The result contains this cluster's instances, instances without a UID, and instances of
// another cluster with the same name.
func (d *Client) Instances(ctx context.Context) ([]Instance, error) {
	return d.describe(ctx, &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters: []awstypes.Filter{
			filter("tag-key", TagNodePool),
			filter("tag-key", TagNodeClass),
			filter("tag:"+TagClusterName, d.cluster.Name),
			filter("instance-state-name", string(Pending), string(Running), string(ShuttingDown), string(Stopping), string(Stopped)),
		},
	})
}

// LaunchedFor returns this cluster's instances with the claim's name that are neither terminated nor shutting down. The
// result has several instances only if another attempt, or another claim of this name, launched one too.
func (d *Client) LaunchedFor(ctx context.Context, claim string) ([]Instance, error) {
	all, err := d.describe(ctx, &awsec2.DescribeInstancesInput{
		Filters: []awstypes.Filter{
			filter("tag:"+TagNodeClaim, claim),
			filter("tag:"+TagUID, d.cluster.UID),
			filter("instance-state-name", string(Pending), string(Running), string(Stopping), string(Stopped)),
		},
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i Instance) bool { return i.Owner != Ours }), nil
}

// Instance returns one instance of any owner. A terminated instance is returned as long as EC2 lists it. The error is
// awserr.Gone if EC2 does not know the instance, which also happens for some seconds after a launch. Concurrent calls
// are merged.
func (d *Client) Instance(ctx context.Context, id string) (Instance, error) {
	instance, ok, err := d.describes.get(ctx, id)
	if err != nil {
		return Instance{}, awserr.Classify("DescribeInstances "+id, err)
	}
	if !ok {
		return Instance{}, awserr.FromCode("DescribeInstances "+id, "InvalidInstanceID.NotFound", "EC2 does not know the instance")
	}
	return instance, nil
}

// describeAll returns the instances with the ids, by ID. It uses a filter, because EC2 fails the whole call if the
// parameter InstanceIds has an unknown ID. The second result, errors by ID for the merger, is always nil.
func (d *Client) describeAll(ctx context.Context, ids []string) (map[string]Instance, map[string]error, error) {
	found, err := d.describe(ctx, &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(1000),
		Filters:    []awstypes.Filter{filter("instance-id", ids...)},
	})
	byID := make(map[string]Instance, len(found))
	for _, i := range found {
		byID[i.ID] = i
	}
	return byID, nil, err
}

// describe returns the instances that a request finds, sorted by ID.
func (d *Client) describe(ctx context.Context, in *awsec2.DescribeInstancesInput) ([]Instance, error) {
	byID := map[string]Instance{} // pages may repeat an instance
	pages := awsec2.NewDescribeInstancesPaginator(d.reads, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeInstances", err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if id := aws.ToString(i.InstanceId); id != "" {
					byID[id] = d.fromInstance(i)
				}
			}
		}
	}
	out := make([]Instance, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, byID[id])
	}
	return out, nil
}

func (d *Client) fromInstance(i awstypes.Instance) Instance {
	out := Instance{
		ID:           aws.ToString(i.InstanceId),
		Type:         string(i.InstanceType),
		CapacityType: capacityType(i),
		ImageID:      aws.ToString(i.ImageId),
		Launched:     aws.ToTime(i.LaunchTime),
		PrivateDNS:   aws.ToString(i.PrivateDnsName),
		PrivateIP:    aws.ToString(i.PrivateIpAddress),
		SubnetID:     aws.ToString(i.SubnetId),
		VPC:          aws.ToString(i.VpcId),
		Tags:         fromTags(i.Tags),
	}
	if i.State != nil {
		out.State = State(i.State.Name)
	}
	if i.StateReason != nil && aws.ToString(i.StateReason.Message) != "" {
		out.StateReason = aws.ToString(i.StateReason.Message)
	}
	if i.Placement != nil {
		out.Zone, out.ZoneID = aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.AvailabilityZoneId)
		out.Placement = PlacementRef{Group: aws.ToString(i.Placement.GroupId), Partition: aws.ToInt32(i.Placement.PartitionNumber)}
		out.Tenancy = or(string(i.Placement.Tenancy), catalog.TenancyDefault)
	}
	if i.IamInstanceProfile != nil {
		out.Profile = aws.ToString(i.IamInstanceProfile.Arn)
	}
	for _, g := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(g.GroupId))
	}
	slices.Sort(out.SecurityGroups)
	if out.CapacityType == catalog.Reserved {
		out.Reservation = ReservationRef{
			ID: aws.ToString(i.CapacityReservationId), Block: i.InstanceLifecycle == awstypes.InstanceLifecycleTypeCapacityBlock,
			Interruptible: i.InstanceLifecycle == awstypes.InstanceLifecycleTypeInterruptibleCapacityReservation,
		}.catalogReservation()
	}
	for _, n := range i.NetworkInterfaces {
		if kind := aws.ToString(n.InterfaceType); kind == "efa" || kind == "efa-only" {
			out.EFA++
		}
	}
	out.Addresses = addresses(i)
	out.Owner = d.cluster.Owner(out.Tags)
	return out
}

// addresses returns the private IPv4 and the IPv6 addresses of an instance, sorted and without duplicates.
func addresses(i awstypes.Instance) []string {
	all := []string{aws.ToString(i.PrivateIpAddress), aws.ToString(i.Ipv6Address)}
	for _, n := range i.NetworkInterfaces {
		all = append(all, aws.ToString(n.PrivateIpAddress))
		for _, a := range n.PrivateIpAddresses {
			all = append(all, aws.ToString(a.PrivateIpAddress))
		}
		for _, a := range n.Ipv6Addresses {
			all = append(all, aws.ToString(a.Ipv6Address))
		}
	}
	all = slices.DeleteFunc(all, func(a string) bool { return a == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// capacityType returns the capacity type of an instance. It is reserved only if the instance was launched for a
// reservation. An on-demand instance that happens to use an open reservation stays on-demand.
func capacityType(i awstypes.Instance) string {
	if aws.ToString(i.SpotInstanceRequestId) != "" || i.InstanceLifecycle == awstypes.InstanceLifecycleTypeSpot {
		return catalog.Spot
	}
	s := i.CapacityReservationSpecification
	if aws.ToString(i.CapacityReservationId) != "" && s != nil &&
		s.CapacityReservationPreference == awstypes.CapacityReservationPreferenceCapacityReservationsOnly {
		return catalog.Reserved
	}
	return catalog.OnDemand
}

// Console returns the console output of the instance, empty if EC2 has none yet. It requests the newest output from
// types that support this (Nitro).
func (d *Client) Console(ctx context.Context, id string) (string, error) {
	op := "GetConsoleOutput " + id
	in := &awsec2.GetConsoleOutputInput{InstanceId: aws.String(id), Latest: aws.Bool(true)}
	out, err := d.reads.GetConsoleOutput(ctx, in)
	if e := awserr.Of(awserr.Classify(op, err)); e != nil && strings.HasPrefix(e.Code, "Unsupported") {
		in.Latest = nil // types on Xen return only the output of the last boot
		out, err = d.reads.GetConsoleOutput(ctx, in)
	}
	if err != nil {
		return "", awserr.Classify(op, err)
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err != nil {
		return "", &awserr.Error{Op: op, Kind: awserr.Transient, Reason: "UnreadableAnswer",
			Message: "the output is not base64"}
	}
	return string(text), nil
}

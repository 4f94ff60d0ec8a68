package ec2

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// timeFormat is EC2's format of a time, in filters and in answers that have the time as text.
const timeFormat = "2006-01-02T15:04:05.000Z"

type describeInstancesIn struct {
	InstanceIds []string     `aws:"InstanceId"`
	Filters     []api.Filter `aws:"Filter"`
	api.Paged
}

type describeInstancesOut struct {
	Reservations []reservation `aws:"ReservationSet"`
	NextToken    string
}

// describeInstances lists instances: see visibleInstances.
func describeInstances(c *api.Call, in *describeInstancesIn) (describeInstancesOut, error) {
	if len(in.InstanceIds) > 0 && in.MaxResults != nil {
		return describeInstancesOut{},
			&failure.Error{Code: "InvalidParameterCombination", Message: "The parameter instancesSet cannot be used with the parameter maxResults"}
	}
	found, err := visibleInstances(c, in.InstanceIds)
	if err != nil {
		return describeInstancesOut{}, err
	}
	if found, err = api.FilterItems(found, in.Filters, instanceFilters); err != nil {
		return describeInstancesOut{}, err
	}
	p, err := in.Page(0, 1000)
	if err != nil {
		return describeInstancesOut{}, err
	}
	found, next, err := api.PageOf(found, func(i world.Instance) string { return i.ID }, p)
	if err != nil {
		return describeInstancesOut{}, err
	}
	return describeInstancesOut{Reservations: reservationsOf(c, found), NextToken: next}, nil
}

// visibleInstances returns the instances with the given ids, or all instances if there are no ids, in the state of
// Faults.ReadLag ago.
func visibleInstances(c *api.Call, ids []string) ([]world.Instance, error) {
	if len(ids) == 0 {
		return c.Region.Instances.Visible(c.Now), nil
	}
	out := make([]world.Instance, 0, len(ids))
	var missing []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, &failure.Error{Code: "InvalidInstanceID.Malformed", Message: "Invalid id: \"" + id + "\""}
		}
		i, ok := c.Region.Instances.VisibleByID(c.Now, id)
		if !ok {
			missing = append(missing, id)
			continue
		}
		out = append(out, i)
	}
	if len(missing) == 1 {
		return nil, &failure.Error{Code: "InvalidInstanceID.NotFound", Message: "The instance ID '" + missing[0] + "' does not exist"}
	}
	if len(missing) > 1 {
		return nil, &failure.Error{Code: "InvalidInstanceID.NotFound", Message: "The instance IDs '" +
			strings.Join(missing, ", ") + "' do not exist"}
	}
	return out, nil
}

func instanceFilters(i world.Instance) api.Filterable {
	lifecycles := []string{} // an on-demand instance has no lifecycle
	if i.Spot {
		lifecycles = []string{"spot"}
	}
	return api.Filterable{Tags: i.Tags, Values: map[string][]string{
		"instance-id": {i.ID}, "instance-state-name": {i.State}, "instance-type": {i.Type},
		"instance-lifecycle": lifecycles, "availability-zone": {i.Zone}, "availability-zone-id": {i.ZoneID},
		"subnet-id": {i.SubnetID}, "vpc-id": {i.VPCID}, "image-id": {i.ImageID}, "architecture": {i.Architecture},
		"private-ip-address": {i.PrivateIP}, "private-dns-name": {i.PrivateDNSName}, "ip-address": {i.PublicIP},
		"client-token": {i.ClientToken}, "reservation-id": {i.ReservationID}, "owner-id": {i.Account},
		"iam-instance-profile.arn": {i.ProfileARN}, "instance.group-id": i.SecurityGroupIDs, "group-id": i.SecurityGroupIDs,
		"spot-instance-request-id": {i.SpotRequestID}, "launch-time": {i.LaunchedAt.Format(timeFormat)},
		"placement-group-name": {i.PlacementGroupName}, "placement-partition-number": {strconv.Itoa(i.Partition)}, "tenancy": {i.Tenancy},
		"state-reason-code": {i.StateReason.Code}, "root-device-type": {"ebs"}, "virtualization-type": {"hvm"},
	}}
}

// reservationsOf returns the instances as reservations. Adjacent instances that the same call launched share a
// reservation.
func reservationsOf(c *api.Call, instances []world.Instance) []reservation {
	out := []reservation{}
	names := securityGroupNames(c)
	for _, i := range instances {
		if n := len(out); n > 0 && out[n-1].ReservationId == i.ReservationID {
			out[n-1].Instances = append(out[n-1].Instances, instanceOf(c, i, names))
			continue
		}
		out = append(out, reservation{
			ReservationId: i.ReservationID, OwnerId: i.Account, Groups: []groupRef{},
			Instances: []instance{instanceOf(c, i, names)},
		})
	}
	return out
}

type terminateIn struct {
	InstanceIds []string `aws:"InstanceId"`
}

type terminateOut struct {
	Instances []stateChange `aws:"InstancesSet"`
}

type stateChange struct {
	InstanceId    string
	CurrentState  instanceState
	PreviousState instanceState
}

func terminateInstances(c *api.Call, in *terminateIn) (terminateOut, error) {
	if len(in.InstanceIds) == 0 {
		return terminateOut{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter InstanceId"}
	}
	before, after, err := c.Region.Instances.Terminate(c.Now, in.InstanceIds)
	if err != nil {
		return terminateOut{}, err
	}
	out := terminateOut{Instances: make([]stateChange, len(before))}
	for i := range before {
		out.Instances[i] = stateChange{InstanceId: before[i].ID, CurrentState: stateOf(after[i].State), PreviousState: stateOf(before[i].State)}
	}
	return out, nil
}

type consoleIn struct {
	InstanceId string
	Latest     bool
}

type consoleOut struct {
	InstanceId string
	Output     string
	Timestamp  time.Time
}

func getConsoleOutput(c *api.Call, in *consoleIn) (consoleOut, error) {
	text, err := c.Region.Instances.Console(in.InstanceId)
	if err != nil {
		return consoleOut{}, err
	}
	return consoleOut{InstanceId: in.InstanceId, Output: base64.StdEncoding.EncodeToString([]byte(text)), Timestamp: c.Now}, nil
}

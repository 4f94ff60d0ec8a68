package ec2

import (
	"fmt"
	"strconv"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

type createFleetIn struct {
	ClientToken           string
	Type                  string
	LaunchTemplateConfigs []fleetConfig
	Target                fleetTarget `aws:"TargetCapacitySpecification"`
	SpotOptions           fleetStrategy
	OnDemandOptions       fleetStrategy
	Reserved              fleetReserved            `aws:"ReservedCapacityOptions"`
	Tags                  []world.TagSpecification `aws:"TagSpecification"`
	Context               string

	// The emulator ignores these parameters.
	ExcessCapacityTerminationPolicy  string
	TerminateInstancesWithExpiration bool
	ReplaceUnhealthyInstances        bool
}

type fleetConfig struct {
	LaunchTemplateSpecification templateRef
	Overrides                   []fleetOverride
}

type templateRef struct {
	LaunchTemplateId   string
	LaunchTemplateName string
	Version            string
}

// fleetOverride is an override of a fleet. Request and answer have the same format.
type fleetOverride struct {
	InstanceType     string
	MaxPrice         string
	SubnetId         string
	AvailabilityZone string
	WeightedCapacity *float64
	Priority         *float64
	ImageId          string
	Devices          []world.Device `aws:"BlockDeviceMapping,blockDeviceMappingSet"`
}

type fleetTarget struct {
	Total    int64  `aws:"TotalTargetCapacity"`
	OnDemand int64  `aws:"OnDemandTargetCapacity"`
	Spot     int64  `aws:"SpotTargetCapacity"`
	Default  string `aws:"DefaultTargetCapacityType"`
	Unit     string `aws:"TargetCapacityUnitType"`
}

type fleetStrategy struct {
	AllocationStrategy           string
	InstanceInterruptionBehavior string
}

// fleetReserved lists the types of reservations that a fleet of reserved capacity may use.
type fleetReserved struct {
	ReservationTypes []string `aws:"ReservationType"`
}

type createFleetOut struct {
	FleetId   string
	Errors    []fleetError  `aws:"ErrorSet"`
	Instances []fleetLaunch `aws:"FleetInstanceSet"`
}

// fleetChoice is the combination of launch template and override that an error or a launch refers to.
type fleetChoice struct {
	LaunchTemplateSpecification templateRef
	Overrides                   fleetOverride
}

type fleetError struct {
	Choice       fleetChoice `aws:"LaunchTemplateAndOverrides"`
	Lifecycle    string
	ErrorCode    string
	ErrorMessage string
}

type fleetLaunch struct {
	Choice       fleetChoice `aws:"LaunchTemplateAndOverrides"`
	Lifecycle    string
	InstanceIds  []string
	InstanceType string
}

// createFleet launches the instances of a fleet of type instant. It rejects other types of fleets.
func createFleet(c *api.Call, in *createFleetIn) (createFleetOut, error) {
	if in.Type != "instant" {
		return createFleetOut{}, &failure.Error{Code: "UnsupportedOperation", Message: "This emulator makes fleets of type instant only."}
	}
	q, err := in.request(c.Fingerprint())
	if err != nil {
		return createFleetOut{}, err
	}
	q.Caller = c.RoleARN()
	if c.IsRestricted() {
		if err := c.Authorize(c.Region.Permissions.ForFleet(q)...); err != nil {
			return createFleetOut{}, err
		}
		if !c.DryRun {
			authorizeOverrides(c, &q)
		}
	}
	if c.DryRun {
		if err := c.Region.Launches.CheckFleet(q); err != nil {
			return createFleetOut{}, err
		}
		return createFleetOut{}, api.DryRunError()
	}
	f, err := c.Region.Launches.CreateFleet(c.Now, q)
	if err != nil {
		return createFleetOut{}, err
	}
	out := createFleetOut{FleetId: f.ID, Errors: []fleetError{}, Instances: []fleetLaunch{}}
	for _, e := range f.Errors {
		out.Errors = append(out.Errors,
			fleetError{Choice: choiceOf(e.Choice), Lifecycle: lifecycle(e.Choice.Spot), ErrorCode: e.Code, ErrorMessage: e.Message})
	}
	for _, l := range f.Launched {
		out.Instances = append(out.Instances, fleetLaunch{
			Choice: choiceOf(l.Choice), Lifecycle: lifecycle(l.Choice.Spot), InstanceIds: l.Instances, InstanceType: l.Choice.Override.InstanceType,
		})
	}
	return out, nil
}

func (in *createFleetIn) request(fingerprint string) (world.FleetRequest, error) {
	q := world.FleetRequest{
		Idempotency:      world.Idempotency{Token: in.ClientToken, Fingerprint: fingerprint},
		OnDemandStrategy: in.OnDemandOptions.AllocationStrategy, SpotStrategy: in.SpotOptions.AllocationStrategy,
	}
	var err error
	if q.OnDemand, q.Spot, err = in.Target.split(); err != nil {
		return world.FleetRequest{}, err
	}
	if q.Market, err = in.market(); err != nil {
		return world.FleetRequest{}, err
	}
	if q.Tags, err = api.Tagging(in.Tags); err != nil {
		return world.FleetRequest{}, err
	}
	for _, config := range in.LaunchTemplateConfigs {
		ref := config.LaunchTemplateSpecification
		fc := world.FleetConfig{TemplateID: ref.LaunchTemplateId, TemplateName: ref.LaunchTemplateName, Version: ref.Version}
		for _, o := range config.Overrides {
			override, err := o.override()
			if err != nil {
				return world.FleetRequest{}, err
			}
			fc.Overrides = append(fc.Overrides, override)
		}
		q.Configs = append(q.Configs, fc)
	}
	return q, nil
}

// split returns the on-demand and the spot part of the target capacity, in units. Capacity for which the request gives
// no type is spot if the default type is spot, otherwise on-demand. Capacity blocks and reserved capacity count as
// on-demand.
func (t fleetTarget) split() (onDemand, spot int, err error) {
	if t.Total < 1 || t.OnDemand < 0 || t.Spot < 0 || t.OnDemand+t.Spot > t.Total {
		return 0, 0,
			&failure.Error{Code: "InvalidTargetCapacitySpecification",
				Message: fmt.Sprintf("The target capacity of %d with %d on-demand and %d spot is invalid.", t.Total, t.OnDemand, t.Spot)}
	}
	if t.Unit != "" && t.Unit != "units" {
		return 0, 0, &failure.Error{Code: "UnsupportedOperation", Message: "This emulator counts capacity in units only."}
	}
	rest := int(t.Total - t.OnDemand - t.Spot)
	switch t.Default {
	case "", "on-demand", "capacity-block", "reserved-capacity":
		return int(t.OnDemand) + rest, int(t.Spot), nil
	case "spot":
		return int(t.OnDemand), int(t.Spot) + rest, nil
	}
	return 0, 0, &failure.Error{Code: "UnsupportedOperation", Message: "This emulator has no capacity of type " + t.Default + "."}
}

// market returns the market type of a fleet of capacity blocks or interruptible reservations; empty for on-demand and
// spot.
func (in *createFleetIn) market() (string, error) {
	types := in.Reserved.ReservationTypes
	switch in.Target.Default {
	case "capacity-block":
		return world.MarketBlock, nil
	case "reserved-capacity":
		if len(types) != 1 || types[0] != world.MarketInterruptible {
			return "",
				&failure.Error{Code: "UnsupportedOperation", Message: "This emulator's fleets of reserved capacity use interruptible-capacity-reservation only."}
		}
		return world.MarketInterruptible, nil
	}
	if len(types) > 0 {
		return "",
			&failure.Error{Code: "InvalidParameterCombination", Message: "ReservedCapacityOptions need the default target capacity type reserved-capacity."}
	}
	return "", nil
}

func (o fleetOverride) override() (world.FleetOverride, error) {
	out := world.FleetOverride{
		InstanceType: o.InstanceType, SubnetID: o.SubnetId, Zone: o.AvailabilityZone, ImageID: o.ImageId,
		Priority: o.Priority, Devices: o.Devices,
	}
	if o.WeightedCapacity != nil {
		if *o.WeightedCapacity <= 0 {
			return world.FleetOverride{}, api.InvalidValue("WeightedCapacity", strconv.FormatFloat(*o.WeightedCapacity, 'f', -1, 64))
		}
		out.Weight = *o.WeightedCapacity
	}
	if o.MaxPrice == "" {
		return out, nil
	}
	dollars, err := strconv.ParseFloat(o.MaxPrice, 64)
	if err != nil || dollars <= 0 || dollars > 1e6 { // no instance costs a million per hour
		return world.FleetOverride{}, api.InvalidValue("MaxPrice", o.MaxPrice)
	}
	out.MaxPrice = catalog.Price(dollars * float64(catalog.Dollar))
	return out, nil
}

func choiceOf(c world.FleetChoice) fleetChoice {
	o := c.Override
	out := fleetChoice{
		LaunchTemplateSpecification: templateRef{LaunchTemplateId: c.TemplateID, Version: c.Version},
		Overrides: fleetOverride{
			InstanceType: o.InstanceType, SubnetId: o.SubnetID, AvailabilityZone: o.Zone, ImageId: o.ImageID, Priority: o.Priority,
		},
	}
	if o.Weight > 0 {
		out.Overrides.WeightedCapacity = &o.Weight
	}
	if o.MaxPrice > 0 {
		out.Overrides.MaxPrice = o.MaxPrice.String()
	}
	return out
}

func lifecycle(spot bool) string {
	if spot {
		return "spot"
	}
	return "on-demand"
}

type runInstancesIn struct {
	world.TemplateData
	Template    templateRef `aws:"LaunchTemplate"`
	MinCount    *int64
	MaxCount    *int64
	SubnetId    string
	ClientToken string
}

func runInstances(c *api.Call, in *runInstancesIn) (reservation, error) {
	if in.MinCount == nil || in.MaxCount == nil {
		return reservation{}, &failure.Error{Code: "MissingParameter", Message: "The request must contain the parameter MinCount and MaxCount"}
	}
	tags, err := api.Tagging(in.Tags)
	if err != nil {
		return reservation{}, err
	}
	q := world.RunRequest{
		Idempotency: world.Idempotency{Token: in.ClientToken, Fingerprint: c.Fingerprint()}, Data: in.TemplateData,
		TemplateID: in.Template.LaunchTemplateId, TemplateName: in.Template.LaunchTemplateName, Version: in.Template.Version,
		SubnetID: in.SubnetId, Min: int(*in.MinCount), Max: int(*in.MaxCount), Tags: tags, Caller: c.RoleARN(),
	}
	if c.IsRestricted() {
		if err := c.Authorize(c.Region.Permissions.ForRunInstances(q)...); err != nil {
			return reservation{}, err
		}
	}
	if c.DryRun {
		if err := c.Region.Launches.CheckRun(c.Now, q); err != nil {
			return reservation{}, err
		}
		return reservation{}, api.DryRunError()
	}
	launched, err := c.Region.Launches.RunInstances(c.Now, q)
	if err != nil {
		return reservation{}, err
	}
	reservations := reservationsOf(c, launched) // at most one, because one call launched all instances
	if len(reservations) == 0 {
		return reservation{OwnerId: c.Caller.Account, Instances: []instance{}}, nil
	}
	return reservations[0], nil
}

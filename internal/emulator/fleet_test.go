package emulator_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// TestFleetLife launches two instances, waits for them to run, tags and terminates them, and checks all state changes.
func TestFleetLife(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var reported []string
	b.server.OnInstance = func(i world.Instance) { reported = append(reported, i.Type+" "+i.State) }
	b.createProfile(t, "node-profile", "node")
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{
		UserData:           aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\necho hi\n"))),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("node-profile")},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: aws.String("of"), Value: aws.String("template")}}},
		},
	})
	in := fleet(name, 2, b.override("m5.xlarge", 0), b.override("m5.large", 1), b.override("m5.large", 2))
	in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("")}}}}
	out, err := b.ec2.CreateFleet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Errors) != 0 || len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 2 ||
		out.Instances[0].InstanceType != "m5.large" {
		t.Fatalf("want both instances as m5.large in one zone, got %+v, errors %s", out.Instances, fleetErrors(out))
	}
	ids := out.Instances[0].InstanceIds
	got := b.instances(t.Context(), t, ids...)
	first := got[0]
	want := map[string]string{"team": "", "aws:ec2:fleet-id": *out.FleetId, "aws:ec2launchtemplate:id": "any", // differs in each run
		"aws:ec2launchtemplate:version": "1"}
	tags := map[string]string{}
	for _, tag := range first.Tags {
		tags[*tag.Key] = *tag.Value
	}
	tags["aws:ec2launchtemplate:id"] = "any"
	if d := cmp.Diff(want, tags); d != "" {
		t.Errorf("tags (-want +got):\n%s", d)
	}
	if first.State.Name != types.InstanceStateNamePending || first.InstanceLifecycle != "" ||
		*first.Placement.AvailabilityZone != "us-east-1b" ||
		first.Architecture != types.ArchitectureValuesX8664 || !strings.HasPrefix(*first.PrivateDnsName, "ip-10-0-") ||
		!strings.HasSuffix(*first.IamInstanceProfile.Arn, ":instance-profile/node-profile") || *first.SecurityGroups[0].GroupName != "demo-node" {
		t.Errorf("new instance: %+v, want it pending in us-east-1b, with its profile", first)
	}
	b.server.Do(func(w *world.World, _ time.Time) {
		i, ok := w.Instance(ids[0])
		if !ok || i.UserData != "#!/bin/bash\necho hi\n" || i.RoleARN != "arn:aws:iam::111122223333:role/node" || i.TemplateName != name {
			t.Errorf("the world's instance is %+v, want the launch's user data, role and template", i)
		}
		if i.Interfaces[0].Tags["of"] != "template" {
			t.Errorf("tags of the interface are %v, want of=template", i.Interfaces[0].Tags)
		}
	})

	b.advance(2 * time.Second)
	b.server.AppendConsole(ids[0], "joined\n")
	console, err := b.ec2.GetConsoleOutput(t.Context(), &ec2.GetConsoleOutputInput{InstanceId: &ids[0]})
	if err != nil || *console.Output != base64.StdEncoding.EncodeToString([]byte("joined\n")) {
		t.Errorf("console output: %v, %v, want the appended line", console, err)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		t.Fatal(err)
	}
	b.advance(3 * time.Second)
	last := b.instances(t.Context(), t, ids[0])[0]
	if last.State.Name != types.InstanceStateNameTerminated || *last.StateReason.Code != "Client.UserInitiatedShutdown" ||
		last.PrivateIpAddress != nil {
		t.Errorf("the terminated instance is %+v, want Client.UserInitiatedShutdown and no address", last)
	}
	b.advance(2 * time.Hour)
	if left := b.instances(t.Context(), t); len(left) != 0 {
		t.Errorf("%d instances are listed two hours later, want none", len(left))
	}
	wantReported := []string{"pending", "pending", "running", "running", "shutting-down", "shutting-down", "terminated", "terminated"}
	for i := range wantReported {
		wantReported[i] = "m5.large " + wantReported[i]
	}
	if d := cmp.Diff(wantReported, reported); d != "" {
		t.Errorf("calls of OnInstance (-want +got):\n%s", d)
	}
}

// TestFleetToken: a repeated request with the same client token launches nothing. Another request with this token is
// rejected.
func TestFleetToken(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	in := fleet(name, 1, b.override("m5.large", 0))
	in.ClientToken = aws.String("claim-1")
	first, err := b.ec2.CreateFleet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.ec2.CreateFleet(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first.Instances[0].InstanceIds, again.Instances[0].InstanceIds); d != "" || *first.FleetId != *again.FleetId {
		t.Errorf("the repeated request launched other instances:\n%s", d)
	}
	other := fleet(name, 1, b.override("m5.xlarge", 0))
	other.ClientToken = in.ClientToken
	if _, err := b.ec2.CreateFleet(t.Context(), other); code(t, err) != "IdempotentParameterMismatch" {
		t.Errorf("another request with the same token: %v, want IdempotentParameterMismatch", err)
	}
	if n := len(b.instances(t.Context(), t)); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
}

// TestFleetShortage: if an override lacks capacity, a fleet uses the next override and returns the error.
func TestFleetShortage(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	b.server.Do(func(*world.World, time.Time) {
		b.estate.Region.Capacity.Limit(world.CapacityPool{Type: "m5.large", Zone: "us-east-1a"}, 1)
		b.estate.Region.Capacity.Limit(world.CapacityPool{Type: "m5.large", Zone: "us-east-1b", CapacityType: "on-demand"}, 0)
	})
	out, err := b.ec2.CreateFleet(t.Context(),
		fleet(name, 3, b.override("m5.large", 0), b.override("m5.large", 1), b.override("m5.xlarge", 2)))
	if err != nil {
		t.Fatal(err)
	}
	launched := map[string]int{}
	for _, i := range out.Instances {
		launched[string(i.InstanceType)+" "+*i.LaunchTemplateAndOverrides.Overrides.AvailabilityZone] = len(i.InstanceIds)
	}
	if d := cmp.Diff(map[string]int{"m5.large us-east-1a": 1, "m5.xlarge us-east-1c": 2}, launched); d != "" {
		t.Errorf("launched (-want +got):\n%s", d)
	}
	errorCodes := map[string]string{} // by zone
	for _, e := range out.Errors {
		errorCodes[*e.LaunchTemplateAndOverrides.Overrides.AvailabilityZone] = *e.ErrorCode
	}
	if d := cmp.Diff(map[string]string{"us-east-1a": "InsufficientInstanceCapacity",
		"us-east-1b": "InsufficientInstanceCapacity"}, errorCodes); d != "" {
		t.Errorf("errors (-want +got):\n%s", d)
	}
	// EC2 can launch another instance in the capacity of a terminated one.
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		t.Fatal(err)
	}
	out, err = b.ec2.CreateFleet(t.Context(), fleet(name, 1, b.override("m5.large", 0)))
	if err != nil || len(out.Instances) != 1 {
		t.Errorf("launch after the termination: %+v, %v, want one instance", out, err)
	}
}

// TestFleetStrategies: each allocation strategy chooses the expected instance type.
func TestFleetStrategies(t *testing.T) {
	t.Parallel()
	priority := func(o types.FleetLaunchTemplateOverridesRequest, p float64) types.FleetLaunchTemplateOverridesRequest {
		o.Priority = &p
		return o
	}
	for name, test := range map[string]struct {
		onDemand types.FleetOnDemandAllocationStrategy
		spot     types.SpotAllocationStrategy
		scarce   world.CapacityPool // has capacity for one of the two instances; zero: none is limited
		want     string
	}{
		"lowest price":                    {want: "m5.large on-demand"},
		"prioritized":                     {onDemand: "prioritized", want: "m5.2xlarge on-demand"},
		"spot lowest price":               {spot: "lowest-price", want: "m5.large spot"},
		"spot price and capacity":         {spot: "price-capacity-optimized", scarce: world.CapacityPool{Type: "m5.large"}, want: "m5.xlarge spot"},
		"spot priority at equal capacity": {spot: "capacity-optimized-prioritized", want: "m5.2xlarge spot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			template := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
			// The most expensive type has the lowest number, which is the highest priority.
			in := fleet(template, 2, priority(b.override("m5.xlarge", 0), 2), priority(b.override("m5.large", 0), 3),
				priority(b.override("m5.2xlarge", 0), 1))
			in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: test.onDemand}
			if test.spot != "" {
				in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
				in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: test.spot}
			}
			b.server.Do(func(*world.World, time.Time) {
				if test.scarce != (world.CapacityPool{}) {
					b.estate.Region.Capacity.Limit(test.scarce, 1)
				}
			})
			out, err := b.ec2.CreateFleet(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got := string(out.Instances[0].InstanceType) + " " + string(out.Instances[0].Lifecycle)
			if got != test.want || len(out.Instances[0].InstanceIds) != 2 {
				t.Errorf("got %d of %s, want 2 of %s", len(out.Instances[0].InstanceIds), got, test.want)
			}
		})
	}
}

// TestFleetRefusals checks EC2's error codes for overrides that cannot be launched.
func TestFleetRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data     types.RequestLaunchTemplateData
		typeName string // instance type; empty: m5.large
		spot     bool
		maxPrice string
		prepare  func(b *fixture)
		want     string
	}{
		"architecture": {typeName: "m6g.large", want: "InvalidParameterValue"},
		"image": {data: types.RequestLaunchTemplateData{ImageId: aws.String("ami-00000000000000000")},
			want: "InvalidAMIID.NotFound"},
		"malformed image": {data: types.RequestLaunchTemplateData{ImageId: aws.String("ami-x")}, want: "InvalidAMIID.Malformed"},
		"type":            {typeName: "m5.huge", want: "InvalidParameterValue"},
		"group": {data: types.RequestLaunchTemplateData{SecurityGroupIds: []string{"sg-00000000000000000"}},
			want: "InvalidGroup.NotFound"},
		"profile": {data: types.RequestLaunchTemplateData{
			IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("none")}},
			want: "InvalidParameterValue"},
		"volume": {data: types.RequestLaunchTemplateData{BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(1)}}}},
			want: "InvalidBlockDeviceMapping"},
		"spot price": {spot: true, maxPrice: "0.0001", want: "SpotMaxPriceTooLow"},
		"addresses":  {prepare: func(b *fixture) { b.estate.PrivateSubnets[0].Free = 0 }, want: "InsufficientFreeAddressesInSubnet"},
		"quota":      {prepare: func(b *fixture) { b.setQuota(world.Quota{Kind: "standard"}, 1) }, want: "VcpuLimitExceeded"},
		"spot quota": {spot: true, prepare: func(b *fixture) { b.setQuota(world.Quota{Kind: "standard", Spot: true}, 1) },
			want: "MaxSpotInstanceCountExceeded"},
		"another quota":      {prepare: func(b *fixture) { b.setQuota(world.Quota{Kind: "p"}, 0) }, want: ""},
		"zone":               {prepare: func(b *fixture) { b.offerOnlyInZoneB("m5.large") }, want: "InvalidFleetConfiguration"},
		"group of other VPC": {prepare: func(b *fixture) { b.estate.NodeSG.VPCID = "vpc-00000000000000000" }, want: "InvalidParameter"},
		"family out of stock": {prepare: func(b *fixture) { b.estate.Region.Capacity.Limit(world.CapacityPool{Type: "m5.*"}, 0) },
			want: "InsufficientInstanceCapacity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			template := b.createTemplate(t, "joiner-a", test.data)
			if test.typeName == "" {
				test.typeName = "m5.large"
			}
			o := b.override(test.typeName, 0)
			if test.maxPrice != "" {
				o.MaxPrice = aws.String(test.maxPrice)
			}
			in := fleet(template, 1, o)
			if test.spot {
				in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
			}
			if test.prepare != nil {
				b.server.Do(func(*world.World, time.Time) { test.prepare(b) })
			}
			out, err := b.ec2.CreateFleet(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(out.Errors) > 0 {
				got = *out.Errors[0].ErrorCode
			}
			if got != test.want || (test.want == "") != (len(out.Instances) == 1) {
				t.Errorf("error %q, want %q, and an instance only without error; %+v", got, test.want, out)
			}
		})
	}
}

// TestFleetErrors checks requests to which EC2 returns an error instead of a fleet.
func TestFleetErrors(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	many := make([]types.FleetLaunchTemplateOverridesRequest, 301) // EC2 accepts 300
	for i := range many {
		many[i] = b.override("m5.large", 0)
	}
	maintain := fleet(name, 1)
	maintain.Type = types.FleetTypeMaintain
	dry := fleet(name, 1, b.override("m5.large", 0))
	dry.DryRun = aws.Bool(true)
	minimum := fleet(name, 1, b.override("m5.large", 0))
	minimum.OnDemandOptions = &types.OnDemandOptionsRequest{MinTargetCapacity: aws.Int32(1)}
	for name, test := range map[string]struct {
		in   *ec2.CreateFleetInput
		want string
	}{
		"no template":        {fleet("none", 1), "InvalidLaunchTemplateName.NotFoundException"},
		"no capacity":        {fleet(name, 0), "InvalidTargetCapacitySpecification"},
		"too many overrides": {fleet(name, 1, many...), "InvalidParameterValue"},
		"type maintain":      {maintain, "UnsupportedOperation"},
		"dry run":            {dry, "DryRunOperation"},
		"not emulated":       {minimum, "UnknownParameter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := b.ec2.CreateFleet(t.Context(), test.in); code(t, err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestRunInstances launches instances without a template, after a dry run.
func TestRunInstances(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	in := &ec2.RunInstancesInput{
		ImageId: aws.String(b.image(t, "arm64")), InstanceType: "m6g.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(2),
		SubnetId: aws.String(b.estate.PublicSubnets[0].ID), DryRun: aws.Bool(true), ClientToken: aws.String("once"),
	}
	if _, err := b.ec2.RunInstances(t.Context(), in); code(t, err) != "DryRunOperation" {
		t.Errorf("dry run: %v, want DryRunOperation", err)
	}
	in.DryRun = nil
	out, err := b.ec2.RunInstances(t.Context(), in)
	if err != nil || len(out.Instances) != 2 || out.Instances[0].PublicIpAddress == nil || out.Instances[0].Architecture != "arm64" {
		t.Fatalf("got %+v, %v, want two arm64 instances with public addresses", out, err)
	}
	if _, err := b.ec2.RunInstances(t.Context(), in); err != nil { // the same client token: launches nothing
		t.Error(err)
	}
	in.UserData = aws.String(base64.StdEncoding.EncodeToString(make([]byte, 16385))) // EC2 accepts 16 KiB
	in.ClientToken = nil
	if _, err := b.ec2.RunInstances(t.Context(), in); code(t, err) != "InvalidParameterValue" {
		t.Errorf("user data of 16,385 bytes: %v, want InvalidParameterValue", err)
	}
	if n := len(b.instances(t.Context(), t)); n != 2 {
		t.Errorf("%d instances, want 2", n)
	}
}

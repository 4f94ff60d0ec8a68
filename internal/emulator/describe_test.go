package emulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/network"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// TestTypes lists all instance types page by page with the SDK, and compares them with the embedded catalog.
func TestTypes(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	catalogTable, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	pages := ec2.NewDescribeInstanceTypesPaginator(b.ec2, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(100),
		Filters: []types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
	})
	n := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.InstanceTypes {
			n++
			want, _ := catalogTable.Facts(string(it.InstanceType))
			gpus := int64(0)
			if it.GpuInfo != nil {
				for _, g := range it.GpuInfo.Gpus {
					gpus += int64(*g.Count)
				}
			}
			wantGPUs := int64(0)
			for _, g := range want.GPUs {
				wantGPUs += g.Count
			}
			if int64(*it.VCpuInfo.DefaultVCpus) != want.Processor.VCPUs || *it.MemoryInfo.SizeInMiB != want.MemoryMiB || gpus != wantGPUs ||
				int64(*it.NetworkInfo.Ipv4AddressesPerInterface) != want.Network.IPv4PerInterface ||
				len(it.NetworkInfo.NetworkCards) != len(want.Network.Cards) ||
				*it.BareMetal != want.BareMetal || (it.InstanceStorageInfo == nil) != (want.Storage.TotalGB == 0) ||
				(it.NeuronInfo == nil) != (len(want.Neuron) == 0) {
				t.Errorf("%s: got %+v, want %+v", it.InstanceType, it, want)
			}
		}
	}
	if n < 1000 {
		t.Errorf("%d types, want at least 1000", n)
	}
	if _, err := b.ec2.DescribeInstanceTypes(t.Context(),
		&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.huge"}}); code(t, err) != "InvalidInstanceType" {
		t.Errorf("unknown type: %v, want InvalidInstanceType", err)
	}
}

// TestOfferings lists the instance types of each zone, and spot prices.
func TestOfferings(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	zones := map[string]int{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(b.ec2,
		&ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.InstanceTypeOfferings {
			zones[*o.Location]++
		}
	}
	if len(zones) != 3 || zones["us-east-1a"] < 500 {
		t.Errorf("types by zone: %v, want three zones with at least 500 types in us-east-1a", zones)
	}
	b.server.Do(func(w *world.World, now time.Time) {
		w.Market(region).SetSpotPrice(now, "m5.large", "us-east-1a", catalog.Dollar/50)
	})
	b.advance(time.Second)
	spot, err := b.ec2.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{
		StartTime: aws.Time(b.clock()), InstanceTypes: []types.InstanceType{"m5.large"},
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
	})
	if err != nil {
		t.Fatal(err)
	}
	prices := map[string]string{}
	for _, p := range spot.SpotPriceHistory {
		prices[*p.AvailabilityZone] = *p.SpotPrice
	}
	if prices["us-east-1a"] != "0.020000" || len(prices) != 3 || prices["us-east-1b"] >= "0.096" {
		t.Errorf("spot prices: %v, want three, 0.020000 in us-east-1a and less than the on-demand price 0.096 in us-east-1b", prices)
	}
}

// TestImages finds images by tag, owner, name and deprecation. A private image of another account is not found.
func TestImages(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Do(func(_ *world.World, now time.Time) {
		b.estate.Region.Images.Register(world.Image{Name: "mine", OwnerID: account, Architecture: "arm64", Tags: map[string]string{"team": "a"}})
		b.estate.Region.Images.Register(world.Image{Name: "theirs", OwnerID: "999988887777", Architecture: "arm64"})
		b.estate.Region.Images.Register(world.Image{Name: "old", OwnerID: "999988887777", Public: true, DeprecatedAt: now.Add(-time.Hour)})
	})
	for name, test := range map[string]struct {
		in   ec2.DescribeImagesInput
		want []string
	}{
		"by tag": {ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("tag:team"),
			Values: []string{"a"}}}}, []string{"mine"}},
		"by tag key": {ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("tag-key"),
			Values: []string{"te*"}}}}, []string{"mine"}},
		"self":                 {ec2.DescribeImagesInput{Owners: []string{"self"}}, []string{"mine"}},
		"private":              {ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"theirs"}}}}, nil},
		"deprecated":           {ec2.DescribeImagesInput{Owners: []string{"999988887777"}}, nil},
		"including deprecated": {ec2.DescribeImagesInput{Owners: []string{"999988887777"}, IncludeDeprecated: aws.Bool(true)}, []string{"old"}},
		"by pattern": {ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
			{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-arm64-standard-1.3?-v20260715"}},
			{Name: aws.String("name"), Values: []string{"*-1.30-*", "*-1.36-*"}},
		}}, []string{"amazon-eks-node-al2023-arm64-standard-1.30-v20260715", "amazon-eks-node-al2023-arm64-standard-1.36-v20260715"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := b.ec2.DescribeImages(t.Context(), &test.in)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range out.Images {
				got = append(got, *i.Name)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("images (-want +got):\n%s", d)
			}
		})
	}
	_, err := b.ec2.DescribeImages(t.Context(),
		&ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("colour"), Values: []string{"red"}}}})
	if code(t, err) != "InvalidParameterValue" {
		t.Errorf("unknown filter: %v, want InvalidParameterValue", err)
	}
}

// TestTemplates creates a launch template with the parameters that the controller sets, and reads it back.
func TestTemplates(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	data := &types.RequestLaunchTemplateData{
		ImageId: aws.String("ami-0123456789abcdef0"), UserData: aws.String("aGk="), EbsOptimized: aws.Bool(true),
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
				VolumeSize: aws.Int32(30), VolumeType: "gp3", Encrypted: aws.Bool(false), Iops: aws.Int32(3000),
				Throughput: aws.Int32(125), DeleteOnTermination: aws.Bool(true),
			}}},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: "required",
			HttpPutResponseHopLimit: aws.Int32(1), HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled", InstanceMetadataTags: "disabled"},
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
			DeviceIndex: aws.Int32(0), NetworkCardIndex: aws.Int32(0), Groups: []string{"sg-1", "sg-2"}, AssociatePublicIpAddress: aws.Bool(false),
			InterfaceType: aws.String("interface"), Ipv4PrefixCount: aws.Int32(2),
			ConnectionTrackingSpecification: &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: aws.Int32(600)},
		}},
		Monitoring:                       &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(true)},
		Placement:                        &types.LaunchTemplatePlacementRequest{Tenancy: "default"},
		CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationPreference: "none"},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: "volume",
			Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("")}}}},
	}
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("joiner/1"), LaunchTemplateData: data, ClientToken: aws.String("once"),
		TagSpecifications: []types.TagSpecification{{ResourceType: "launch-template",
			Tags: []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}}}}}
	created, err := b.ec2.CreateLaunchTemplate(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.ec2.CreateLaunchTemplate(t.Context(), in)
	if err != nil || *again.LaunchTemplate.LaunchTemplateId != *created.LaunchTemplate.LaunchTemplateId {
		t.Errorf("the call repeated with the same token: %v, %v, want the same template", again, err)
	}
	in.ClientToken = aws.String("twice")
	if _, err := b.ec2.CreateLaunchTemplate(t.Context(), in); code(t, err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		t.Errorf("a used name: %v, want InvalidLaunchTemplateName.AlreadyExistsException", err)
	}
	read, err := b.ec2.DescribeLaunchTemplateVersions(t.Context(),
		&ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("joiner/1"), Versions: []string{"$Latest"}})
	if err != nil {
		t.Fatal(err)
	}
	d := read.LaunchTemplateVersions[0].LaunchTemplateData
	nic, ebs := d.NetworkInterfaces[0], d.BlockDeviceMappings[0].Ebs
	if *d.UserData != "aGk=" || *ebs.VolumeSize != 30 || *ebs.Encrypted || *nic.AssociatePublicIpAddress ||
		cmp.Diff([]string{"sg-1", "sg-2"}, nic.Groups) != "" ||
		*nic.Ipv4PrefixCount != 2 || *nic.ConnectionTrackingSpecification.TcpEstablishedTimeout != 600 ||
		d.MetadataOptions.HttpTokens != "required" ||
		d.CapacityReservationSpecification.CapacityReservationPreference != "none" ||
		*d.TagSpecifications[0].Tags[0].Value != "" || !*d.Monitoring.Enabled {
		t.Errorf("the created template has the data %+v, want those of the request", d)
	}
	found, err := b.ec2.DescribeLaunchTemplates(t.Context(),
		&ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{{Name: aws.String("tag:eks:eks-cluster-name"), Values: []string{"demo"}}}})
	if err != nil || len(found.LaunchTemplates) != 1 {
		t.Errorf("templates found by tag: %v, %v, want one", found, err)
	}
	if _, err := b.ec2.DeleteLaunchTemplate(t.Context(),
		&ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("joiner/1")}); err != nil {
		t.Error(err)
	}
	if _, err := b.ec2.DescribeLaunchTemplates(t.Context(),
		&ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"joiner/1"}}); code(t,
		err) != "InvalidLaunchTemplateName.NotFoundException" {
		t.Errorf("after the deletion: %v, want InvalidLaunchTemplateName.NotFoundException", err)
	}
	in.LaunchTemplateData.UserData = aws.String("not base64!")
	if _, err := b.ec2.CreateLaunchTemplate(t.Context(), in); code(t, err) != "InvalidUserData.Malformed" {
		t.Errorf("user data that is not base64: %v, want InvalidUserData.Malformed", err)
	}
}

// TestPages lists instances in pages of five. The instances of the first page are terminated, and disappear from the
// list before the second page is read.
func TestPages(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	out, err := b.ec2.CreateFleet(t.Context(),
		fleet(b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{}), 12, b.override("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	ids := out.Instances[0].InstanceIds
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids[:5]}); err != nil {
		t.Fatal(err)
	}
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5),
		Filters: []types.Filter{{Name: aws.String("tag-key"), Values: []string{"aws:ec2:fleet-id"}}}}
	var seen []string
	for {
		page, err := b.ec2.DescribeInstances(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				seen = append(seen, *i.InstanceId)
			}
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			break
		}
		b.advance(2 * time.Hour) // EC2 no longer lists the terminated instances
	}
	if d := cmp.Diff(ids, seen); d != "" {
		t.Errorf("instances seen (-want +got):\n%s", d)
	}
	if _, err := b.ec2.DescribeInstances(t.Context(),
		&ec2.DescribeInstancesInput{NextToken: aws.String("junk"), MaxResults: aws.Int32(5)}); code(t, err) != "InvalidPaginationToken" {
		t.Errorf("an invalid token: %v, want InvalidPaginationToken", err)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: []string{"i-00000000000000000"}}); code(t, err) != "InvalidInstanceID.NotFound" {
		t.Errorf("an unknown instance: %v, want InvalidInstanceID.NotFound", err)
	}
}

// TestNetwork lists the network resources of the fixture.
func TestNetwork(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	found, err := b.ec2.DescribeSubnets(t.Context(),
		&ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"demo"}}}})
	if err != nil || len(found.Subnets) != 3 || *found.Subnets[0].AvailableIpAddressCount != 8187 ||
		*found.Subnets[0].AvailabilityZoneId != b.estate.Region.Zones()[0].ID {
		t.Errorf("%d subnets, %v, want 3 with 8187 free addresses each (a /19 without AWS's five)", len(found.Subnets), err)
	}
	groups, err := b.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{b.estate.NodeSG.ID}})
	if err != nil || len(groups.SecurityGroups[0].IpPermissions[0].UserIdGroupPairs) != 2 ||
		*groups.SecurityGroups[0].IpPermissionsEgress[0].IpRanges[0].CidrIp != "0.0.0.0/0" {
		t.Errorf("group: %+v, %v, want ingress from two groups and egress to all addresses", groups, err)
	}
	routes, err := b.ec2.DescribeRouteTables(t.Context(),
		&ec2.DescribeRouteTablesInput{Filters: []types.Filter{{Name: aws.String("association.subnet-id"),
			Values: []string{b.estate.PrivateSubnets[0].ID}}}})
	if err != nil || len(routes.RouteTables) != 1 || routes.RouteTables[0].Routes[1].NatGatewayId == nil ||
		len(routes.RouteTables[0].Associations) != 3 {
		t.Errorf("routes: %+v, %v, want a NAT gateway and three subnets", routes, err)
	}
	zones, err := b.ec2.DescribeAvailabilityZones(t.Context(), &ec2.DescribeAvailabilityZonesInput{})
	if err != nil || len(zones.AvailabilityZones) != 3 {
		t.Errorf("zones: %+v, %v, want 3", zones, err)
	}
	b.server.Do(func(*world.World, time.Time) {
		b.estate.Region.Network.CreateEndpoint(network.Endpoint{VPCID: b.estate.VPC.ID,
			Service: "com.amazonaws.us-east-1.sts", Kind: "Interface", GroupIDs: []string{b.estate.NodeSG.ID}})
	})
	endpoints, err := b.ec2.DescribeVpcEndpoints(t.Context(),
		&ec2.DescribeVpcEndpointsInput{Filters: []types.Filter{{Name: aws.String("service-name"), Values: []string{"*.sts"}}}})
	if err != nil || len(endpoints.VpcEndpoints) != 1 || *endpoints.VpcEndpoints[0].Groups[0].GroupName != "demo-node" {
		t.Errorf("endpoints: %+v, %v, want that of STS with the group demo-node", endpoints, err)
	}
	reservations, err := b.ec2.DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{})
	if err != nil || len(reservations.CapacityReservations) != 0 {
		t.Errorf("reservations: %+v, %v, want none", reservations, err)
	}
}

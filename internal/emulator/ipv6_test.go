package emulator_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// TestIPv6 launches an instance with addresses and prefixes of both IP families, and reads them with the SDK.
func TestIPv6(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	subnet := b.estate.PrivateSubnets[0]
	spec := []types.InstanceNetworkInterfaceSpecification{{
		DeviceIndex: aws.Int32(0), SubnetId: aws.String(subnet.ID), Groups: []string{b.estate.NodeGroup.ID},
		Ipv6AddressCount: aws.Int32(1), PrimaryIpv6: aws.Bool(true), Ipv6PrefixCount: aws.Int32(1), Ipv4PrefixCount: aws.Int32(2),
	}}
	in := &ec2.RunInstancesInput{ImageId: aws.String(b.image(t, "x86_64")), InstanceType: "m5.large",
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), NetworkInterfaces: spec}
	if _, err := b.ec2.RunInstances(t.Context(), in); code(t, err) != "InvalidParameterValue" {
		t.Errorf("in a subnet without IPv6: %v", err)
	}
	b.server.Do(func(*world.World, time.Time) { b.estate.Region.Network.EnableIPv6(b.estate.VPC) })
	free := subnet.Free
	out, err := b.ec2.RunInstances(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet.ID}})
	if err != nil {
		t.Fatal(err)
	}
	six := netip.MustParsePrefix(*subnets.Subnets[0].Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock)
	if left := int(*subnets.Subnets[0].AvailableIpAddressCount); free-left != 1+2*16 || six.Bits() != 64 {
		t.Errorf("the launch used %d IPv4 addresses, want 33; the IPv6 block is %s", free-left, six)
	}
	i := b.instances(t.Context(), t, *out.Instances[0].InstanceId)[0]
	ni := i.NetworkInterfaces[0]
	if len(ni.Ipv6Addresses) != 1 || len(ni.Ipv6Prefixes) != 1 || len(ni.Ipv4Prefixes) != 2 {
		t.Fatalf("the interface has %d IPv6 addresses, %d IPv6 prefixes and %d IPv4 prefixes, want 1, 1 and 2", len(ni.Ipv6Addresses),
			len(ni.Ipv6Prefixes), len(ni.Ipv4Prefixes))
	}
	address, block := netip.MustParseAddr(*i.Ipv6Address), netip.MustParsePrefix(*ni.Ipv6Prefixes[0].Ipv6Prefix)
	if *ni.Ipv6Addresses[0].Ipv6Address != address.String() || !*ni.Ipv6Addresses[0].IsPrimaryIpv6 || !six.Contains(address) ||
		block.Bits() != 80 || !six.Contains(block.Addr()) || block.Contains(address) {
		t.Errorf("address %s (of the interface: %+v) and prefix %s, in the subnet's block %s", address, ni.Ipv6Addresses[0], block, six)
	}
	four := netip.MustParsePrefix(*ni.Ipv4Prefixes[0].Ipv4Prefix)
	if four.Bits() != 28 || !subnet.CIDR.Contains(four.Addr()) ||
		four == netip.MustParsePrefix(*ni.Ipv4Prefixes[1].Ipv4Prefix) || four.Masked() != four {
		t.Errorf("IPv4 prefixes: %s and %s", four, *ni.Ipv4Prefixes[1].Ipv4Prefix)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*i.InstanceId}}); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Minute)
	if subnet.Free != free {
		t.Errorf("%d addresses are free after the termination, want %d", subnet.Free, free)
	}
}

// TestClusterOfIPv6 describes a cluster with an IPv6 service CIDR.
func TestClusterOfIPv6(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Do(func(_ *world.World, now time.Time) {
		if _, err := b.estate.Region.EKS.CreateCluster(now, ekscluster.Cluster{Name: "six", ServiceCIDR: "fd30:1c53:5f8a::/108"}); err != nil {
			t.Error(err)
		}
	})
	out, err := b.eks.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("six")})
	if err != nil {
		t.Fatal(err)
	}
	if n := out.Cluster.KubernetesNetworkConfig; n.IpFamily != "ipv6" ||
		aws.ToString(n.ServiceIpv6Cidr) != "fd30:1c53:5f8a::/108" || n.ServiceIpv4Cidr != nil {
		t.Errorf("family %s, services %v and %v", n.IpFamily, aws.ToString(n.ServiceIpv6Cidr), aws.ToString(n.ServiceIpv4Cidr))
	}
}

// TestThrottled: Throttled counts throttled calls, and no other failed calls.
func TestThrottled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.Throttle = world.EC2Throttle() })
	for range 103 {
		if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); err != nil && code(t, err) != "RequestLimitExceeded" {
			t.Fatal(err)
		}
	}
	if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{VpcIds: []string{"vpc-0"}}); err == nil {
		t.Error("a call was not throttled, although the bucket is empty")
	}
	b.pass(time.Minute)
	if _, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}}); err == nil {
		t.Error("subnet-0 exists")
	}
	if made, refused := b.server.Calls(), b.server.Throttled(); made["ec2:DescribeVpcs"] != 104 ||
		refused["ec2:DescribeVpcs"] != 4 || len(refused) != 1 {
		t.Errorf("calls %v, throttled %v; want 104 and 4 of ec2:DescribeVpcs", made, refused)
	}
}

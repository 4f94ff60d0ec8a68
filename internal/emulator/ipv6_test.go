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
	b := newFixture(t)
	subnet := b.estate.PrivateSubnets[0]
	interfaces := []types.InstanceNetworkInterfaceSpecification{{
		DeviceIndex: aws.Int32(0), SubnetId: aws.String(subnet.ID), Groups: []string{b.estate.NodeSG.ID},
		Ipv6AddressCount: aws.Int32(1), PrimaryIpv6: aws.Bool(true), Ipv6PrefixCount: aws.Int32(1), Ipv4PrefixCount: aws.Int32(2),
	}}
	in := &ec2.RunInstancesInput{ImageId: aws.String(b.image(t, "x86_64")), InstanceType: "m5.large",
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), NetworkInterfaces: interfaces}
	if _, err := b.ec2.RunInstances(t.Context(), in); code(t, err) != "InvalidParameterValue" {
		t.Errorf("launch in a subnet without IPv6: %v, want InvalidParameterValue", err)
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
	ipv6Block := netip.MustParsePrefix(*subnets.Subnets[0].Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock)
	if left := int(*subnets.Subnets[0].AvailableIpAddressCount); free-left != 1+2*16 || ipv6Block.Bits() != 64 {
		t.Errorf("%d IPv4 addresses are used, want 33: one, and two /28 blocks; the IPv6 block is %s, want a /64", free-left, ipv6Block)
	}
	i := b.instances(t.Context(), t, *out.Instances[0].InstanceId)[0]
	ni := i.NetworkInterfaces[0]
	if len(ni.Ipv6Addresses) != 1 || len(ni.Ipv6Prefixes) != 1 || len(ni.Ipv4Prefixes) != 2 {
		t.Fatalf("the interface has %d IPv6 addresses, %d IPv6 prefixes and %d IPv4 prefixes, want 1, 1 and 2", len(ni.Ipv6Addresses),
			len(ni.Ipv6Prefixes), len(ni.Ipv4Prefixes))
	}
	address, ipv6Prefix := netip.MustParseAddr(*i.Ipv6Address), netip.MustParsePrefix(*ni.Ipv6Prefixes[0].Ipv6Prefix)
	if *ni.Ipv6Addresses[0].Ipv6Address != address.String() || !*ni.Ipv6Addresses[0].IsPrimaryIpv6 || !ipv6Block.Contains(address) ||
		ipv6Prefix.Bits() != 80 || !ipv6Block.Contains(ipv6Prefix.Addr()) || ipv6Prefix.Contains(address) {
		t.Errorf("address %s (of the interface: %+v) and prefix %s, want a primary address and a /80 prefix, disjoint, in %s", address,
			ni.Ipv6Addresses[0], ipv6Prefix, ipv6Block)
	}
	ipv4Prefix := netip.MustParsePrefix(*ni.Ipv4Prefixes[0].Ipv4Prefix)
	if ipv4Prefix.Bits() != 28 || !subnet.CIDR.Contains(ipv4Prefix.Addr()) ||
		ipv4Prefix == netip.MustParsePrefix(*ni.Ipv4Prefixes[1].Ipv4Prefix) || ipv4Prefix.Masked() != ipv4Prefix {
		t.Errorf("IPv4 prefixes: %s and %s, want two different /28 blocks of the subnet", ipv4Prefix, *ni.Ipv4Prefixes[1].Ipv4Prefix)
	}
	if _, err := b.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*i.InstanceId}}); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Minute)
	if subnet.Free != free {
		t.Errorf("%d addresses are free after the termination, want %d", subnet.Free, free)
	}
}

// TestIPv6Cluster describes a cluster with an IPv6 service CIDR.
func TestIPv6Cluster(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
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
		t.Errorf("IP family %s, CIDRs %v and %v, want only IPv6", n.IpFamily, aws.ToString(n.ServiceIpv6Cidr), aws.ToString(n.ServiceIpv4Cidr))
	}
}

package offerings

import (
	"errors"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/node/bootstrap"
	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/reading"
)

// UserDataInput returns the input of the user data for the claim's instance. pods is the pod limit of the node.
func (o *RequestBuilder) UserDataInput(claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass, image ami.Image, capacityType string,
	pods int64) bootstrap.Node {
	n := conversion.BootstrapNode(claim, class, capacityType, pods)
	n.Cluster, n.ImageName = o.Cluster, image.Name
	return n
}

// Blueprint returns the parameters of an instance except its type, zone and subnet. image is the ID of the AMI.
func Blueprint(class *awsv1.EC2NodeClass, image, capacityType string, userData []byte, ipv6 bool) ec2.Blueprint {
	spec := class.Spec
	b := ec2.Blueprint{
		ImageID: image, UserData: userData, Profile: class.Status.InstanceProfile, CapacityType: capacityType,
		Disks: disks(spec), Metadata: metadata(spec.MetadataOptions), PublicIP: spec.AssociatePublicIPAddress, IPv6: ipv6,
	}
	// If the class selects capacity reservations, only launches that target a reservation may use one. Without this
	// setting, EC2 also uses open reservations for other launches.
	b.Unreserved = len(spec.CapacityReservationSelectorTerms) > 0
	for _, g := range class.Status.SecurityGroups {
		b.SecurityGroups = append(b.SecurityGroups, g.ID)
	}
	if spec.DetailedMonitoring != nil {
		b.Monitoring = *spec.DetailedMonitoring
	}
	if spec.IPPrefixCount != nil {
		b.IPPrefixes = *spec.IPPrefixCount
	}
	if spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil {
		b.NestedVirtualization = *spec.CPUOptions.NestedVirtualization
	}
	for _, n := range spec.NetworkInterfaces {
		b.Interfaces = append(b.Interfaces, ec2.Interface{Card: n.NetworkCardIndex, Device: n.DeviceIndex, Type: string(n.InterfaceType)})
	}
	if t := spec.ConnectionTracking; t != nil {
		b.Tracking = ec2.Tracking{TCPEstablished: t.TCPEstablishedTimeout, UDPStream: t.UDPStreamTimeout, UDP: t.UDPTimeout}
	}
	return b
}

// metadata returns the metadata options, with the CRD's defaults for unset fields.
func metadata(m *awsv1.MetadataOptions) ec2.Metadata {
	out := ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 1, Tokens: "required"}
	if m == nil {
		return out
	}
	set(&out.Endpoint, m.HTTPEndpoint)
	set(&out.IPv6, m.HTTPProtocolIPv6)
	set(&out.Tokens, m.HTTPTokens)
	if m.HTTPPutResponseHopLimit != nil {
		out.HopLimit = int32(min(*m.HTTPPutResponseHopLimit, 64)) // 64 is EC2's maximum
	}
	return out
}

// disks returns the volumes that the class maps, or the default volumes of its AMI family.
func disks(spec awsv1.EC2NodeClassSpec) []ec2.Disk {
	if len(spec.BlockDeviceMappings) == 0 {
		return familyDisks(spec.ResolvedAMIFamily())
	}
	var out []ec2.Disk
	for _, m := range spec.BlockDeviceMappings {
		if m.EBS == nil || m.DeviceName == nil {
			continue // validation reports such a mapping
		}
		e := m.EBS
		d := ec2.Disk{
			Device: *m.DeviceName, IOPS: narrow(e.IOPS), Throughput: narrow(e.Throughput), Encrypted: e.Encrypted,
			InitializationRate: e.VolumeInitializationRate, DeleteOnTermination: e.DeleteOnTermination,
		}
		set(&d.Type, e.VolumeType)
		set(&d.KMSKey, e.KMSKeyID)
		set(&d.Snapshot, e.SnapshotID)
		if e.VolumeSize != nil {
			d.GiB = int32(conversion.GiBOf(e))
		}
		out = append(out, d)
	}
	return out
}

// familyDisks returns the volumes of an AMI family for a class that maps no volumes. The sizes are Karpenter's.
func familyDisks(family string) []ec2.Disk {
	isEncrypted := true
	disk := func(device string, gib int32) ec2.Disk {
		return ec2.Disk{Device: device, GiB: gib, Type: "gp3", Encrypted: &isEncrypted}
	}
	switch family {
	case catalog.Custom:
		return nil // the devices of a custom image are not known
	case catalog.Bottlerocket:
		return []ec2.Disk{disk("/dev/xvda", 4), disk("/dev/xvdb", 20)}
	case catalog.Windows2019, catalog.Windows2022, catalog.Windows2025:
		return []ec2.Disk{disk("/dev/sda1", 50)}
	}
	return []ec2.Disk{disk("/dev/xvda", 20)}
}

// ReasonUserDataInvalid is the condition reason for user data that cannot be used.
const ReasonUserDataInvalid = "UserDataInvalid"

// ReasonOf returns the condition reason of a user data error.
func ReasonOf(err error) string {
	if errors.Is(err, bootstrap.ErrTooLong) {
		return awsv1.ReasonUserDataSizeLimitExceeded
	}
	return ReasonUserDataInvalid
}

func set(target, source *string) {
	if source != nil {
		*target = *source
	}
}

// narrow converts a number to 32 bits; numbers above the range become the maximum.
func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	w := int32(min(*n, 1<<31-1))
	return &w
}

// JudgeUserData renders user data as for a launch, and parses it as the instance would, once for each AMI. version is
// the Kubernetes version. The Problem is set if user data cannot be rendered. In preflight mode enforce, it is also set
// if user data will certainly keep every node from joining.
func (o *RequestBuilder) JudgeUserData(class *awsv1.EC2NodeClass, images []ami.Image, version string) (Preflight, Problem) {
	p := preflightOf(class)
	if len(images) == 0 {
		images = []ami.Image{{}} // judge user data once, without an AMI
	}
	claim := ProbeClaim()
	for _, image := range images {
		in := userdata.Input{
			Family: class.Spec.ResolvedAMIFamily(), Image: image.Name, Arch: image.Arch, Version: version,
			Cluster: o.Cluster.Name, Endpoint: o.Cluster.Endpoint, CA: o.Cluster.CA,
		}
		set(&in.Own, class.Spec.UserData)
		const pods = 110 // kubelet's default; the real limit depends on the instance type
		data, err := bootstrap.UserData(o.UserDataInput(claim, class, image, karpv1.CapacityTypeOnDemand, pods))
		if err != nil {
			p.Broken = renderProblem(in, err)
			return p, p.Broken
		}
		if in.Family != catalog.Custom { // instances of family Custom get in.Own unchanged
			in.Data = data
		}
		if p.Mode != awsv1.PreflightOff {
			p.add(reading.Read(in).Problems)
		}
	}
	for _, problem := range p.problems {
		if problem.IsFatal() && p.Mode == awsv1.PreflightEnforce {
			return p, Problem{ReasonUserDataInvalid, ProblemsText(p.fatal())}
		}
	}
	return p, Problem{}
}

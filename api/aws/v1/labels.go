package v1

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Labels of Nodes on EC2, for requirements and pods. All values are strings. The operators Gt, Lt, Gte and Lte compare
// values that are whole numbers.
const (
	// LabelNodeClass holds the name of the EC2NodeClass.
	LabelNodeClass = Group + "/ec2nodeclass"

	// LabelInstanceCategory is the part of the instance type before the generation, for example m, c, inf.
	LabelInstanceCategory = Group + "/instance-category"
	// LabelInstanceFamily is the part of the instance type before the dot, for example m7i-flex.
	LabelInstanceFamily = Group + "/instance-family"
	// LabelInstanceGeneration is the first number in the instance type, for example 7.
	LabelInstanceGeneration = Group + "/instance-generation"
	// LabelInstanceSize is the part of the instance type after the dot, for example 2xlarge.
	LabelInstanceSize = Group + "/instance-size"
	// LabelInstanceCapabilityFlex is "true" for flex types, else "false".
	LabelInstanceCapabilityFlex = Group + "/instance-capability-flex"
	// LabelInstanceHypervisor is the hypervisor: nitro, xen, or empty for bare metal.
	LabelInstanceHypervisor = Group + "/instance-hypervisor"
	// LabelInstanceEncryptionInTransitSupported is "true" if the instance type supports encryption in transit, else "false".
	LabelInstanceEncryptionInTransitSupported = Group + "/instance-encryption-in-transit-supported"
	// LabelInstanceTenancy is the tenancy: default or dedicated.
	LabelInstanceTenancy = Group + "/instance-tenancy"

	// LabelInstanceCPU is the number of vCPUs.
	LabelInstanceCPU = Group + "/instance-cpu"
	// LabelInstanceCPUManufacturer is the manufacturer of the CPU in lower case: intel, amd, aws or another.
	LabelInstanceCPUManufacturer = Group + "/instance-cpu-manufacturer"
	// LabelInstanceCPUSustainedClockSpeedMHz is the sustained clock speed of the CPU, in MHz.
	LabelInstanceCPUSustainedClockSpeedMHz = Group + "/instance-cpu-sustained-clock-speed-mhz"
	// LabelInstanceMemory is the memory in MiB.
	LabelInstanceMemory = Group + "/instance-memory"
	// LabelInstanceEBSBandwidth is the maximum bandwidth to EBS volumes, in Mbit/s.
	LabelInstanceEBSBandwidth = Group + "/instance-ebs-bandwidth"
	// LabelInstanceNetworkBandwidth is the baseline network bandwidth, in Mbit/s.
	LabelInstanceNetworkBandwidth = Group + "/instance-network-bandwidth"
	// LabelInstanceLocalNVMe is the total size of the instance store NVMe disks, in GB. Absent if the instance type has
	// no such disks.
	LabelInstanceLocalNVMe = Group + "/instance-local-nvme"

	// LabelInstanceGPUName is the model of the GPU in lower case, for example t4.
	LabelInstanceGPUName = Group + "/instance-gpu-name"
	// LabelInstanceGPUManufacturer is the manufacturer of the GPU in lower case.
	LabelInstanceGPUManufacturer = Group + "/instance-gpu-manufacturer"
	// LabelInstanceGPUCount is the number of GPUs.
	LabelInstanceGPUCount = Group + "/instance-gpu-count"
	// LabelInstanceGPUMemory is the memory of one GPU in MiB.
	LabelInstanceGPUMemory = Group + "/instance-gpu-memory"
	// LabelInstanceAcceleratorName is the model of the inference or training accelerator in lower case.
	LabelInstanceAcceleratorName = Group + "/instance-accelerator-name"
	// LabelInstanceAcceleratorManufacturer is the manufacturer of the accelerator in lower case.
	LabelInstanceAcceleratorManufacturer = Group + "/instance-accelerator-manufacturer"
	// LabelInstanceAcceleratorCount is the number of accelerators.
	LabelInstanceAcceleratorCount = Group + "/instance-accelerator-count"

	// LabelCapacityReservationID is the ID of the capacity reservation that a reserved node runs in.
	LabelCapacityReservationID = Group + "/capacity-reservation-id"
	// LabelCapacityReservationType is the type of the capacity reservation: default or capacity-block.
	LabelCapacityReservationType = Group + "/capacity-reservation-type"
	// LabelCapacityReservationInterruptible is "true" if the capacity reservation is interruptible, else "false".
	LabelCapacityReservationInterruptible = Group + "/capacity-reservation-interruptible"
	// LabelPlacementGroupID is the ID of the placement group that a node runs in.
	LabelPlacementGroupID = Group + "/placement-group-id"
	// LabelPlacementGroupPartition is the node's partition in the placement group, counted from 1.
	LabelPlacementGroupPartition = Group + "/placement-group-partition"

	// LabelZoneID is the ID of the zone, which is the same in all AWS accounts, for example use1-az4.
	LabelZoneID = "topology.k8s.aws/zone-id"
	// LabelEBSZone is the zone label of the EBS CSI driver. It is equivalent to topology.kubernetes.io/zone.
	LabelEBSZone = "topology.ebs.csi.aws.com/zone"
)

// Annotations.
const (
	// AnnotationHash is the drift hash of the node class, in decimal, on EC2NodeClasses and NodeClaims.
	AnnotationHash = Group + "/ec2nodeclass-hash"
	// AnnotationHashVersion is the version of the algorithm of AnnotationHash.
	AnnotationHashVersion = Group + "/ec2nodeclass-hash-version"
	// AnnotationInstanceProfile is the instance profile of a NodeClaim's instance. The profile must not be deleted before the instance.
	AnnotationInstanceProfile = Group + "/instance-profile-name"
	// AnnotationTagged is "true" on a NodeClaim once its instance has the tags that are set after registration.
	AnnotationTagged = Group + "/tagged"
	// AnnotationClusterNameTagged is "true" on a NodeClaim once its instance has the tag TagEKSClusterName.
	AnnotationClusterNameTagged = "compatibility." + Group + "/cluster-name-tagged"
)

// FinalizerTermination is on an EC2NodeClass until no NodeClaim uses it and the AWS resources created for it are deleted.
const FinalizerTermination = Group + "/termination"

// Tags in AWS. karpv1.KeyClusterUID is also a tag.
const (
	// TagClusterPrefix marks a resource of the cluster. The cluster's name follows the prefix; the value is TagClusterOwned.
	TagClusterPrefix = "kubernetes.io/cluster/"
	// TagClusterOwned is the value of this tag on resources that exist only for the cluster.
	TagClusterOwned = "owned"
	// TagEKSClusterName holds the cluster's name.
	TagEKSClusterName = "eks:eks-cluster-name"
	// TagNodePool holds the NodePool's name; empty for a NodeClaim without a NodePool.
	TagNodePool = karpv1.LabelNodePool
	// TagNodeClaim holds the NodeClaim's name.
	TagNodeClaim = karpv1.Group + "/nodeclaim"
	// TagNodeClass holds the EC2NodeClass's name.
	TagNodeClass = LabelNodeClass
	// TagName holds the Node's name, which the EC2 console shows.
	TagName = "Name"
	// LaunchTemplatePrefix is the prefix of the names of launch templates.
	LaunchTemplatePrefix = Group
)

// Extended resources that EC2 instance types can have.
const (
	ResourceNVIDIAGPU          corev1.ResourceName = "nvidia.com/gpu"
	ResourceAMDGPU             corev1.ResourceName = "amd.com/gpu"
	ResourceNeuron             corev1.ResourceName = "aws.amazon.com/neuron"
	ResourceNeuronCore         corev1.ResourceName = "aws.amazon.com/neuroncore"
	ResourceGaudi              corev1.ResourceName = "habana.ai/gaudi"
	ResourcePodENI             corev1.ResourceName = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4Address corev1.ResourceName = "vpc.amazonaws.com/PrivateIPv4Address"
	ResourceEFA                corev1.ResourceName = "vpc.amazonaws.com/efa"
	ResourceNIPSlots           corev1.ResourceName = "eks.amazonaws.com/nip-slots" // requested by pods that use Nitro Enclaves
)

// Windows builds of the Windows AMI families: the values of the label node.kubernetes.io/windows-build.
const (
	Windows2019Build = "10.0.17763"
	Windows2022Build = "10.0.20348"
	Windows2025Build = "10.0.26100"
)

// UsableLabels returns the labels under karpenter.k8s.aws that users may require or set. The CRDs reject other labels
// of this domain. Their rules list the labels in this order.
func UsableLabels() []string {
	return []string{
		LabelInstanceTenancy,
		LabelCapacityReservationType,
		LabelCapacityReservationID,
		LabelCapacityReservationInterruptible,
		LabelNodeClass,
		LabelInstanceEncryptionInTransitSupported,
		LabelInstanceCategory,
		LabelInstanceHypervisor,
		LabelInstanceFamily,
		LabelInstanceGeneration,
		LabelInstanceLocalNVMe,
		LabelInstanceSize,
		LabelInstanceCPU,
		LabelInstanceCPUManufacturer,
		LabelInstanceCPUSustainedClockSpeedMHz,
		LabelInstanceMemory,
		LabelInstanceEBSBandwidth,
		LabelInstanceNetworkBandwidth,
		LabelInstanceGPUName,
		LabelInstanceGPUManufacturer,
		LabelInstanceGPUCount,
		LabelInstanceGPUMemory,
		LabelInstanceAcceleratorName,
		LabelInstanceAcceleratorManufacturer,
		LabelInstanceAcceleratorCount,
		LabelInstanceCapabilityFlex,
		LabelPlacementGroupID,
		LabelPlacementGroupPartition,
	}
}

// WellKnownLabels returns the labels that offerings of EC2 define: Karpenter's well-known labels and those of EC2.
// LabelNodeClass is not among them: it names the node class of a node, not a property of an offering.
func WellKnownLabels() []string {
	labels := append(karpv1.WellKnownLabels(), LabelZoneID)
	for _, label := range UsableLabels() {
		if label != LabelNodeClass {
			labels = append(labels, label)
		}
	}
	return labels
}

package v1

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Labels of Nodes on EC2, which requirements and pods may use. Values are texts; the numeric ones are whole numbers that
// Gt, Lt, Gte and Lte can compare.
const (
	// LabelNodeClass holds the name of the EC2NodeClass.
	LabelNodeClass = Group + "/ec2nodeclass"

	// LabelInstanceCategory is the letters before the generation, for example m, c, inf.
	LabelInstanceCategory = Group + "/instance-category"
	// LabelInstanceFamily is what stands before the dot, for example m7i-flex.
	LabelInstanceFamily = Group + "/instance-family"
	// LabelInstanceGeneration is the first number, for example 7.
	LabelInstanceGeneration = Group + "/instance-generation"
	// LabelInstanceSize is what stands after the dot, for example 2xlarge.
	LabelInstanceSize = Group + "/instance-size"
	// LabelInstanceCapabilityFlex is "true" for flex types, else "false".
	LabelInstanceCapabilityFlex = Group + "/instance-capability-flex"
	// LabelInstanceHypervisor is nitro, xen, or empty for bare metal.
	LabelInstanceHypervisor = Group + "/instance-hypervisor"
	// LabelInstanceEncryptionInTransitSupported is "true" or "false".
	LabelInstanceEncryptionInTransitSupported = Group + "/instance-encryption-in-transit-supported"
	// LabelInstanceTenancy is default or dedicated.
	LabelInstanceTenancy = Group + "/instance-tenancy"

	// LabelInstanceCPU is the number of vCPUs.
	LabelInstanceCPU = Group + "/instance-cpu"
	// LabelInstanceCPUManufacturer is intel, amd, aws or another, in lower case.
	LabelInstanceCPUManufacturer = Group + "/instance-cpu-manufacturer"
	// LabelInstanceCPUSustainedClockSpeedMHz is the clock rate that the processor can keep, in MHz.
	LabelInstanceCPUSustainedClockSpeedMHz = Group + "/instance-cpu-sustained-clock-speed-mhz"
	// LabelInstanceMemory is the memory in MiB.
	LabelInstanceMemory = Group + "/instance-memory"
	// LabelInstanceEBSBandwidth is the most that goes to EBS volumes, in Mbit/s.
	LabelInstanceEBSBandwidth = Group + "/instance-ebs-bandwidth"
	// LabelInstanceNetworkBandwidth is the baseline of the network, in Mbit/s.
	LabelInstanceNetworkBandwidth = Group + "/instance-network-bandwidth"
	// LabelInstanceLocalNVMe is the total size of the instance store NVMe disks, in GB. Absent if there are none.
	LabelInstanceLocalNVMe = Group + "/instance-local-nvme"

	// LabelInstanceGPUName is the GPU's model in lower case, for example t4.
	LabelInstanceGPUName = Group + "/instance-gpu-name"
	// LabelInstanceGPUManufacturer is the GPU's maker in lower case.
	LabelInstanceGPUManufacturer = Group + "/instance-gpu-manufacturer"
	// LabelInstanceGPUCount is the number of GPUs.
	LabelInstanceGPUCount = Group + "/instance-gpu-count"
	// LabelInstanceGPUMemory is the memory of one GPU in MiB.
	LabelInstanceGPUMemory = Group + "/instance-gpu-memory"
	// LabelInstanceAcceleratorName is the model of the inference or training accelerator in lower case.
	LabelInstanceAcceleratorName = Group + "/instance-accelerator-name"
	// LabelInstanceAcceleratorManufacturer is the accelerator's maker in lower case.
	LabelInstanceAcceleratorManufacturer = Group + "/instance-accelerator-manufacturer"
	// LabelInstanceAcceleratorCount is the number of accelerators.
	LabelInstanceAcceleratorCount = Group + "/instance-accelerator-count"

	// LabelCapacityReservationID is the reservation that a reserved node runs in.
	LabelCapacityReservationID = Group + "/capacity-reservation-id"
	// LabelCapacityReservationType is default or capacity-block.
	LabelCapacityReservationType = Group + "/capacity-reservation-type"
	// LabelCapacityReservationInterruptible is "true" or "false".
	LabelCapacityReservationInterruptible = Group + "/capacity-reservation-interruptible"
	// LabelPlacementGroupID is the placement group that a node runs in.
	LabelPlacementGroupID = Group + "/placement-group-id"
	// LabelPlacementGroupPartition is its partition, counted from 1.
	LabelPlacementGroupPartition = Group + "/placement-group-partition"

	// LabelZoneID is the zone's id, on which accounts agree, for example use1-az4.
	LabelZoneID = "topology.k8s.aws/zone-id"
	// LabelEBSZone is how the EBS CSI driver writes topology.kubernetes.io/zone.
	LabelEBSZone = "topology.ebs.csi.aws.com/zone"
)

// Annotations.
const (
	// AnnotationHash on EC2NodeClass and NodeClaim is the drift hash of the node class, in decimal.
	AnnotationHash = Group + "/ec2nodeclass-hash"
	// AnnotationHashVersion is the version of the algorithm of AnnotationHash.
	AnnotationHashVersion = Group + "/ec2nodeclass-hash-version"
	// AnnotationInstanceProfile on a NodeClaim is the instance profile of its instance, which must not be deleted before it.
	AnnotationInstanceProfile = Group + "/instance-profile-name"
	// AnnotationTagged on a NodeClaim is "true" once its instance has the tags that are set after registration.
	AnnotationTagged = Group + "/tagged"
	// AnnotationClusterNameTagged on a NodeClaim is "true" once its instance has the tag TagEKSClusterName.
	AnnotationClusterNameTagged = "compatibility." + Group + "/cluster-name-tagged"
)

// FinalizerTermination is on an EC2NodeClass until no NodeClaim uses it and the AWS resources created for it are deleted.
const FinalizerTermination = Group + "/termination"

// Tags in AWS. Beside them stands karpv1.KeyClusterUID.
const (
	// TagClusterPrefix is followed by the cluster's name; the value is TagClusterOwned.
	TagClusterPrefix = "kubernetes.io/cluster/"
	// TagClusterOwned is the value of resources that only this cluster deletes.
	TagClusterOwned = "owned"
	// TagEKSClusterName holds the cluster's name.
	TagEKSClusterName = "eks:eks-cluster-name"
	// TagNodePool holds the NodePool's name; empty for a claim without a pool.
	TagNodePool = karpv1.LabelNodePool
	// TagNodeClaim holds the NodeClaim's name.
	TagNodeClaim = karpv1.Group + "/nodeclaim"
	// TagNodeClass holds the EC2NodeClass's name.
	TagNodeClass = LabelNodeClass
	// TagName is what the EC2 console shows: the Node's name.
	TagName = "Name"
	// LaunchTemplatePrefix starts the names of launch templates.
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
	ResourceNIPSlots           corev1.ResourceName = "eks.amazonaws.com/nip-slots"
)

// The builds of Windows that the Windows families run, as node.kubernetes.io/windows-build writes them.
const (
	Windows2019Build = "10.0.17763"
	Windows2022Build = "10.0.20348"
	Windows2025Build = "10.0.26100"
)

// UsableLabels are the labels under karpenter.k8s.aws that users may require or set; the CRDs refuse all others there.
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

// WellKnownLabels are the labels that every offering of EC2 defines: those of every cloud, and EC2's own. LabelNodeClass
// is not among them: it says what a node was made from, not what it is.
func WellKnownLabels() []string {
	labels := append(karpv1.WellKnownLabels(), LabelZoneID)
	for _, label := range UsableLabels() {
		if label != LabelNodeClass {
			labels = append(labels, label)
		}
	}
	return labels
}

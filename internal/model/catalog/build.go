package catalog

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Extended resources of instance types.
const (
	ResourceNVIDIA      = "nvidia.com/gpu"
	ResourceAMD         = "amd.com/gpu"
	ResourceGaudi       = "habana.ai/gaudi"
	ResourceNeuron      = "aws.amazon.com/neuron"
	ResourceNeuronCore  = "aws.amazon.com/neuroncore"
	ResourceEFA         = "vpc.amazonaws.com/efa"
	ResourcePodENI      = "vpc.amazonaws.com/pod-eni"
	ResourcePrivateIPv4 = "vpc.amazonaws.com/PrivateIPv4Address"
)

const (
	kib = 1 << 10
	mib = 1 << 20

	// defaultMemoryOverhead is used if Settings.MemoryOverhead is nil and no node was measured. Karpenter has the same
	// default.
	defaultMemoryOverhead = 0.075

	// gravitonReserve is the contiguous memory, in MiB, that arm64 kernels reserve.
	gravitonReserve = 64

	// windowsPods is the default maximum number of pods of a Windows node.
	windowsPods = 110
)

// Build returns the type with the labels and resources that its nodes have with these settings in this region, without
// offerings. Build does not check whether the type can be used with the settings: see Incompatible.
//
// Amounts that were not measured equal those of Karpenter's AWS provider 1.14, so that both launch the same node for a
// pod.
func Build(f Facts, s Settings, region string) Type {
	total := nodeCapacity(f, s)
	return Type{
		Name:        f.Name,
		Labels:      labels(f, s, region),
		Capacity:    total,
		Allocatable: total.Sub(overhead(f, s, total)).RaiseNegatives(),
		Volumes:     attachable(f, s),
	}
}

func nodeCapacity(f Facts, s Settings) resources.Amounts {
	a := resources.Amounts{
		CPU:              f.Processor.VCPUs * 1000,
		Memory:           memory(f, s),
		EphemeralStorage: correctedAmount(s.Measured.Disk, ephemeralStorage(f, s)),
		Pods:             pods(f, s),
	}
	for _, gpu := range f.GPUs {
		if name := gpuResource(gpu.Manufacturer); name != "" {
			a = a.With(name, a.Of(name)+gpu.Count)
		}
	}
	for i, n := range f.Neuron {
		a = a.With(ResourceNeuron, a.Of(ResourceNeuron)+n.Count)
		if i == 0 { // as in Karpenter's provider; a type has at most one entry
			a = a.With(ResourceNeuronCore, n.Count*n.Cores)
		}
	}
	a = a.With(ResourceEFA, efaInterfaces(f, s))
	a = a.With(ResourcePodENI, f.Network.BranchInterfaces)
	if familyOf(s.Family).isWindows() && f.Arch() == "amd64" {
		a = a.With(ResourcePrivateIPv4, max(f.Network.IPv4PerInterface-1, 0))
	}
	return a
}

// memory returns the memory that the kubelet will report: measured on another node of the type, or estimated.
func memory(f Facts, s Settings) int64 {
	if s.Measured.Memory > 0 {
		return s.Measured.Memory
	}
	overheadShare := defaultMemoryOverhead
	if s.MemoryOverhead != nil {
		overheadShare = *s.MemoryOverhead
	}
	size := f.MemoryMiB
	if len(f.Processor.Architectures) > 0 && f.Processor.Architectures[0] == "arm64" {
		size -= gravitonReserve
	}
	overheadMiB := math.Ceil(float64(size*mib) * overheadShare / kib / kib)
	return (size - int64(overheadMiB)) * mib
}

// ephemeralStorage returns the size of the disk that holds the kubelet's files.
func ephemeralStorage(f Facts, s Settings) int64 {
	if s.InstanceStore == RAID0 && f.Storage.TotalGB > 0 {
		return f.Storage.TotalGB * 1e9
	}
	if v, ok := podVolume(s); ok {
		return v.Bytes
	}
	return familyOf(s.Family).bytes
}

// PodVolume returns the device of the EBS volume that holds the kubelet's files, unless they are on instance store
// disks; empty if unknown.
func PodVolume(s Settings) string {
	if v, ok := podVolume(s); ok {
		return v.Device
	}
	return familyOf(s.Family).device
}

// podVolume returns the volume of the NodeClass that holds the kubelet's files. It tries the root volume, then the last
// volume if the image is custom, then the volume with the family's device. It returns false if none of them has a size.
func podVolume(s Settings) (Volume, bool) {
	if i := slices.IndexFunc(s.Volumes, func(v Volume) bool { return v.Root }); i >= 0 && s.Volumes[i].Bytes > 0 {
		return s.Volumes[i], true
	}
	if n := len(s.Volumes); s.Family == Custom && n > 0 && s.Volumes[n-1].Bytes > 0 {
		return s.Volumes[n-1], true
	}
	device := familyOf(s.Family).device
	i := slices.IndexFunc(s.Volumes, func(v Volume) bool { return device != "" && v.Device == device })
	if i < 0 || s.Volumes[i].Bytes <= 0 {
		return Volume{}, false
	}
	return s.Volumes[i], true
}

// pods returns the maximum number of pods: measured on another node of the type, or computed.
func pods(f Facts, s Settings) int64 { return correctedAmount(s.Measured.Pods, computedPods(f, s)) }

// computedPods returns the maximum number of pods. The kubelet settings may set it. Otherwise it is the number of
// addresses for pods, or the default of Windows. podsPerCore may lower it further.
func computedPods(f Facts, s Settings) int64 {
	fam := familyOf(s.Family)
	var n int64
	switch {
	case s.MaxPods != nil:
		n = *s.MaxPods
	case fam.countsAddresses:
		n = addressablePods(f, s, s.ReservedENIs)
	default:
		n = windowsPods
	}
	if s.PodsPerCore > 0 && fam.podsPerCore {
		n = min(n, s.PodsPerCore*f.Processor.VCPUs)
	}
	return n
}

// addressablePods returns the number of pods that get an address. The VPC CNI uses only the interfaces of the default
// card, except the reserved ones. Each interface uses one of its addresses itself. Two pods, the CNI and kube-proxy,
// use the host's address. Source: eni-max-pods.txt of amazon-eks-ami. Prefix delegation is not considered.
func addressablePods(f Facts, s Settings, reserved int64) int64 {
	usable := defaultCard(f).MaxInterfaces - reserved
	for _, i := range s.Interfaces {
		if i.Card == 0 && i.EFAOnly {
			usable--
		}
	}
	if usable <= 0 {
		return 0
	}
	return usable*(f.Network.IPv4PerInterface-1) + 2
}

// defaultCard returns the network card of the first interface; the zero value if the facts do not list this card.
func defaultCard(f Facts) NetworkCard {
	for _, c := range f.Network.Cards {
		if c.Index == f.Network.DefaultCard {
			return c
		}
	}
	return NetworkCard{}
}

func gpuResource(manufacturer string) string {
	switch manufacturer {
	case "NVIDIA":
		return ResourceNVIDIA
	case "AMD":
		return ResourceAMD
	case "Habana":
		return ResourceGaudi
	}
	return ""
}

// efaInterfaces returns how many EFA interfaces a node has: the number of EFA-only interfaces in the NodeClass, which
// can list no other EFA interfaces. If the NodeClass lists no interfaces, the node has as many as the type supports.
func efaInterfaces(f Facts, s Settings) int64 {
	if s.Interfaces == nil {
		return f.Network.EFAInterfaces
	}
	var n int64
	for _, i := range s.Interfaces {
		if i.EFAOnly {
			n++
		}
	}
	return n
}

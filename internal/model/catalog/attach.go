package catalog

import (
	"strconv"
	"strings"
)

// attachable returns how many EBS volumes the CSI driver will report as attachable to a node of the type. It is EC2's
// limit less the volumes that the node boots with. If network interfaces use the same limit, those besides the first
// that exist when the driver starts are subtracted, too.
//
// Source of all numbers in this file: "Amazon EBS volume limits for Amazon EC2 instances" in the EC2 User Guide, and
// how aws-ebs-csi-driver 1.5x computes CSINode's allocatable.count without --volume-attach-limit and
// --reserved-volume-attachments.
func attachable(f Facts, s Settings) int64 {
	n, shared := attachments(f)
	n -= bootVolumes(s)
	if shared {
		n -= moreInterfaces(f, s)
	}
	return max(n, 1) // the driver reports at least 1
}

// attachments returns how many attachments EC2 leaves for volumes when a node has one network interface, and whether
// each further interface uses one of them.
func attachments(f Facts) (n int64, shared bool) {
	switch family, _, _ := strings.Cut(f.Name, "."); {
	case f.Hypervisor == "xen":
		return 39, false
	case family == "p4d", family == "p4de":
		return 28, false
	case family == "hpc7a":
		return 27, false
	case isDedicated(f):
		return dedicated(f, family), false
	case family == "dl1", family == "trn1n", (family == "inf2" || family == "trn1") && f.Processor.VCPUs > 32:
		return 28, true
	case f.Name == "g5.48xlarge":
		return 9, true
	case f.BareMetal && family != "i3" && family != "u":
		return 31, true
	}
	return 27 - localDevices(f), true
}

// isDedicated reports whether EC2 has a separate limit for volumes, not shared with interfaces, local disks and
// accelerators. This is true for types with Nitro cards of the sixth generation: instance generation 8 and later,
// generation 7 except Graviton, and some earlier types with GPUs, FPGAs or Trainium.
func isDedicated(f Facts) bool {
	l := map[string]string{}
	nameLabels(l, f.Name)
	generation, err := strconv.Atoi(l[LabelGeneration])
	if err != nil {
		return false
	}
	switch l[LabelCategory] {
	case "g", "gr", "p":
		return generation >= 6 || generation == 5 && l[LabelCategory] == "p"
	case "f", "trn":
		return generation >= 2
	}
	return generation >= 8 || generation == 7 && f.Arch() != "arm64"
}

// dedicated returns the separate limit for volumes of a type for which isDedicated is true.
func dedicated(f Facts, family string) int64 {
	cpus := f.Processor.VCPUs
	if family == "x8aedz" {
		cpus *= 2 // without hyper-threading, so its sizes have half the vCPUs that other types of that limit have
	}
	if f.BareMetal {
		return dedicatedMetal(f, family, cpus)
	}
	n := int64(128)
	switch {
	case cpus <= 48:
		n = 32
	case cpus <= 72:
		n = 48
	case cpus <= 96:
		n = 64
	case cpus <= 128:
		n = 88
	}
	// Network cards of these types leave at most 64 attachments for volumes.
	if strings.HasSuffix(family, "8gn") || strings.HasPrefix(family, "p") || strings.HasPrefix(family, "trn") {
		n = min(n, 64)
	}
	return n
}

// dedicatedMetal is like dedicated, but for bare-metal types: their limit depends on whether the instance is half a
// host or a whole one.
func dedicatedMetal(f Facts, family string, cpus int64) int64 {
	isHalfHost := cpus <= 96
	if strings.HasSuffix(family, "8i") { // hosts with 384 vCPUs, not 192
		isHalfHost = cpus <= 192
	}
	switch {
	case strings.HasSuffix(family, "8gn"):
		return 39
	case strings.HasSuffix(family, "8gb") && !isHalfHost:
		return 78
	case !isHalfHost:
		return 79
	case f.Arch() == "amd64" && strings.Contains(family, "8"):
		return 64
	}
	return 39
}

// localDevices returns the number of disks and accelerators that use attachments.
func localDevices(f Facts) int64 {
	var n, inference, neuron int64
	for _, d := range f.Storage.Disks {
		n += d.Count
	}
	for _, g := range f.GPUs {
		n += g.Count
	}
	for _, a := range f.Inference {
		inference += a.Count
	}
	for _, d := range f.Neuron { // some types are listed under both names
		neuron += d.Count
	}
	return n + max(inference, neuron)
}

// bootVolumes returns the number of volumes that a node boots with.
func bootVolumes(s Settings) int64 {
	image := []string{"/dev/xvda"} // devices of the volumes in the image
	switch {
	case s.Family == Bottlerocket:
		image = []string{"/dev/xvda", "/dev/xvdb"}
	case familyOf(s.Family).isWindows():
		image = []string{"/dev/sda1"}
	}
	devices := map[string]bool{}
	for _, v := range s.Volumes {
		devices[v.Device] = true
		if v.Root || s.Family == Custom { // the root device of a custom image is unknown
			image[0] = v.Device
		}
	}
	for _, device := range image {
		devices[device] = true
	}
	return int64(len(devices))
}

// moreInterfaces returns the number of interfaces besides the first when the EBS CSI driver starts: a spare one of the
// VPC CNI, or the further interfaces of the NodeClass if those are more.
func moreInterfaces(f Facts, s Settings) int64 {
	return min(max(2, int64(len(s.Interfaces))), max(f.Network.MaxInterfaces, 1)) - 1
}

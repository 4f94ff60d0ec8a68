package catalog

import (
	"strconv"
	"strings"
)

// attachable returns how many EBS volumes the CSI driver will report as attachable to a node of the type: EC2's limit
// minus the volumes that the node boots with. If network interfaces share this limit, the interfaces that exist when
// the driver starts are subtracted, too, except the first.
//
// Source of all numbers in this file: "Amazon EBS volume limits for Amazon EC2 instances" in the EC2 User Guide, and
// how aws-ebs-csi-driver 1.5x computes allocatable.count of a CSINode if neither --volume-attach-limit nor
// --reserved-volume-attachments is set.
func attachable(f Facts, s Settings) int64 {
	n, shared := attachments(f)
	n -= bootVolumes(s)
	if shared {
		n -= furtherInterfaces(f, s)
	}
	return max(n, 1) // the driver reports at least 1
}

// attachments returns how many EBS volumes a node with one network interface can have, including the volumes that the
// node boots with. shared reports whether each further interface reduces this number by one.
func attachments(f Facts) (n int64, shared bool) {
	switch family, _, _ := strings.Cut(f.Name, "."); {
	case f.Hypervisor == "xen":
		return 39, false
	case family == "p4d", family == "p4de":
		return 28, false
	case family == "hpc7a":
		return 27, false
	case hasVolumeLimit(f):
		return volumeLimit(f, family), false
	case family == "dl1", family == "trn1n", (family == "inf2" || family == "trn1") && f.Processor.VCPUs > 32:
		return 28, true
	case f.Name == "g5.48xlarge":
		return 9, true
	case f.BareMetal && family != "i3" && family != "u":
		return 31, true
	}
	return 27 - localDevices(f), true
}

// hasVolumeLimit reports whether EC2 limits the volumes of the type separately, so that interfaces, local disks and
// accelerators do not share the limit. EC2 calls this a dedicated limit. It exists for types with Nitro cards of the
// sixth generation: instance generation 8 and later, generation 7 except Graviton, and some earlier types with GPUs,
// FPGAs or Trainium.
func hasVolumeLimit(f Facts) bool {
	nameParts := map[string]string{}
	nameLabels(nameParts, f.Name)
	generation, err := strconv.Atoi(nameParts[LabelGeneration])
	if err != nil {
		return false
	}
	switch category := nameParts[LabelCategory]; category {
	case "g", "gr", "p":
		return generation >= 6 || generation == 5 && category == "p"
	case "f", "trn":
		return generation >= 2
	}
	return generation >= 8 || generation == 7 && f.Arch() != "arm64"
}

// volumeLimit returns the separate limit for volumes. hasVolumeLimit must be true for the type.
func volumeLimit(f Facts, family string) int64 {
	cpus := f.Processor.VCPUs
	if family == "x8aedz" {
		cpus *= 2 // it has no hyper-threading, so other types with the same limit have twice as many vCPUs
	}
	if f.BareMetal {
		return metalVolumeLimit(f, family, cpus)
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

// metalVolumeLimit is volumeLimit for bare-metal types. Their limit depends on whether the instance is a whole host or
// half of one.
func metalVolumeLimit(f Facts, family string, cpus int64) int64 {
	isHalfHost := cpus <= 96
	if strings.HasSuffix(family, "8i") { // a whole host has 384 vCPUs, not 192
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
	for _, d := range f.Neuron { // some types list the same devices as Inference and as Neuron
		neuron += d.Count
	}
	return n + max(inference, neuron)
}

func bootVolumes(s Settings) int64 {
	imageDevices := []string{"/dev/xvda"}
	switch {
	case s.Family == Bottlerocket:
		imageDevices = []string{"/dev/xvda", "/dev/xvdb"}
	case familyOf(s.Family).isWindows():
		imageDevices = []string{"/dev/sda1"}
	}
	devices := map[string]bool{}
	for _, v := range s.Volumes {
		devices[v.Device] = true
		if v.Root || s.Family == Custom { // one of the volumes is assumed to be the root of a custom image
			imageDevices[0] = v.Device
		}
	}
	for _, device := range imageDevices {
		devices[device] = true
	}
	return int64(len(devices))
}

// furtherInterfaces returns how many interfaces besides the first a node has when the EBS CSI driver starts. The node
// has as many interfaces as the NodeClass lists, but at least two, because the VPC CNI adds a spare one. The type
// limits the number.
func furtherInterfaces(f Facts, s Settings) int64 {
	return min(max(2, int64(len(s.Interfaces))), max(f.Network.MaxInterfaces, 1)) - 1
}

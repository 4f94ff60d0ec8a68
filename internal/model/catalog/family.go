package catalog

// family has the properties of an AMI family that affect the size of a node. Source: the families' bootstrap code, as
// mapped in the reference of Karpenter's AWS provider, 2.2 and 2.3.
type family struct {
	device string // device of the volume that holds the kubelet's files; empty if unknown
	bytes  int64  // size of that volume if the NodeClass has no volume with that device

	countsAddresses bool   // pods are limited by the addresses of the interfaces
	reservesByENI   bool   // memory is reserved for as many pods as the interfaces have addresses for, not for the maximum number of pods
	podsPerCore     bool   // the kubelet setting podsPerCore is honored
	windowsBuild    string // value of node.kubernetes.io/windows-build; empty for Linux
}

// usualVolume is the default size, in bytes, of the volume of a Linux family.
const usualVolume = 20 << 30

// familyOf returns the AMI family with the name; AL2, AL2023 and unknown names have the properties of Amazon Linux.
func familyOf(name string) family {
	linux := family{
		device: "/dev/xvda", bytes: usualVolume,
		countsAddresses: true, reservesByENI: true, podsPerCore: true,
	}
	windows := family{device: "/dev/sda1", bytes: 50 << 30, podsPerCore: true}
	switch name {
	case Bottlerocket:
		// /dev/xvda holds the system, /dev/xvdb everything else.
		return family{device: "/dev/xvdb", bytes: usualVolume, countsAddresses: true}
	case Custom:
		linux.device = ""
		return linux
	case Windows2019:
		windows.windowsBuild = "10.0.17763"
		return windows
	case Windows2022:
		windows.windowsBuild = "10.0.20348"
		return windows
	case Windows2025:
		windows.windowsBuild = "10.0.26100"
		return windows
	}
	return linux
}

// isWindows reports whether nodes of the family run Windows.
func (f family) isWindows() bool { return f.windowsBuild != "" }

package catalog

// family is what an AMI family decides about a node's size.
// Source: the families' own bootstrap code, as mapped in the reference of
// Karpenter's AWS provider, 2.2 and 2.3.
type family struct {
	device string // of the volume that holds the kubelet's files; empty if not known
	bytes  int64  // of that volume when the NodeClass maps none

	countsAddresses bool   // pods are limited by the addresses of the interfaces
	reservesByENI   bool   // reserves memory for as many pods as there are addresses
	podsPerCore     bool   // its kubelet knows podsPerCore
	windowsBuild    string // value of node.kubernetes.io/windows-build; empty for Linux
}

// usualVolume is the size of the volume of a family that has no other.
const usualVolume = 20 << 30

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

func (f family) isWindows() bool { return f.windowsBuild != "" }

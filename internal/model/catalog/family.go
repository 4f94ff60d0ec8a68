package catalog

// family has the properties of an AMI family that affect the size of a node. Source: the families' bootstrap code, as
// mapped in the reference of Karpenter's AWS provider, 2.2 and 2.3.
type family struct {
	device string // device of the volume that holds the kubelet's files; empty if unknown
	bytes  int64  // size of that volume if the NodeClass maps none

	countsAddresses bool   // pods are limited by the addresses of the interfaces
	reservesByENI   bool   // memory is reserved for as many pods as there are addresses
	podsPerCore     bool   // podsPerCore is supported
	windowsBuild    string // value of node.kubernetes.io/windows-build; empty for Linux
}

// usualVolume is the default size of a family's volume.
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

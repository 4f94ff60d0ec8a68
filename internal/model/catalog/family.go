package catalog

// family has the properties of an AMI family that affect the size of a node. Source: the bootstrap code of the AMI
// families, as Karpenter's AWS provider maps it.
type family struct {
	device string // device of the volume that holds the kubelet's files; empty if unknown
	bytes  int64  // size of that volume if the NodeClass has no volume with that device

	countsAddresses bool   // the addresses of the interfaces limit the number of pods
	reservesByENI   bool   // memory is reserved by the number of addresses for pods; false: by the maximum number of pods
	podsPerCore     bool   // the kubelet setting podsPerCore is honored
	windowsBuild    string // value of node.kubernetes.io/windows-build; empty for Linux
}

const defaultVolumeBytes = 20 << 30 // of Linux families

// familyOf returns the AMI family with the name. AL2, AL2023 and unknown names have the same properties.
func familyOf(name string) family {
	linux := family{
		device: "/dev/xvda", bytes: defaultVolumeBytes,
		countsAddresses: true, reservesByENI: true, podsPerCore: true,
	}
	windows := family{device: "/dev/sda1", bytes: 50 << 30, podsPerCore: true}
	switch name {
	case Bottlerocket:
		// /dev/xvda holds the system, /dev/xvdb everything else.
		return family{device: "/dev/xvdb", bytes: defaultVolumeBytes, countsAddresses: true}
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

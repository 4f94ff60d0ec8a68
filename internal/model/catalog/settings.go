package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

// The AMI families, with their names in EC2NodeClasses.
const (
	AL2          = "AL2"
	AL2023       = "AL2023"
	Bottlerocket = "Bottlerocket"
	Custom       = "Custom"
	Windows2019  = "Windows2019"
	Windows2022  = "Windows2022"
	Windows2025  = "Windows2025"
)

// Settings are the settings of an EC2NodeClass, and the options of the controller, that affect the size of a node. The
// zero value is an AL2023 node with default settings.
type Settings struct {
	Family string // AL2023 if empty
	// PublishedImages means that the images are those that AWS publishes for the family, selected by an alias.
	PublishedImages bool

	MaxPods     *int64 // nil: as many as the network interfaces have addresses for; 110 on Windows
	PodsPerCore int64  // 0: no such limit

	// KubeReserved and SystemReserved are the reservations that the user has set, by resource name, in the units of
	// resources.Amounts. A resource that is not in them has the default reservation.
	KubeReserved   map[string]int64
	SystemReserved map[string]int64
	EvictionHard   map[string]Threshold // hard thresholds by signal: "memory.available", "nodefs.available"

	Volumes       []Volume // the blockDeviceMappings of the NodeClass, in their order
	InstanceStore string   // RAID0 or empty

	ReservedENIs int64 // number of interfaces whose addresses pods cannot use, with custom networking of the VPC CNI

	// MemoryOverhead is the share of an instance's memory that the kubelet does not report, because the hypervisor and
	// the kernel use it; nil means 0.075.
	MemoryOverhead *float64
	// Measured has the real resources of nodes of one type with the image of the NodeClass. They replace computed
	// amounts.
	Measured Measured

	// Interfaces are the network interfaces listed in a NodeClass; nil means the default ones.
	Interfaces []Interface

	NestedVirtualization bool   // instances are launched with nested virtualization
	ConnectionTracking   bool   // a timeout of the NodeClass's connectionTracking is set
	PlacementStrategy    string // PlaceCluster, PlaceSpread or PlacePartition; empty: no placement group
	PlacementGroup       string // ID of the placement group
}

// The strategies of placement groups, in EC2's words.
const (
	PlaceCluster   = "cluster"   // instances are close together, in one zone
	PlaceSpread    = "spread"    // each instance is on separate hardware
	PlacePartition = "partition" // instances are in partitions that share no hardware
)

// RAID0 is the instance store policy that makes the local disks the node's ephemeral storage.
const RAID0 = "RAID0"

// Volume is an EBS volume in the blockDeviceMappings of a NodeClass.
type Volume struct {
	Device string // "/dev/xvda"
	Root   bool   // the volume has the root file system
	Bytes  int64  // 0: as large as its snapshot
}

// Interface is a network interface that a NodeClass lists.
type Interface struct {
	Card    int64 // index of the network card
	Device  int64 // index of the device on the card
	EFAOnly bool  // only for EFA traffic, without an IP address
}

// Threshold is an eviction threshold: a percentage of the capacity, or an amount.
type Threshold struct {
	Percent float64 // percentage of the capacity, less than 100; 0: Amount applies
	Amount  int64   // bytes
}

// ParseThreshold parses an eviction threshold: "5%" or "500Mi". "100%" and "0%" give the zero Threshold, because both
// disable the threshold in the kubelet.
func ParseThreshold(text string) (Threshold, error) {
	number, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		n, err := resources.Parse(resources.Memory, text)
		if err != nil {
			return Threshold{}, fmt.Errorf("read eviction threshold: %w", err)
		}
		return Threshold{Amount: n}, nil
	}
	p, err := strconv.ParseFloat(number, 64)
	if err != nil || !(p >= 0 && p <= 100) { // rejects NaN, too
		return Threshold{}, fmt.Errorf("read eviction threshold %q: want a percentage from 0%% to 100%%", text)
	}
	if p == 100 {
		p = 0
	}
	return Threshold{Percent: p}, nil
}

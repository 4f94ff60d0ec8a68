// Package catalog computes what EC2 offers: instance types with their zones, capacity types and prices, and the
// resources that a node of each type has for pods.
//
// In: facts about instance types, prices, and the settings of a NodeClass.
// Out: types with labels, allocatable resources and priced offerings.
// Never: a call to AWS, a pod, or a decision about what to launch.
package catalog

import (
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Price is an amount of money per hour, in billionths of a US dollar. It is an integer, so that a sum does not depend
// on the order of its terms.
type Price int64

// Dollar is one US dollar per hour.
const Dollar Price = 1_000_000_000

// Dollars returns the price as a number of US dollars per hour.
func (p Price) Dollars() float64 { return float64(p) / float64(Dollar) }

// String returns the price in dollars per hour with at least four decimals: "0.0416".
func (p Price) String() string {
	s := strconv.FormatFloat(p.Dollars(), 'f', -1, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	for len(fraction) < 4 {
		fraction += "0"
	}
	return whole + "." + fraction
}

// The capacity types, as values of the label karpenter.sh/capacity-type.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
	Reserved = "reserved"
)

// Market has the catalog of each NodeClass, by name. The AMI family, kubelet settings and disks of a NodeClass change
// the resources of a node; its subnets determine the zones.
type Market map[string]Catalog

// Types returns the types that a pool can launch with a NodeClass.
func (m Market) Types(class, pool string) []Type { return m[class].Of(pool) }

// Catalog has the types that can be launched for one NodeClass in one region.
type Catalog struct {
	Region string // "us-east-1"
	Types  []Type // sorted by name

	// Pools has, by NodePool, all types of a pool, sorted by name. It has only pools whose types differ from Types,
	// because of an overlay (ApplyOverlays) or dedicated hardware (Type.Dedicated).
	Pools map[string][]Type

	// PlacementGroup is the ID of the placement group of all launches; empty for none.
	PlacementGroup string

	// PodVolume is the result of the function PodVolume: the device of the EBS volume that holds the kubelet's files;
	// empty if unknown.
	PodVolume string
}

// Of returns the types that a pool can launch.
func (c Catalog) Of(pool string) []Type {
	if types, ok := c.Pools[pool]; ok {
		return types
	}
	return c.Types
}

// Type is an instance type with the labels and resources that its nodes have under the settings of a NodeClass.
type Type struct {
	Name string // "m5.large"

	// Labels are the labels of every node of this type: instance type, arch, os, region and all of
	// karpenter.k8s.aws/instance-*. Labels that depend on the offering (zone, zone ID, capacity type) are not included.
	Labels requirements.Labels

	Capacity    resources.Amounts // capacity that the kubelet will report
	Allocatable resources.Amounts // Capacity minus reservations and eviction thresholds

	// Volumes is how many EBS volumes the CSI driver can attach to a node of the type, besides those that the node
	// boots with. 0 means unknown, and then no limit applies.
	Volumes int64

	Offerings []Offering // sorted by price, zone, capacity type, reservation

	Overlaid bool // an overlay has changed Capacity and Allocatable
}

// Offering is a type in one zone with one capacity type.
type Offering struct {
	Zone         string // "us-east-1a"
	ZoneID       string // "use1-az1", empty when not known
	CapacityType string // OnDemand, Spot or Reserved
	Price        Price  // per hour
	Repriced     bool   // an overlay has set Price
	Available    bool   // false during the back-off after an insufficient-capacity error of EC2; see also WithReserved

	// Reservation is the capacity reservation that the instance would run in; zero unless CapacityType is Reserved.
	Reservation Reservation
}

// Labels of a node by its type or by the offering that it was launched with.
const (
	LabelZone         = "topology.kubernetes.io/zone"
	LabelZoneID       = "topology.k8s.aws/zone-id"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelRegion       = "topology.kubernetes.io/region"
	LabelInstanceType = "node.kubernetes.io/instance-type"
	LabelArch         = "kubernetes.io/arch"
	LabelOS           = "kubernetes.io/os"

	LabelReservationID            = "karpenter.k8s.aws/capacity-reservation-id"
	LabelReservationType          = "karpenter.k8s.aws/capacity-reservation-type"
	LabelReservationInterruptible = "karpenter.k8s.aws/capacity-reservation-interruptible" // "true" or "false"
)

// offeringLabels returns the node labels that an offering may define.
func offeringLabels() []string {
	return []string{
		LabelZone, LabelZoneID, LabelCapacityType, LabelReservationID, LabelReservationType, LabelReservationInterruptible,
	}
}

// label returns the value of a label in o.Labels(), and whether o has it.
func (o *Offering) label(key string) (value string, ok bool) {
	switch key {
	case LabelZone:
		return o.Zone, true
	case LabelZoneID:
		return o.ZoneID, o.ZoneID != ""
	case LabelCapacityType:
		return o.CapacityType, true
	case LabelReservationID:
		return o.Reservation.ID, o.Reservation.ID != ""
	case LabelReservationType:
		return o.Reservation.Type, o.Reservation.ID != ""
	case LabelReservationInterruptible:
		return strconv.FormatBool(o.Reservation.Interruptible), o.Reservation.ID != ""
	}
	return "", false
}

// Labels returns the labels that the offering adds to those of its type.
func (o Offering) Labels() requirements.Labels {
	l := requirements.Labels{LabelZone: o.Zone, LabelCapacityType: o.CapacityType}
	if o.ZoneID != "" {
		l[LabelZoneID] = o.ZoneID
	}
	if r := o.Reservation; r.ID != "" {
		l[LabelReservationID], l[LabelReservationType] = r.ID, r.Type
		l[LabelReservationInterruptible] = strconv.FormatBool(r.Interruptible)
	}
	return l
}

package controller

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/vpc"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// wish is what a claim accepts.
type wish struct {
	accepted requirements.Requirements
	requests resources.Amounts
	variety  bool                  // many types are worth more than many zones of the cheapest
	subnets  map[string]vpc.Subnet // by zone; in a zone without one nothing can be launched
	bought   bool                  // nothing that is reserved
}

// pick is one offering to ask EC2 for.
type pick struct {
	kind     catalog.Type
	offering catalog.Offering
}

// choose returns what to ask EC2 for, in one way of paying: what is reserved, else spot where it can be had, else on demand. The cheapest come
// first, and not more than one launch may name. Where on demand would do too, spot that costs more is left out.
func choose(types []catalog.Type, w wish) (string, []pick) {
	var reserved, spot, onDemand []pick
	for _, t := range w.named(types) {
		if !w.fits(t) || !w.takes(t.Labels) {
			continue
		}
		for _, o := range t.Offerings {
			switch {
			case !o.Available || !w.takesOffering(o):
			case o.CapacityType == catalog.Reserved && !w.bought:
				reserved = append(reserved, pick{t, o})
			case o.CapacityType == catalog.Spot:
				spot = append(spot, pick{t, o})
			case o.CapacityType == catalog.OnDemand:
				onDemand = append(onDemand, pick{t, o})
			}
		}
	}
	if len(reserved) > 0 {
		return catalog.Reserved, w.cut(alikeReserved(reserved))
	}
	slices.SortFunc(spot, comparePicks)
	slices.SortFunc(onDemand, comparePicks)
	if len(spot) > 0 && len(onDemand) > 0 && !w.variety {
		ceiling := onDemand[0].offering.Price
		spot = slices.DeleteFunc(spot, func(p pick) bool { return p.offering.Price > ceiling })
	}
	if len(spot) > 0 {
		return catalog.Spot, w.cut(spot)
	}
	return catalog.OnDemand, w.cut(onDemand)
}

// alikeReserved returns those of the picks that one launch can name: EC2 buys in capacity reservations of different kinds in
// different ways, in capacity blocks one at a time, and of two for one type and zone its answer would not tell which. The
// cheapest pick decides on the kind, and the reservation with most left serves its type and zone.
func alikeReserved(picks []pick) []pick {
	slices.SortFunc(picks, comparePicks)
	first := picks[0].offering.Reservation
	best := map[[2]string]int{} // by type and zone: where in out
	var out []pick
	for _, p := range picks {
		r := p.offering.Reservation
		if r.Type != first.Type || r.Interruptible != first.Interruptible {
			continue
		}
		place := [2]string{p.kind.Name, p.offering.Zone}
		if i, ok := best[place]; !ok {
			best[place] = len(out)
			out = append(out, p)
		} else if r.Left > out[i].offering.Reservation.Left {
			out[i] = p
		}
	}
	if first.Type == catalog.ReservationBlock {
		return out[:1]
	}
	return out
}

// named returns the types that the claim names, all of types if it names none. Claims of our own plans always do, and
// looking at some dozens of types instead of a thousand is most of what a launch costs us.
func (w wish) named(types []catalog.Type) []catalog.Type {
	names, ok := w.accepted[catalog.LabelInstanceType]
	if !ok || names.Complement {
		return types
	}
	var out []catalog.Type
	for _, name := range names.Listed {
		i, ok := slices.BinarySearchFunc(types, name, func(t catalog.Type, name string) int { return cmp.Compare(t.Name, name) })
		if ok {
			out = append(out, types[i])
		}
	}
	return out
}

func comparePicks(a, b pick) int {
	return cmp.Or(a.offering.Compare(b.offering), cmp.Compare(a.kind.Name, b.kind.Name))
}

func (w wish) fits(t catalog.Type) bool { return w.requests.Fits(t.Allocatable) }

// takes reports whether the labels of a type satisfy the requirements. Labels that neither types nor offerings define
// are the pool's business: the claim carries them.
func (w wish) takes(labels requirements.Labels) bool {
	for key, accepted := range w.accepted {
		value, has := labels[key]
		switch {
		case has && !accepted.Accepts(value):
			return false
		case !has && isOfType(key) && !accepted.Absent:
			return false
		}
	}
	return true
}

// takesOffering reports whether an offering satisfies the requirements, and something can be launched in its zone.
func (w wish) takesOffering(o catalog.Offering) bool {
	if _, ok := w.subnets[o.Zone]; !ok {
		return false
	}
	for _, label := range [][2]string{
		{catalog.LabelZone, o.Zone}, {catalog.LabelCapacityType, o.CapacityType}, {catalog.LabelZoneID, o.ZoneID},
	} {
		if accepted, ok := w.accepted[label[0]]; ok && !accepted.Accepts(label[1]) {
			return false
		}
	}
	return w.takesReservation(o)
}

// takesReservation reports whether the capacity reservation of an offering, or that it has none, satisfies the requirements.
func (w wish) takesReservation(o catalog.Offering) bool {
	var labels requirements.Labels
	for _, key := range reservationKeys() {
		accepted, ok := w.accepted[key]
		if !ok {
			continue
		}
		if labels == nil {
			labels = o.Labels()
		}
		if value, has := labels[key]; has && !accepted.Accepts(value) || !has && !accepted.Absent {
			return false
		}
	}
	return true
}

func reservationKeys() [3]string {
	return [...]string{catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible}
}

// isOfType reports whether a label is one that EC2's types define, so that a type without it will never have it.
func isOfType(key string) bool {
	switch key {
	case karpv1.LabelNodePool, awsv1.LabelInstanceTenancy, catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType,
		catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible, catalog.LabelPartition:
		return false
	case catalog.LabelInstanceType, catalog.LabelArch, catalog.LabelOS, catalog.LabelRegion, corev1.LabelWindowsBuild:
		return true
	}
	return strings.HasPrefix(key, awsv1.Group+"/") && key != awsv1.LabelNodeClass
}

// cut leaves as many picks as one launch may name. With variety, each type keeps its cheapest offering first.
func (w wish) cut(picks []pick) []pick {
	if len(picks) <= ec2.MaxChoices {
		return picks
	}
	if !w.variety {
		return picks[:ec2.MaxChoices]
	}
	seen := map[string]bool{}
	var first, rest []pick
	for _, p := range picks {
		if seen[p.kind.Name] {
			rest = append(rest, p)
			continue
		}
		seen[p.kind.Name] = true
		first = append(first, p)
	}
	return append(first, rest...)[:ec2.MaxChoices]
}

package offerings

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

// LaunchRequirements is what a launch for a NodeClaim requires of an offering.
type LaunchRequirements struct {
	Accepted requirements.Requirements // requirements of the claim
	requests resources.Amounts         // resources that the node must have
	variety  bool                      // request many types rather than many zones of the cheapest type
	Subnets  map[string]vpc.Subnet     // subnets by zone; a zone without a subnet is not used
	// ExcludeReserved excludes the offerings of capacity reservations.
	ExcludeReserved bool
}

// Pick is one offering that a launch requests.
type Pick struct {
	Type     catalog.Type     // the instance type
	Offering catalog.Offering // zone, capacity type and price
}

// Choose returns the offerings to request, all of the same capacity type: reserved if available, else spot if
// available, else on-demand. The offerings are sorted by price and limited to ec2.MaxChoices. If on-demand is accepted
// too, spot offerings above the cheapest on-demand price are dropped, unless variety is set.
func Choose(types []catalog.Type, w LaunchRequirements) (string, []Pick) {
	var reserved, spot, onDemand []Pick
	for _, t := range w.namedTypes(types) {
		if !w.fits(t) || !w.acceptsLabels(t.Labels) {
			continue
		}
		for _, o := range t.Offerings {
			switch {
			case !o.Available || !w.acceptsOffering(o):
			case o.CapacityType == catalog.Reserved && !w.ExcludeReserved:
				reserved = append(reserved, Pick{t, o})
			case o.CapacityType == catalog.Spot:
				spot = append(spot, Pick{t, o})
			case o.CapacityType == catalog.OnDemand:
				onDemand = append(onDemand, Pick{t, o})
			}
		}
	}
	if len(reserved) > 0 {
		return catalog.Reserved, w.limit(combinableReserved(reserved))
	}
	slices.SortFunc(spot, comparePicks)
	slices.SortFunc(onDemand, comparePicks)
	if len(spot) > 0 && len(onDemand) > 0 && !w.variety {
		ceiling := onDemand[0].Offering.Price
		spot = slices.DeleteFunc(spot, func(p Pick) bool { return p.Offering.Price > ceiling })
	}
	if len(spot) > 0 {
		return catalog.Spot, w.limit(spot)
	}
	return catalog.OnDemand, w.limit(onDemand)
}

// combinableReserved returns the reserved picks that one launch can name. EC2 needs a different call for each kind of
// capacity reservation (type and interruptible), and accepts only one capacity block per call. EC2's answer does not
// show which of two reservations for the same type and zone was used. Therefore only the kind of the cheapest pick is
// kept, and for each type and zone only the reservation with the most free instances.
func combinableReserved(picks []Pick) []Pick {
	slices.SortFunc(picks, comparePicks)
	first := picks[0].Offering.Reservation
	index := map[[2]string]int{} // by type and zone: the index in out
	var out []Pick
	for _, p := range picks {
		r := p.Offering.Reservation
		if r.Type != first.Type || r.Interruptible != first.Interruptible {
			continue
		}
		key := [2]string{p.Type.Name, p.Offering.Zone}
		if i, ok := index[key]; !ok {
			index[key] = len(out)
			out = append(out, p)
		} else if r.Left > out[i].Offering.Reservation.Left {
			out[i] = p
		}
	}
	if first.Type == catalog.ReservationBlock {
		return out[:1]
	}
	return out
}

// namedTypes returns those of types, which are sorted by name, that the claim names; all if it names none. Claims of
// our own plans always name types. Checking dozens of types instead of a thousand saves most of the time for a launch.
func (w LaunchRequirements) namedTypes(types []catalog.Type) []catalog.Type {
	names, ok := w.Accepted[catalog.LabelInstanceType]
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

// comparePicks sorts picks by their offerings, then by the names of the types.
func comparePicks(a, b Pick) int {
	return cmp.Or(a.Offering.Compare(b.Offering), cmp.Compare(a.Type.Name, b.Type.Name))
}

func (w LaunchRequirements) fits(t catalog.Type) bool { return w.requests.Fits(t.Allocatable) }

// acceptsLabels reports whether the labels of a type satisfy the requirements. A label that neither types nor offerings
// define is ignored, because it comes from the pool and the claim already has it.
func (w LaunchRequirements) acceptsLabels(labels requirements.Labels) bool {
	for key, accepted := range w.Accepted {
		value, isSet := labels[key]
		switch {
		case isSet && !accepted.Accepts(value):
			return false
		case !isSet && isOfType(key) && !accepted.Absent:
			return false
		}
	}
	return true
}

// acceptsOffering reports whether an offering satisfies the requirements and its zone has a subnet.
func (w LaunchRequirements) acceptsOffering(o catalog.Offering) bool {
	if _, ok := w.Subnets[o.Zone]; !ok {
		return false
	}
	for _, label := range [][2]string{
		{catalog.LabelZone, o.Zone}, {catalog.LabelCapacityType, o.CapacityType}, {catalog.LabelZoneID, o.ZoneID},
	} {
		if accepted, ok := w.Accepted[label[0]]; ok && !accepted.Accepts(label[1]) {
			return false
		}
	}
	return w.acceptsReservation(o)
}

// acceptsReservation reports whether the requirements accept the offering's capacity reservation, or the lack of one.
func (w LaunchRequirements) acceptsReservation(o catalog.Offering) bool {
	var labels requirements.Labels
	for _, key := range ReservationKeys() {
		accepted, ok := w.Accepted[key]
		if !ok {
			continue
		}
		if labels == nil {
			labels = o.Labels()
		}
		if value, isSet := labels[key]; isSet && !accepted.Accepts(value) || !isSet && !accepted.Absent {
			return false
		}
	}
	return true
}

// ReservationKeys returns the label keys of capacity reservations.
func ReservationKeys() [3]string {
	return [...]string{catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible}
}

// isOfType reports whether the label is a property of EC2's instance types. If so, a type without the label can never
// get the label.
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

// limit returns the picks that one launch may name, at most ec2.MaxChoices. With variety, the cheapest offering of each
// type comes first.
func (w LaunchRequirements) limit(picks []Pick) []Pick {
	if len(picks) <= ec2.MaxChoices {
		return picks
	}
	if !w.variety {
		return picks[:ec2.MaxChoices]
	}
	seen := map[string]bool{}
	var first, rest []Pick
	for _, p := range picks {
		if seen[p.Type.Name] {
			rest = append(rest, p)
			continue
		}
		seen[p.Type.Name] = true
		first = append(first, p)
	}
	return append(first, rest...)[:ec2.MaxChoices]
}

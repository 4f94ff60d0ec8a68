package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

// The types of capacity reservations, as values of LabelReservationType.
const (
	ReservationDefault = "default"
	ReservationBlock   = "capacity-block" // for a fixed period
)

// Reservation is the capacity reservation of an offering: instances of one type in one zone that are paid for whether
// they run or not.
type Reservation struct {
	ID            string // "cr-0123456789abcdef0"; empty: the offering has no reservation
	Type          string // ReservationDefault or ReservationBlock
	Interruptible bool   // its owner may reclaim the instances at any time

	// Left is the number of unused instances, at least 0. Offerings with the same reservation, in any NodeClass, share
	// these instances.
	Left int
}

// ReservedCapacity is a reservation with its instance type and zone, as EC2 describes it.
type ReservedCapacity struct {
	Reservation
	InstanceType string // "m5.large"
	Zone         string // name
	Expiring     bool   // nothing is launched into it any more
}

// perReserved divides the on-demand price to get the price of an instance in a reservation. The reservation is already
// paid for; the remaining price only ranks instances by size.
const perReserved = 10_000_000

// WithReserved returns the type with an offering for each of the reservations in zones; nil zones means everywhere. An
// offering is available while instances are left. t is not changed.
func (t Type) WithReserved(zones []Zone, all []ReservedCapacity) Type {
	out := slices.Clone(t.Offerings)
	for _, r := range all {
		i := slices.IndexFunc(zones, func(z Zone) bool { return z.Name == r.Zone })
		if r.InstanceType != t.Name || r.ID == "" || i < 0 && zones != nil {
			continue
		}
		r.Type = cmp.Or(r.Type, ReservationDefault)
		o := Offering{
			Zone: r.Zone, CapacityType: Reserved, Price: (t.onDemand() + perReserved/2) / perReserved,
			Available: r.Left > 0 && !r.Expiring, Reservation: r.Reservation,
		}
		if i >= 0 {
			o.ZoneID = zones[i].ID
		}
		out = append(out, o)
	}
	return t.WithOfferings(out)
}

// onDemand returns the on-demand price of the type, 0 if it has no such offering.
func (t Type) onDemand() Price {
	for _, o := range t.Offerings {
		if o.CapacityType == OnDemand {
			return o.Price
		}
	}
	return 0
}

// Check returns an error if the reservation of an offering with that capacity type is invalid.
func (r Reservation) Check(capacityType string) error {
	switch {
	case r.ID == "" && r != Reservation{}:
		return fmt.Errorf("its capacity reservation has no id")
	case r.ID == "":
		return nil
	case capacityType != Reserved:
		return fmt.Errorf("it is %s, so it cannot be of capacity reservation %s: want %s", capacityType, r.ID, Reserved)
	case r.Type != ReservationDefault && r.Type != ReservationBlock:
		return fmt.Errorf("the type of capacity reservation %s is %q, want %s or %s", r.ID, r.Type, ReservationDefault, ReservationBlock)
	case r.Left < 0:
		return fmt.Errorf("capacity reservation %s has %d instances left, want 0 or more", r.ID, r.Left)
	}
	return nil
}

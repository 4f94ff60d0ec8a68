package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

// The types of capacity reservations, as values of LabelReservationType.
const (
	ReservationDefault = "default"
	ReservationBlock   = "capacity-block" // a reservation for a fixed period
)

// Reservation is the capacity reservation of an offering: a number of instances of one type in one zone that the
// account pays for whether they run or not.
type Reservation struct {
	ID            string // "cr-0123456789abcdef0"; empty: the offering has no reservation
	Type          string // ReservationDefault or ReservationBlock
	Interruptible bool   // the owner of the reservation may reclaim the instances at any time

	// Left is the number of unused instances, at least 0. Offerings with the same reservation, in any NodeClass, share
	// these instances.
	Left int
}

// ReservedCapacity is a reservation with its instance type and zone, as EC2 describes it.
type ReservedCapacity struct {
	Reservation
	InstanceType string // "m5.large"
	Zone         string // "us-east-1a"
	Expiring     bool   // the reservation ends soon, so no instance is launched into it any more
}

// reservedDivisor divides the on-demand price to get the price of an instance in a reservation. The reservation is
// already paid for, so this price is below every other one. It only ranks instances by size.
const reservedDivisor = 10_000_000

// WithReserved returns the type with an additional offering for each of the reservations that is for this type and in
// one of the zones; nil zones means all zones. The offering is available if the reservation has instances left and is
// not expiring. t is not changed.
func (t Type) WithReserved(zones []Zone, reserved []ReservedCapacity) Type {
	out := slices.Clone(t.Offerings)
	for _, r := range reserved {
		i := slices.IndexFunc(zones, func(z Zone) bool { return z.Name == r.Zone })
		if r.InstanceType != t.Name || r.ID == "" || i < 0 && zones != nil {
			continue
		}
		r.Type = cmp.Or(r.Type, ReservationDefault)
		o := Offering{
			Zone: r.Zone, CapacityType: Reserved, Price: (t.onDemand() + reservedDivisor/2) / reservedDivisor,
			Available: r.Left > 0 && !r.Expiring, Reservation: r.Reservation,
		}
		if i >= 0 {
			o.ZoneID = zones[i].ID
		}
		out = append(out, o)
	}
	return t.WithOfferings(out)
}

// onDemand returns the lowest on-demand price of the type; 0 if it has no on-demand offering.
func (t Type) onDemand() Price {
	for _, o := range t.Offerings {
		if o.CapacityType == OnDemand {
			return o.Price
		}
	}
	return 0
}

// Check returns an error if the reservation is invalid for an offering with this capacity type.
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

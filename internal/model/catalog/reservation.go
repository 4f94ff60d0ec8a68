package catalog

import (
	"cmp"
	"fmt"
	"slices"
)

// The types of capacity reservations, as values of LabelReservationType.
const (
	ReservationDefault = "default"
	ReservationBlock   = "capacity-block" // for a stated time
)

// Reservation is a capacity reservation as an offering carries it: instances of
// one type in one zone that are paid for whether they run or not.
type Reservation struct {
	ID            string // "cr-0123456789abcdef0"; empty: the offering is of no reservation
	Type          string // ReservationDefault or ReservationBlock
	Interruptible bool   // its owner may take it back at any time

	// Left is how many more instances it holds, at least 0. Offerings that name
	// the same reservation, in whichever NodeClass, draw on the same instances.
	Left int
}

// ReservedCapacity is a reservation and what it is for, as EC2 describes it.
type ReservedCapacity struct {
	Reservation
	InstanceType string // "m5.large"
	Zone         string // name
	Expiring     bool   // nothing more is launched into it
}

// perReserved is the divisor of the price of an instance in a reservation, compared with
// on-demand. A reservation is paid for already; the remaining price orders large and
// small instances.
const perReserved = 10_000_000

// WithReserved returns the type with the offerings that the reservations make of
// it in zones, or anywhere if zones is nil. They are available as long as
// instances are left. t is not altered.
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

// onDemand is the price of the type on demand, 0 if it cannot be had so.
func (t Type) onDemand() Price {
	for _, o := range t.Offerings {
		if o.CapacityType == OnDemand {
			return o.Price
		}
	}
	return 0
}

// Check returns what is wrong with the reservation of an offering of that capacity type; nil if nothing is.
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

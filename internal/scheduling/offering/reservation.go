package offering

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// CapacityReservation is a capacity reservation that a NodePool may use. Its instances are already paid for, so the
// solver fills them before it plans other nodes, like existing nodes. Nodes that are chosen by price never use a
// reservation.
type CapacityReservation struct {
	Left   int   // number of instances that no node and no launching NodeClaim uses; may be negative
	Offers []int // the offers that use the reservation, of any pool and variant
}

// IsReserved reports whether a node of the offering uses an instance of a capacity reservation.
func (o *Offer) IsReserved() bool { return o.Reservation.ID != "" }

func (a *allowedType) split() (unreserved, reserved []*catalog.Offering) {
	for _, o := range a.offerings {
		if o.Reservation.ID == "" {
			unreserved = append(unreserved, o)
		} else {
			reserved = append(reserved, o)
		}
	}
	return unreserved, reserved
}

// findReservations numbers the capacity reservations of the offers. Left is the number of unused instances, minus the
// instances of NodeClaims that are not launched yet.
func (st *Stock) findReservations(nodes []cluster.Node) {
	st.Reserved = bitset.New(len(st.Offers))
	numbers := map[string]int{}
	for i := range st.Offers {
		o := &st.Offers[i]
		id := o.Reservation.ID
		if id == "" {
			continue
		}
		n, ok := numbers[id]
		if !ok {
			n = len(st.Reservations)
			numbers[id] = n
			st.Reservations = append(st.Reservations, CapacityReservation{Left: o.Reservation.Left})
		}
		r := &st.Reservations[n]
		r.Left = min(r.Left, o.Reservation.Left)
		r.Offers = append(r.Offers, i)
		o.ReservationIndex = n
		st.Reserved.Add(i)
	}
	for i := range nodes {
		if n, ok := numbers[nodes[i].Labels[catalog.LabelReservationID]]; ok && !nodes[i].Joined && nodes[i].ProviderID == "" {
			st.Reservations[n].Left--
		}
	}
}

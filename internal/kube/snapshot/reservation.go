package snapshot

import (
	"cmp"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Reservations returns the capacity reservations in the status of the node class: those in left (known), and the IDs of
// the others (unknown). left has the number of unused instances by reservation ID.
func Reservations(class *awsv1.EC2NodeClass, left map[string]int) (known []catalog.ReservedCapacity, unknown []string) {
	for _, r := range class.Status.CapacityReservations {
		n, ok := left[r.ID]
		if !ok {
			unknown = append(unknown, r.ID)
			continue
		}
		known = append(known, catalog.ReservedCapacity{
			Reservation: catalog.Reservation{
				ID: r.ID, Type: cmp.Or(string(r.ReservationType), catalog.ReservationDefault), Interruptible: r.Interruptible, Left: n,
			},
			InstanceType: r.InstanceType, Zone: r.AvailabilityZone,
			Expiring: r.State == awsv1.CapacityReservationExpiring,
		})
	}
	return known, unknown
}

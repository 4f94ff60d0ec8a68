package nodeclass

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
)

// resolveReservations reads the capacity reservations of the class, if they are enabled.
func (n *Reconciler) resolveReservations(ctx context.Context, class *awsv1.EC2NodeClass, f *resolvedClass) {
	f.reserves = n.Reservations != nil
	terms := class.Spec.CapacityReservationSelectorTerms
	if !f.reserves || len(terms) == 0 {
		return
	}
	now := time.Now()
	f.reservations, f.reservationErr = n.Reservations.Reservations(ctx, now, offerings.ReservationTerms(terms))
	f.reservations = f.usable(f.reservations)
	if f.reservationErr == nil && n.Offers.SawReserved(now, f.reservations) {
		n.Batch.Ask(string(class.UID)) // pods may be waiting for room in the reservations
	}
}

// gated returns the conditions on which Ready depends only while reserved capacity is enabled.
func (f resolvedClass) gated() []string {
	if f.reserves {
		return []string{awsv1.ConditionCapacityReservationsReady}
	}
	return nil
}

// reservationStatus returns the reservations for the status of the class.
func (f resolvedClass) reservationStatus() []awsv1.CapacityReservation {
	var out []awsv1.CapacityReservation
	for _, r := range f.reservations {
		one := awsv1.CapacityReservation{
			ID: r.ID, AvailabilityZone: r.Zone, InstanceMatchCriteria: r.Criteria, InstanceType: r.InstanceType, OwnerID: r.OwnerID,
			ReservationType: awsv1.CapacityReservationType(r.Type), Interruptible: r.Interruptible, State: awsv1.CapacityReservationActive,
		}
		if r.Expiring {
			one.State = awsv1.CapacityReservationExpiring
		}
		if !r.End.IsZero() {
			one.EndTime = &metav1.Time{Time: r.End}
		}
		out = append(out, one)
	}
	return out
}

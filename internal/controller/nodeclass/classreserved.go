package nodeclass

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
)

// resolveReservations reads the capacity reservations that the class selects. n.Reservations is nil if the feature gate
// ReservedCapacity is off.
func (n *Reconciler) resolveReservations(ctx context.Context, class *awsv1.EC2NodeClass, f *resolvedClass) {
	f.usesReservations = n.Reservations != nil
	terms := class.Spec.CapacityReservationSelectorTerms
	if !f.usesReservations || len(terms) == 0 {
		return
	}
	now := time.Now()
	f.reservations, f.reservationErr = n.Reservations.Reservations(ctx, now, offerings.ReservationTerms(terms))
	f.reservations = f.usable(f.reservations)
	if f.reservationErr == nil && n.Offers.NoteReservations(now, f.reservations) {
		n.Batch.Ask(string(class.UID)) // pods may be waiting for room in the reservations
	}
}

// reservationConditions returns the conditions on which Ready also depends while reserved capacity is enabled.
func (f resolvedClass) reservationConditions() []string {
	if f.usesReservations {
		return []string{awsv1.ConditionCapacityReservationsReady}
	}
	return nil
}

func (f resolvedClass) reservationStatus() []awsv1.CapacityReservation {
	var out []awsv1.CapacityReservation
	for _, r := range f.reservations {
		status := awsv1.CapacityReservation{
			ID: r.ID, AvailabilityZone: r.Zone, InstanceMatchCriteria: r.Criteria, InstanceType: r.InstanceType, OwnerID: r.OwnerID,
			ReservationType: awsv1.CapacityReservationType(r.Type), Interruptible: r.Interruptible, State: awsv1.CapacityReservationActive,
		}
		if r.Expiring {
			status.State = awsv1.CapacityReservationExpiring
		}
		if !r.End.IsZero() {
			status.EndTime = &metav1.Time{Time: r.End}
		}
		out = append(out, status)
	}
	return out
}

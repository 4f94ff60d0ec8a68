package ec2

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	awstypes "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// ReservationTerm selects the capacity reservations that match all fields that are set. An OwnerID alone selects none.
type ReservationTerm struct {
	ID       string            // "cr-0123"
	OwnerID  string            // 12 digits
	Criteria string            // "open" or "targeted"
	Tags     map[string]string // "*": any value
}

// Reservation is a capacity reservation as EC2 shows it.
type Reservation struct {
	catalog.ReservedCapacity
	OwnerID  string    // account ID of the owner
	Criteria string    // "open" or "targeted"
	End      time.Time // zero: no end date
	// PlacementGroup is the ARN of the placement group that instances of the reservation must be launched into; empty:
	// no group.
	PlacementGroup string
}

// BlockMargin is how long before the end of a capacity block Joiner stops launching instances into the block and drains
// its nodes. EC2 sends its warning at that time, and begins to terminate the instances ten minutes later.
const BlockMargin = 40 * time.Minute

// Reservations returns the active capacity reservations that any of the terms selects, sorted by ID. It leaves out
// reservations whose end has passed at now, and reservations of an unsupported kind. A term without a match is not an
// error.
func (d *Client) Reservations(ctx context.Context, now time.Time, terms []ReservationTerm) ([]Reservation, error) {
	found := map[string]Reservation{}
	for _, t := range terms {
		selected, err := d.reservations(ctx, now, t)
		if awserr.Is(err, awserr.Gone) {
			continue // the term has the ID of a reservation that does not exist
		}
		if err != nil {
			return nil, err
		}
		for _, r := range selected {
			found[r.ID] = r
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Reservation) int { return cmp.Compare(a.ID, b.ID) }), nil
}

func (d *Client) reservations(ctx context.Context, now time.Time, t ReservationTerm) ([]Reservation, error) {
	if t.ID == "" && t.Criteria == "" && len(t.Tags) == 0 {
		return nil, nil
	}
	in := &awsec2.DescribeCapacityReservationsInput{Filters: t.filters()}
	if t.ID != "" {
		in.CapacityReservationIds = []string{t.ID}
	} else {
		in.MaxResults = aws.Int32(1000)
	}
	var out []Reservation
	pages := awsec2.NewDescribeCapacityReservationsPaginator(d.reads, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awserr.Classify("DescribeCapacityReservations", err)
		}
		for _, r := range page.CapacityReservations {
			if converted, ok := fromReservation(r, now); ok {
				out = append(out, converted)
			}
		}
	}
	return out, nil
}

// filters returns EC2's filters for active reservations that match all fields of the term except the ID.
func (t ReservationTerm) filters() []awstypes.Filter {
	out := []awstypes.Filter{filter("state", string(awstypes.CapacityReservationStateActive))}
	if t.OwnerID != "" {
		out = append(out, filter("owner-id", t.OwnerID))
	}
	if t.Criteria != "" {
		out = append(out, filter("instance-match-criteria", t.Criteria))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Tags)) {
		if value := t.Tags[key]; value == "*" {
			out = append(out, filter("tag-key", key))
		} else {
			out = append(out, filter("tag:"+key, value))
		}
	}
	return out
}

// fromReservation converts a capacity reservation of EC2. The second result is false if the reservation has ended at
// now, or is of an unsupported kind.
func fromReservation(r awstypes.CapacityReservation, now time.Time) (Reservation, bool) {
	out := Reservation{OwnerID: aws.ToString(r.OwnerId), Criteria: string(r.InstanceMatchCriteria), End: aws.ToTime(r.EndDate)}
	out.PlacementGroup = aws.ToString(r.PlacementGroupArn)
	out.ID, out.Type = aws.ToString(r.CapacityReservationId), cmp.Or(string(r.ReservationType), catalog.ReservationDefault)
	out.InstanceType, out.Zone = aws.ToString(r.InstanceType), aws.ToString(r.AvailabilityZone)
	out.Interruptible, out.Left = aws.ToBool(r.Interruptible), max(int(aws.ToInt32(r.AvailableInstanceCount)), 0)
	switch {
	case out.ID == "" || !out.End.IsZero() && !now.Before(out.End):
		return out, false
	case out.Type != catalog.ReservationDefault && out.Type != catalog.ReservationBlock,
		r.InstanceMatchCriteria != awstypes.InstanceMatchCriteriaOpen && r.InstanceMatchCriteria != awstypes.InstanceMatchCriteriaTargeted:
		slog.Debug("capacity reservation of an unknown kind", "id", out.ID, "type", out.Type, "instanceMatchCriteria", out.Criteria)
		return out, false
	}
	out.Expiring = out.Type == catalog.ReservationBlock && !out.End.IsZero() && !now.Before(out.End.Add(-BlockMargin))
	return out, true
}

// marketType returns EC2's market type for a launch into the reservation; empty for an ordinary reservation.
func (r ReservationRef) marketType() awstypes.MarketType {
	switch {
	case r.Block:
		return awstypes.MarketTypeCapacityBlock
	case r.Interruptible:
		return awstypes.MarketTypeInterruptibleCapacityReservation
	}
	return ""
}

func (r ReservationRef) catalogReservation() catalog.Reservation {
	if r.ID == "" {
		return catalog.Reservation{}
	}
	out := catalog.Reservation{ID: r.ID, Type: catalog.ReservationDefault, Interruptible: r.Interruptible}
	if r.Block {
		out.Type = catalog.ReservationBlock
	}
	return out
}

// ReservationRefOf returns the reference to the reservation for a launch.
func ReservationRefOf(r catalog.Reservation) ReservationRef {
	return ReservationRef{ID: r.ID, Block: r.Type == catalog.ReservationBlock, Interruptible: r.Interruptible}
}

// reclassify returns e, an error of CreateFleet. If its cause is a reservation that cannot be used any more, the
// returned error has the kind Shortage, as for a full reservation.
func (r LaunchRequest) reclassify(e *awserr.Error) *awserr.Error {
	if r.CapacityType != catalog.Reserved || !strings.HasPrefix(e.Code, "InvalidCapacityReservation") {
		return e
	}
	out := *e
	out.Kind = awserr.Shortage
	return &out
}

// checkReserved returns an error if the request's capacity type and its reservations do not fit together.
func (r LaunchRequest) checkReserved() error {
	const op = "CreateFleet"
	first := ReservationRef{}
	for i, g := range r.Groups {
		ref := g.Blueprint.Reservation
		if isReserved := r.CapacityType == catalog.Reserved; isReserved != (ref.ID != "") {
			return awserr.Misconfiguredf(op, "ReservationMismatch",
				"the launch for NodeClaim %s has capacity type %s, which does not fit its capacity reservation %q", r.Claim, r.CapacityType, ref.ID)
		}
		if i == 0 {
			first = ref
		}
		if ref.marketType() != first.marketType() || ref.Block && ref.ID != first.ID {
			return awserr.Misconfiguredf(op, "ReservationMismatch",
				"one launch for NodeClaim %s cannot use both %s and %s: their kinds differ, or both are capacity blocks", r.Claim, first.ID, ref.ID)
		}
	}
	return nil
}

package ec2

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

type reservationsIn struct {
	Ids []string `aws:"CapacityReservationId"`
	listIn
}

type reservationsOut struct {
	CapacityReservations []capacityReservation `aws:"CapacityReservationSet"`
	NextToken            string
}

type capacityReservation struct {
	CapacityReservationId  string
	CapacityReservationArn string
	OwnerId                string
	InstanceType           string
	InstancePlatform       string
	AvailabilityZone       string
	AvailabilityZoneId     string
	Tenancy                string
	TotalInstanceCount     int64
	AvailableInstanceCount int64 `aws:",,always"`
	EbsOptimized           bool
	EphemeralStorage       bool
	State                  string
	StartDate              time.Time
	EndDate                *time.Time
	EndDateType            string
	InstanceMatchCriteria  string
	CreateDate             time.Time
	ReservationType        string
	Interruptible          bool
	PlacementGroupArn      string
	Tags                   []world.Tag `aws:"TagSet"`
}

// describeCapacityReservations lists active and ended capacity reservations.
func describeCapacityReservations(c *api.Call, in *reservationsIn) (reservationsOut, error) {
	if len(in.Ids) > 0 && in.MaxResults != nil {
		return reservationsOut{},
			&failure.Error{Code: "InvalidParameterCombination", Message: "The parameter CapacityReservationIds cannot be used with the parameter MaxResults"}
	}
	found, next, err := list(in.listIn, listing[*world.CapacityReservation, capacityReservation]{
		items: c.Region.CapacityReservations.All(), ids: in.Ids, code: "InvalidCapacityReservationId.NotFound",
		id:         func(r *world.CapacityReservation) string { return r.ID },
		filterable: reservationFilters,
		write:      func(r *world.CapacityReservation) capacityReservation { return capacityReservationOf(c, r) },
	})
	return reservationsOut{CapacityReservations: found, NextToken: next}, err
}

func reservationFilters(r *world.CapacityReservation) api.Filterable {
	if r == nil {
		r = &world.CapacityReservation{} // only the names of the filters matter
	}
	endType := "limited"
	if r.End.IsZero() {
		endType = "unlimited"
	}
	return api.Filterable{Tags: r.Tags, Values: map[string][]string{
		"instance-type": {r.Type}, "owner-id": {r.Owner}, "instance-platform": {"Linux/UNIX"}, "availability-zone": {r.Zone.Name},
		"tenancy": {"default"}, "state": {r.State}, "instance-match-criteria": {r.Criteria}, "end-date-type": {endType},
	}}
}

func capacityReservationOf(c *api.Call, r *world.CapacityReservation) capacityReservation {
	out := capacityReservation{
		CapacityReservationId: r.ID, OwnerId: r.Owner, InstanceType: r.Type, InstancePlatform: "Linux/UNIX",
		CapacityReservationArn: c.Region.ARN("ec2", r.Owner, "capacity-reservation/"+r.ID),
		AvailabilityZone:       r.Zone.Name, AvailabilityZoneId: r.Zone.ID, Tenancy: "default",
		TotalInstanceCount: int64(r.Total), AvailableInstanceCount: int64(c.Region.CapacityReservations.Unused(r)),
		State: r.State, StartDate: r.CreatedAt, CreateDate: r.CreatedAt, EndDateType: "unlimited",
		InstanceMatchCriteria: r.Criteria, ReservationType: r.Kind, Interruptible: r.Interruptible, Tags: api.TagList(r.Tags),
	}
	if r.Group != "" {
		out.PlacementGroupArn = c.Region.ResourceARN("placement-group", r.Group)
	}
	if !r.End.IsZero() {
		out.EndDate, out.EndDateType = &r.End, "limited"
	}
	return out
}

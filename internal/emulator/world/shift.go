package world

import (
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// ZonalShift moves the traffic of one resource away from one zone.
type ZonalShift struct {
	ID        string    // a UUID; empty for an autoshift
	Resource  string    // ARN
	AwayFrom  string    // id of the zone: "use1-az1"
	Comment   string    // the user's comment; empty: none
	Status    string    // ShiftActive, ShiftExpired or ShiftCanceled
	StartedAt time.Time // when the shift started
	ExpiresAt time.Time // when the shift ends; zero for an autoshift, which AWS ends
	AWS       bool      // an autoshift, which AWS has started
}

// ZonalShifts has the zonal shifts of a region, of the service Amazon Application Recovery Controller (ARC).
type ZonalShifts struct {
	region *Region
	all    []*ZonalShift // oldest first
}

// The states of zonal shifts, by ARC's names.
const (
	ShiftActive   = "ACTIVE"
	ShiftExpired  = "EXPIRED"
	ShiftCanceled = "CANCELED"
)

const maxShift = 3 * 24 * time.Hour

// Start starts a zonal shift of a user, which ends after the given duration. A second active shift of a user for the
// same resource is an error.
func (zs *ZonalShifts) Start(now time.Time, q ZonalShift, duration time.Duration) (*ZonalShift, error) {
	if err := zs.check(q); err != nil {
		return nil, err
	}
	if duration < time.Minute || duration > maxShift {
		return nil, failure.New("ValidationException", "The expiration is not between one minute and three days.")
	}
	for _, s := range zs.ActiveFor(q.Resource) {
		if !s.AWS {
			return nil, failure.WithStatus(409, "ConflictException", "There is an active zonal shift for %s already.", q.Resource)
		}
	}
	q.ID, q.Status, q.AWS, q.StartedAt, q.ExpiresAt = zs.region.site.IDs.UUID("shift"), ShiftActive, false, now, now.Add(duration)
	s := &q
	zs.all = append(zs.all, s)
	zs.region.site.Due.Schedule(q.ExpiresAt, func(time.Time) {
		if s.Status == ShiftActive {
			s.Status = ShiftExpired
		}
	})
	return s, nil
}

// StartAutoshift starts an autoshift: a shift that AWS starts without the user. EndAutoshift ends it.
func (zs *ZonalShifts) StartAutoshift(now time.Time, resource, awayFrom string) error {
	s := ZonalShift{Resource: resource, AwayFrom: awayFrom, Status: ShiftActive, StartedAt: now, AWS: true}
	if err := zs.check(s); err != nil {
		return err
	}
	zs.all = append(zs.all, &s)
	return nil
}

// EndAutoshift ends the autoshifts of a resource.
func (zs *ZonalShifts) EndAutoshift(resource string) {
	for _, s := range zs.ActiveFor(resource) {
		if s.AWS {
			s.Status = ShiftCanceled
		}
	}
}

// Cancel ends a user's shift early. Autoshifts have no id: see EndAutoshift.
func (zs *ZonalShifts) Cancel(id string) (*ZonalShift, error) {
	i := slices.IndexFunc(zs.all, func(s *ZonalShift) bool { return s.ID == id && id != "" })
	if i < 0 {
		return nil, failure.WithStatus(404, "ResourceNotFoundException", "There is no zonal shift with the id %s.", id)
	}
	s := zs.all[i]
	if s.Status != ShiftActive {
		return nil, failure.WithStatus(409, "ConflictException", "The zonal shift %s is not active.", id)
	}
	s.Status = ShiftCanceled
	return s, nil
}

// ActiveFor returns the active shifts of a resource, oldest first.
func (zs *ZonalShifts) ActiveFor(resource string) []*ZonalShift {
	return slices.DeleteFunc(slices.Clone(zs.all), func(s *ZonalShift) bool { return s.Resource != resource || s.Status != ShiftActive })
}

// IsManaged reports whether the resource with an ARN takes part in zonal shifts.
func (zs *ZonalShifts) IsManaged(resource string) bool {
	for _, name := range zs.region.EKS.Clusters() {
		if c, err := zs.region.EKS.Cluster(name); err == nil && c.ARN == resource {
			return c.ZonalShift
		}
	}
	return false
}

func (zs *ZonalShifts) check(s ZonalShift) error {
	if !zs.IsManaged(s.Resource) {
		return zs.UnmanagedError(s.Resource)
	}
	if !slices.ContainsFunc(zs.region.site.Zones, func(z site.Zone) bool { return z.ID == s.AwayFrom }) {
		return failure.New("ValidationException", "The Availability Zone %s is not one of the resource's.", s.AwayFrom)
	}
	return nil
}

// UnmanagedError returns ARC's error for a resource that does not take part in zonal shifts.
func (zs *ZonalShifts) UnmanagedError(resource string) error {
	return failure.WithStatus(404, "ResourceNotFoundException", "The resource %s is not registered for zonal shift.", resource)
}

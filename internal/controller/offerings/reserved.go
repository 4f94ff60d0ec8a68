package offerings

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
)

// Reservations finds capacity reservations.
type Reservations interface {
	Reservations(ctx context.Context, now time.Time, terms []ec2.ReservationTerm) ([]ec2.Reservation, error)
}

// ReservedBook counts the instances that capacity reservations have left: EC2's count minus later launches that EC2
// does not count yet. Claims without an instance are not subtracted here; the plan counts them. The zero value is
// empty. Its methods are safe for concurrent use.
type ReservedBook struct {
	mu   sync.Mutex
	byID map[string]*reservedCount // counts by ID of the reservation
}

type reservedCount struct {
	free      int         // EC2's count of free instances
	at        time.Time   // when EC2 returned the count
	uncounted []time.Time // times of launches that are not subtracted from free yet, oldest first
}

// EC2 may take up to MaxReservationDelay to count a launched instance. A reservation that no class selects any more is
// remembered for ReservationRetention.
const (
	MaxReservationDelay  = time.Minute
	ReservationRetention = time.Hour
)

// Update records EC2's counts at now, and returns the IDs of the reservations whose count has increased. If a count has
// fallen by n, EC2 is assumed to count n more of our launches than before.
func (b *ReservedBook) Update(now time.Time, found []ec2.Reservation) (increased []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byID == nil {
		b.byID = map[string]*reservedCount{}
	}
	for _, r := range found {
		c, ok := b.byID[r.ID]
		if !ok {
			c = &reservedCount{}
			b.byID[r.ID] = c
		}
		if r.Left > c.free {
			increased = append(increased, r.ID)
		}
		counted := min(max(c.free-r.Left, 0), len(c.uncounted))
		c.uncounted = slices.DeleteFunc(slices.Clone(c.uncounted[counted:]),
			func(at time.Time) bool { return now.Sub(at) >= MaxReservationDelay })
		c.free, c.at = r.Left, now
	}
	maps.DeleteFunc(b.byID, func(_ string, c *reservedCount) bool { return now.Sub(c.at) > ReservationRetention })
	return increased
}

// AddLaunch records an instance that was launched into the reservation at now.
func (b *ReservedBook) AddLaunch(now time.Time, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.byID[id]; ok {
		c.uncounted = append(c.uncounted, now)
	}
}

// Left returns how many instances each reservation has left, at least 0.
func (b *ReservedBook) Left() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]int, len(b.byID))
	for id, c := range b.byID {
		out[id] = max(c.free-len(c.uncounted), 0)
	}
	return out
}

// reserve returns the catalog of a class with the offerings of its capacity reservations. It does not change c.
func (m *Catalogs) reserve(class *awsv1.EC2NodeClass, c catalog.Catalog) catalog.Catalog {
	if len(class.Status.CapacityReservations) == 0 {
		return c
	}
	known, _ := snapshot.Reservations(class, m.reserved.Left())
	zones := append([]catalog.Zone{}, ZonesOf(class)...) // not nil: nil would mean all zones
	c.Types = withReserved(c.Types, zones, known)
	byPool := c.Pools
	c.Pools = nil
	for pool, types := range byPool {
		if c.Pools == nil {
			c.Pools = make(map[string][]catalog.Type, len(byPool))
		}
		c.Pools[pool] = withReserved(types, zones, known)
	}
	return c
}

func withReserved(types []catalog.Type, zones []catalog.Zone, known []catalog.ReservedCapacity) []catalog.Type {
	out := slices.Clone(types)
	for i := range out {
		if isDedicated(out[i]) {
			continue // the reservations that classes select have default tenancy
		}
		if slices.ContainsFunc(known, func(r catalog.ReservedCapacity) bool { return r.InstanceType == out[i].Name }) {
			out[i] = out[i].WithReserved(zones, known)
		}
	}
	return out
}

// NoteReservations records the capacity reservations that EC2 returned at now, and reports whether one of them has more
// instances left than before.
func (o *RequestBuilder) NoteReservations(now time.Time, found []ec2.Reservation) bool {
	increased := o.Market.reserved.Update(now, found)
	for _, id := range increased {
		o.Shortages.NoteReservationFree(id)
	}
	return len(increased) > 0
}

// ReservationTerms converts the selector terms of an EC2NodeClass.
func ReservationTerms(terms []awsv1.CapacityReservationSelectorTerm) []ec2.ReservationTerm {
	var out []ec2.ReservationTerm
	for _, t := range terms {
		out = append(out, ec2.ReservationTerm{ID: t.ID, OwnerID: t.OwnerID, Criteria: t.InstanceMatchCriteria, Tags: t.Tags})
	}
	return out
}

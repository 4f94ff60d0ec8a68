package world

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// CapacityReservation is instances of one type in one zone that an account pays for whether they run or not.
type CapacityReservation struct {
	ID            string            // "cr-0…"
	Owner         string            // 12 digits; empty: the account of the region
	Type          string            // "m5.large"
	Zone          site.Zone         // the zone of its instances
	Total         int               // how many instances it holds
	Criteria      string            // "open", which launches use unasked, or "targeted"; empty: open
	Kind          string            // "default" or "capacity-block"; empty: default
	Interruptible bool              // its owner may take it back at any time
	Group         string            // name of the cluster placement group that its instances are in; empty: in none
	State         string            // "active", "expired" or "cancelled"
	CreatedAt     time.Time         // when the reservation was created
	End           time.Time         // zero: when it is cancelled
	Tags          map[string]string // nil: none
}

// CapacityReservations has the capacity reservations of a region.
type CapacityReservations struct {
	region *Region
	all    []*CapacityReservation // oldest first
}

// The words of capacity reservations.
const (
	reservationActive    = "active"
	reservationExpired   = "expired"
	reservationCancelled = "cancelled"

	criteriaOpen     = "open"
	criteriaTargeted = "targeted"

	kindDefault = "default"
	kindBlock   = "capacity-block"

	// MarketBlock and MarketInterruptible are the market types of launches into a capacity block or an interruptible reservation.
	MarketBlock         = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"

	// OnlyReserved and NeverReserved are preferences: to run in a reservation or not at all, or in none. The third is
	// "open", for which an empty one stands.
	OnlyReserved  = "capacity-reservations-only"
	NeverReserved = "none"
)

// When EC2 warns of the end of a capacity block, and when it begins to terminate its instances: so long before the end.
const (
	blockWarning = 40 * time.Minute
	blockReclaim = 30 * time.Minute
)

// Create makes a capacity reservation.
func (cr *CapacityReservations) Create(now time.Time, q CapacityReservation) (*CapacityReservation, error) {
	q.Owner, q.Criteria, q.Kind = cmp.Or(q.Owner, cr.region.Account.ID), cmp.Or(q.Criteria, criteriaOpen), cmp.Or(q.Kind, kindDefault)
	zone, ok := cr.region.site.Zone(q.Zone.Name)
	switch {
	case !ok:
		return nil, failure.New("InvalidParameterValue", "Invalid availability zone: [%s]", q.Zone.Name)
	case q.Total < 1:
		return nil, failure.New("InvalidParameterValue", "Value (%d) for parameter instanceCount is invalid.", q.Total)
	case q.Criteria != criteriaOpen && q.Criteria != criteriaTargeted:
		return nil, failure.New("InvalidParameterValue", "Value (%s) for parameter instanceMatchCriteria is invalid.", q.Criteria)
	case q.Kind == kindBlock && q.End.IsZero():
		return nil, failure.New("InvalidParameterValue", "A capacity block has an end date.")
	}
	if _, err := cr.region.Launches.resolveType(q.Type); err != nil {
		return nil, err
	}
	if g := cr.region.PlacementGroups.ByNameOrID(q.Group); q.Group != "" && (g == nil || g.Strategy != ClusterGroup) {
		return nil, refuseGroup(q.Group)
	}
	q.ID, q.Zone, q.State, q.CreatedAt, q.Tags = cr.region.site.IDs.New("cr"), zone, reservationActive, now, maps.Clone(q.Tags)
	c := &q
	cr.all = append(cr.all, c)
	cr.scheduleEnd(c)
	return c, nil
}

// scheduleEnd enters what happens at the end of a reservation. A block's instances end with it, others run on.
func (cr *CapacityReservations) scheduleEnd(c *CapacityReservation) {
	if c.End.IsZero() {
		return
	}
	due := &cr.region.world().due
	if c.Kind == kindBlock {
		due.Enter(c.End.Add(-blockWarning), func(at time.Time) { cr.region.ExpireBlock(at, c.ID, c.End) })
		due.Enter(c.End.Add(-blockReclaim), func(at time.Time) {
			for _, m := range cr.inside(c) {
				cr.region.Instances.shutDown(at, m, reason(blockEnded))
			}
		})
	}
	due.Enter(c.End, func(at time.Time) { cr.end(at, c, reservationExpired) })
}

// Cancel ends a reservation early. Its instances run on, on demand.
func (cr *CapacityReservations) Cancel(now time.Time, id string) error {
	c := cr.ByID(id)
	if c == nil {
		return refuseReservation(id)
	}
	cr.end(now, c, reservationCancelled)
	return nil
}

func (cr *CapacityReservations) end(now time.Time, c *CapacityReservation, state string) {
	if c.State != reservationActive {
		return
	}
	for _, m := range cr.inside(c) {
		m.change(now, func(i *Instance) { i.CapacityReservationID = "" })
		cr.region.Capacity.occupy(m.offering(), m.stock.Facts.Processor.VCPUs)
	}
	c.State = state
}

// All returns those of the region, ended ones too, oldest first.
func (cr *CapacityReservations) All() []*CapacityReservation { return slices.Clone(cr.all) }

// ByID returns one by id; nil if it does not exist.
func (cr *CapacityReservations) ByID(id string) *CapacityReservation {
	for _, c := range cr.all {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Unused returns how many instances of a reservation are free.
func (cr *CapacityReservations) Unused(c *CapacityReservation) int {
	if c.State != reservationActive {
		return 0
	}
	return max(c.Total-len(cr.inside(c)), 0)
}

// inside returns the instances in a reservation, oldest first.
func (cr *CapacityReservations) inside(c *CapacityReservation) []*history {
	var out []*history
	for _, id := range cr.region.Instances.order {
		if m := cr.region.Instances.byID[id]; m.now.CapacityReservationID == c.ID && m.now.Alive() {
			out = append(out, m)
		}
	}
	return out
}

// check rejects a launch that names a reservation which does not exist, or has another market type.
func (cr *CapacityReservations) check(w launchRequest) (*CapacityReservation, error) {
	market := ""
	if m := w.data.Market; m != nil && (m.Kind == MarketBlock || m.Kind == MarketInterruptible) {
		market = m.Kind
	}
	if w.fleet && w.market != market {
		return nil, failure.New("InvalidFleetConfiguration",
			"The market type %q of the launch template does not match the target capacity type of the fleet.", market)
	}
	id := w.data.target()
	if id == "" && market != "" {
		return nil, failure.New("InvalidParameterCombination", "The market type %s needs a target capacity reservation.", market)
	}
	if id == "" {
		return nil, nil
	}
	c := cr.ByID(id)
	if c == nil {
		return nil, refuseReservation(id)
	}
	if c.market() != market {
		return nil, failure.New("InvalidParameterCombination",
			"The capacity reservation %s needs the market type %q, not %q.", id, c.market(), market)
	}
	if g := cr.region.PlacementGroups.nameOf(w.data); g != c.Group {
		return nil, failure.New("InvalidParameterCombination",
			"The capacity reservation %s is in the placement group %q, not %q.", id, c.Group, g)
	}
	return c, nil
}

// nameOf is the name of the placement group that the data name; empty if they name none that is there.
func (pg *PlacementGroups) nameOf(d TemplateData) string {
	if d.Placement == nil {
		return ""
	}
	if g := pg.ByNameOrID(cmp.Or(d.Placement.GroupID, d.Placement.GroupName)); g != nil {
		return g.Name
	}
	return ""
}

// market is the market type that launches into the reservation must have.
func (c *CapacityReservation) market() string {
	switch {
	case c.Kind == kindBlock:
		return MarketBlock
	case c.Interruptible:
		return MarketInterruptible
	}
	return ""
}

// forLaunch returns the reservation that the instance would run in now; nil if in none. The second result is false if it
// must run in one and there is no room.
func (cr *CapacityReservations) forLaunch(b resolvedLaunch) (*CapacityReservation, bool) {
	preference := ""
	if b.data.Reservation != nil {
		preference = b.data.Reservation.Preference
	}
	serves := func(c *CapacityReservation) bool {
		return c.Type == b.offering.Type && c.Zone.Name == b.offering.Zone && cr.Unused(c) > 0
	}
	switch {
	case b.offering.Spot || preference == NeverReserved:
		return nil, true
	case b.target != nil:
		return b.target, serves(b.target)
	}
	for _, c := range cr.all {
		if c.Criteria == criteriaOpen && c.market() == "" && c.Group == cr.region.PlacementGroups.nameOf(b.data) && serves(c) {
			return c, true
		}
	}
	return nil, preference != OnlyReserved
}

// availableFor returns how many instances the launch could have at most, reserved ones among them.
func (cr *CapacityReservations) availableFor(b resolvedLaunch) int {
	c, _ := cr.forLaunch(b)
	switch {
	case c == nil:
		return cr.region.Capacity.left(b.offering)
	case b.target != nil || b.data.Reservation != nil && b.data.Reservation.Preference == OnlyReserved:
		return cr.Unused(c)
	}
	return cr.Unused(c) + cr.region.Capacity.left(b.offering)
}

// assign writes on a new instance where it runs.
func (cr *CapacityReservations) assign(i *Instance, b resolvedLaunch) {
	if b.data.Reservation != nil {
		i.RequestedReservation = *b.data.Reservation
	}
	c, _ := cr.forLaunch(b)
	if c == nil {
		return
	}
	i.CapacityReservationID, i.Market = c.ID, c.market()
}

// release releases the capacity of an instance that ends. Reserved capacity does not become available to others.
func (cr *CapacityReservations) release(m *history) {
	if m.now.CapacityReservationID == "" {
		cr.region.Capacity.vacate(m.offering(), m.stock.Facts.Processor.VCPUs)
	}
}

// target is the id of the reservation that the data name; empty if they name none.
func (d TemplateData) target() string {
	if d.Reservation == nil || d.Reservation.Target == nil {
		return ""
	}
	return d.Reservation.Target.ID
}

func refuseReservation(id string) error {
	return failure.New("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
}

func refuseFull() error {
	return failure.New("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
}

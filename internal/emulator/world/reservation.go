package world

import (
	"maps"
	"slices"
	"time"
)

// CapacityReservation is instances of one type in one zone that an account pays for whether they run or not.
type CapacityReservation struct {
	ID            string // "cr-0…"
	Owner         string // 12 digits; empty: the account of the region
	Type          string // "m5.large"
	Zone          Zone
	Total         int    // how many instances it holds
	Criteria      string // "open", which launches use unasked, or "targeted"; empty: open
	Kind          string // "default" or "capacity-block"; empty: default
	Interruptible bool   // its owner may take it back at any time
	Group         string // name of the cluster placement group that its instances are in; empty: in none
	State         string // "active", "expired" or "cancelled"
	CreatedAt     time.Time
	End           time.Time // zero: when it is cancelled
	Tags          map[string]string
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

// Reserve makes a capacity reservation.
func (r *Region) Reserve(now time.Time, q CapacityReservation) (*CapacityReservation, error) {
	q.Owner, q.Criteria, q.Kind = or(q.Owner, r.Account.ID), or(q.Criteria, criteriaOpen), or(q.Kind, kindDefault)
	zone, ok := r.zone(q.Zone.Name)
	switch {
	case !ok:
		return nil, refuse("InvalidParameterValue", "Invalid availability zone: [%s]", q.Zone.Name)
	case q.Total < 1:
		return nil, refuse("InvalidParameterValue", "Value (%d) for parameter instanceCount is invalid.", q.Total)
	case q.Criteria != criteriaOpen && q.Criteria != criteriaTargeted:
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter instanceMatchCriteria is invalid.", q.Criteria)
	case q.Kind == kindBlock && q.End.IsZero():
		return nil, refuse("InvalidParameterValue", "A capacity block has an end date.")
	}
	if _, err := r.wantedType(q.Type); err != nil {
		return nil, err
	}
	if g := r.PlacementGroup(q.Group); q.Group != "" && (g == nil || g.Strategy != ClusterGroup) {
		return nil, refuseGroup(q.Group)
	}
	q.ID, q.Zone, q.State, q.CreatedAt, q.Tags = r.world().NewID("cr"), zone, reservationActive, now, maps.Clone(q.Tags)
	c := &q
	r.reserved = append(r.reserved, c)
	r.scheduleEnd(c)
	return c, nil
}

// scheduleEnd enters what happens at the end of a reservation. A block's instances end with it, others run on.
func (r *Region) scheduleEnd(c *CapacityReservation) {
	if c.End.IsZero() {
		return
	}
	due := &r.world().due
	if c.Kind == kindBlock {
		due.enter(c.End.Add(-blockWarning), func(at time.Time) { r.ExpireBlock(at, c.ID, c.End) })
		due.enter(c.End.Add(-blockReclaim), func(at time.Time) {
			for _, m := range r.inside(c) {
				r.shutDown(at, m, reason(blockEnded))
			}
		})
	}
	due.enter(c.End, func(at time.Time) { r.endReservation(at, c, reservationExpired) })
}

// CancelReservation ends a reservation early. Its instances run on, on demand.
func (r *Region) CancelReservation(now time.Time, id string) error {
	c := r.CapacityReservation(id)
	if c == nil {
		return refuseReservation(id)
	}
	r.endReservation(now, c, reservationCancelled)
	return nil
}

func (r *Region) endReservation(now time.Time, c *CapacityReservation, state string) {
	if c.State != reservationActive {
		return
	}
	for _, m := range r.inside(c) {
		m.change(now, func(i *Instance) { i.CapacityReservationID = "" })
		r.occupy(m.offering(), m.stock.Facts.Processor.VCPUs)
	}
	c.State = state
}

// CapacityReservations returns those of the region, ended ones too, oldest first.
func (r *Region) CapacityReservations() []*CapacityReservation { return slices.Clone(r.reserved) }

// CapacityReservation returns one by id; nil if there is none.
func (r *Region) CapacityReservation(id string) *CapacityReservation {
	for _, c := range r.reserved {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Unused returns how many instances of a reservation are free.
func (r *Region) Unused(c *CapacityReservation) int {
	if c.State != reservationActive {
		return 0
	}
	return max(c.Total-len(r.inside(c)), 0)
}

// inside returns the instances in a reservation, oldest first.
func (r *Region) inside(c *CapacityReservation) []*history {
	var out []*history
	for _, id := range r.machineOrder {
		if m := r.machines[id]; m.now.CapacityReservationID == c.ID && m.now.Alive() {
			out = append(out, m)
		}
	}
	return out
}

// checkReservation rejects a launch that names a reservation which does not exist, or has another market type.
func (r *Region) checkReservation(w want) (*CapacityReservation, error) {
	market := ""
	if m := w.data.Market; m != nil && (m.Kind == MarketBlock || m.Kind == MarketInterruptible) {
		market = m.Kind
	}
	if w.fleet && w.market != market {
		return nil, refuse("InvalidFleetConfiguration", "The market type %q of the launch template does not match the target capacity type of the fleet.", market)
	}
	id := w.data.target()
	if id == "" && market != "" {
		return nil, refuse("InvalidParameterCombination", "The market type %s needs a target capacity reservation.", market)
	}
	if id == "" {
		return nil, nil
	}
	c := r.CapacityReservation(id)
	if c == nil {
		return nil, refuseReservation(id)
	}
	if c.market() != market {
		return nil, refuse("InvalidParameterCombination", "The capacity reservation %s needs the market type %q, not %q.", id, c.market(), market)
	}
	if g := r.groupOf(w.data); g != c.Group {
		return nil, refuse("InvalidParameterCombination", "The capacity reservation %s is in the placement group %q, not %q.", id, c.Group, g)
	}
	return c, nil
}

// groupOf is the name of the placement group that the data name; empty if they name none that is there.
func (r *Region) groupOf(d TemplateData) string {
	if d.Placement == nil {
		return ""
	}
	if g := r.PlacementGroup(or(d.Placement.GroupID, d.Placement.GroupName)); g != nil {
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

// reservationFor returns the reservation that the instance would run in now; nil if in none. The second result is false if it
// must run in one and there is no room.
func (r *Region) reservationFor(b birth) (*CapacityReservation, bool) {
	preference := ""
	if b.data.Reservation != nil {
		preference = b.data.Reservation.Preference
	}
	serves := func(c *CapacityReservation) bool {
		return c.Type == b.offering.Type && c.Zone.Name == b.offering.Zone && r.Unused(c) > 0
	}
	switch {
	case b.offering.Spot || preference == NeverReserved:
		return nil, true
	case b.target != nil:
		return b.target, serves(b.target)
	}
	for _, c := range r.reserved {
		if c.Criteria == criteriaOpen && c.market() == "" && c.Group == r.groupOf(b.data) && serves(c) {
			return c, true
		}
	}
	return nil, preference != OnlyReserved
}

// leftOver returns how many instances the launch could have at most, reserved ones among them.
func (r *Region) leftOver(b birth) int {
	c, _ := r.reservationFor(b)
	switch {
	case c == nil:
		return r.left(b.offering)
	case b.target != nil || b.data.Reservation != nil && b.data.Reservation.Preference == OnlyReserved:
		return r.Unused(c)
	}
	return r.Unused(c) + r.left(b.offering)
}

// reserve writes on a new instance where it runs.
func (r *Region) reserve(i *Instance, b birth) {
	if b.data.Reservation != nil {
		i.ReservationWish = *b.data.Reservation
	}
	c, _ := r.reservationFor(b)
	if c == nil {
		return
	}
	i.CapacityReservationID, i.Market = c.ID, c.market()
}

// free releases the capacity of an instance that ends. Reserved capacity does not become available to others.
func (r *Region) free(m *history) {
	if m.now.CapacityReservationID == "" {
		r.vacate(m.offering(), m.stock.Facts.Processor.VCPUs)
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
	return refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
}

func refuseFull() error {
	return refuse("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
}

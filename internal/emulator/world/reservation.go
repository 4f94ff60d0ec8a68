package world

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// CapacityReservation reserves capacity for instances of one type in one zone.
type CapacityReservation struct {
	ID            string            // "cr-0…"
	Owner         string            // 12 digits; empty: the account of the region
	Type          string            // "m5.large"
	Zone          site.Zone         // the zone of its instances
	Total         int               // number of reserved instances
	Criteria      string            // "open" (all matching launches may use it) or "targeted" (launches must name it); empty: open
	Kind          string            // "default" or "capacity-block"; empty: default
	Interruptible bool              // the owner may interrupt the instances at any time
	Group         string            // name of the cluster placement group of its instances; empty: none
	State         string            // "active", "expired" or "cancelled"
	CreatedAt     time.Time         // creation time
	End           time.Time         // zero: it ends when it is cancelled
	Tags          map[string]string // nil: none
}

// CapacityReservations has the capacity reservations of a region.
type CapacityReservations struct {
	region *Region
	all    []*CapacityReservation // oldest first
}

// The values of the fields of capacity reservations, and of the launch parameters that refer to reservations.
const (
	reservationActive    = "active"
	reservationExpired   = "expired"
	reservationCancelled = "cancelled"

	criteriaOpen     = "open"
	criteriaTargeted = "targeted"

	kindDefault = "default"
	kindBlock   = "capacity-block"

	// MarketBlock and MarketInterruptible are the market types of launches into a capacity block or an interruptible
	// reservation.
	MarketBlock         = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"

	// OnlyReserved and NeverReserved are the preferences of launches that must, or must not, run in a reservation. The
	// default preference, "open" or empty, uses a matching open reservation, or else on-demand capacity.
	OnlyReserved  = "capacity-reservations-only"
	NeverReserved = "none"
)

// Times before the end of a capacity block.
const (
	blockWarning = 40 * time.Minute // EC2 sends the warning
	blockReclaim = 30 * time.Minute // EC2 begins to terminate the instances
)

// Create creates a capacity reservation.
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
		return nil, unknownGroupError(q.Group)
	}
	q.ID, q.Zone, q.State, q.CreatedAt, q.Tags = cr.region.site.IDs.New("cr"), zone, reservationActive, now, maps.Clone(q.Tags)
	c := &q
	cr.all = append(cr.all, c)
	cr.scheduleEnd(c)
	return c, nil
}

// scheduleEnd schedules the end of a reservation, if it has one. The instances of a capacity block are terminated
// blockReclaim before its end; instances of other reservations continue to run.
func (cr *CapacityReservations) scheduleEnd(c *CapacityReservation) {
	if c.End.IsZero() {
		return
	}
	due := &cr.region.world().due
	if c.Kind == kindBlock {
		due.Schedule(c.End.Add(-blockWarning), func(at time.Time) { cr.region.WarnBlockExpiry(at, c.ID, c.End) })
		due.Schedule(c.End.Add(-blockReclaim), func(at time.Time) {
			for _, h := range cr.instancesIn(c) {
				cr.region.Instances.shutDown(at, h, reason(blockEnded))
			}
		})
	}
	due.Schedule(c.End, func(at time.Time) { cr.end(at, c, reservationExpired) })
}

// Cancel ends a reservation early. Its instances continue to run as on-demand instances.
func (cr *CapacityReservations) Cancel(now time.Time, id string) error {
	c := cr.ByID(id)
	if c == nil {
		return unknownReservationError(id)
	}
	cr.end(now, c, reservationCancelled)
	return nil
}

// end sets the state of an active reservation to an ended one. From then on its instances use the region's capacity.
func (cr *CapacityReservations) end(now time.Time, c *CapacityReservation, state string) {
	if c.State != reservationActive {
		return
	}
	for _, h := range cr.instancesIn(c) {
		h.change(now, func(i *Instance) { i.CapacityReservationID = "" })
		cr.region.Capacity.occupy(h.offering(), h.stock.Facts.Processor.VCPUs)
	}
	c.State = state
}

// All returns the capacity reservations of the region, including ended ones, oldest first.
func (cr *CapacityReservations) All() []*CapacityReservation { return slices.Clone(cr.all) }

// ByID returns a capacity reservation by id; nil if it does not exist.
func (cr *CapacityReservations) ByID(id string) *CapacityReservation {
	for _, c := range cr.all {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Unused returns how many more instances a reservation can take.
func (cr *CapacityReservations) Unused(c *CapacityReservation) int {
	if c.State != reservationActive {
		return 0
	}
	return max(c.Total-len(cr.instancesIn(c)), 0)
}

// instancesIn returns the pending and running instances in a reservation, oldest first.
func (cr *CapacityReservations) instancesIn(c *CapacityReservation) []*history {
	var out []*history
	for _, id := range cr.region.Instances.order {
		if h := cr.region.Instances.byID[id]; h.current.CapacityReservationID == c.ID && h.current.Alive() {
			out = append(out, h)
		}
	}
	return out
}

// resolve returns the capacity reservation that a launch names; nil if it names none. It returns an error if the
// reservation does not exist, or if reservation and launch have different market types or placement groups.
func (cr *CapacityReservations) resolve(req launchRequest) (*CapacityReservation, error) {
	market := ""
	if m := req.data.Market; m != nil && (m.Kind == MarketBlock || m.Kind == MarketInterruptible) {
		market = m.Kind
	}
	if req.fleet && req.market != market {
		return nil, failure.New("InvalidFleetConfiguration",
			"The market type %q of the launch template does not match the target capacity type of the fleet.", market)
	}
	id := req.data.targetReservationID()
	if id == "" && market != "" {
		return nil, failure.New("InvalidParameterCombination", "The market type %s needs a target capacity reservation.", market)
	}
	if id == "" {
		return nil, nil
	}
	c := cr.ByID(id)
	if c == nil {
		return nil, unknownReservationError(id)
	}
	if c.market() != market {
		return nil, failure.New("InvalidParameterCombination",
			"The capacity reservation %s needs the market type %q, not %q.", id, c.market(), market)
	}
	if g := cr.region.PlacementGroups.nameOf(req.data); g != c.Group {
		return nil, failure.New("InvalidParameterCombination",
			"The capacity reservation %s is in the placement group %q, not %q.", id, c.Group, g)
	}
	return c, nil
}

// nameOf returns the name of a launch's placement group; empty if there is none.
func (pg *PlacementGroups) nameOf(d TemplateData) string {
	if d.Placement == nil {
		return ""
	}
	if g := pg.ByNameOrID(cmp.Or(d.Placement.GroupID, d.Placement.GroupName)); g != nil {
		return g.Name
	}
	return ""
}

// market returns the market type that launches into the reservation must have; empty: on demand.
func (c *CapacityReservation) market() string {
	switch {
	case c.Kind == kindBlock:
		return MarketBlock
	case c.Interruptible:
		return MarketInterruptible
	}
	return ""
}

// forLaunch returns the reservation in which a new instance would run; nil: in none. The second result is false if the
// instance must run in a reservation, and no matching reservation has room.
func (cr *CapacityReservations) forLaunch(launch resolvedLaunch) (*CapacityReservation, bool) {
	preference := ""
	if launch.data.Reservation != nil {
		preference = launch.data.Reservation.Preference
	}
	canTake := func(c *CapacityReservation) bool {
		return c.Type == launch.offering.Type && c.Zone.Name == launch.offering.Zone && cr.Unused(c) > 0
	}
	switch {
	case launch.offering.Spot || preference == NeverReserved:
		return nil, true
	case launch.target != nil:
		return launch.target, canTake(launch.target)
	}
	for _, c := range cr.all {
		if c.Criteria == criteriaOpen && c.market() == "" && c.Group == cr.region.PlacementGroups.nameOf(launch.data) && canTake(c) {
			return c, true
		}
	}
	return nil, preference != OnlyReserved
}

// availableFor returns the maximum number of instances that a launch can get, including reserved ones.
func (cr *CapacityReservations) availableFor(launch resolvedLaunch) int {
	c, _ := cr.forLaunch(launch)
	switch {
	case c == nil:
		return cr.region.Capacity.remaining(launch.offering)
	case launch.target != nil || launch.data.Reservation != nil && launch.data.Reservation.Preference == OnlyReserved:
		return cr.Unused(c)
	}
	return cr.Unused(c) + cr.region.Capacity.remaining(launch.offering)
}

// assign sets the capacity reservation and the market of a new instance.
func (cr *CapacityReservations) assign(i *Instance, launch resolvedLaunch) {
	if launch.data.Reservation != nil {
		i.RequestedReservation = *launch.data.Reservation
	}
	c, _ := cr.forLaunch(launch)
	if c == nil {
		return
	}
	i.CapacityReservationID, i.Market = c.ID, c.market()
}

// release subtracts an ended instance from the usage of the region's capacity. It ignores an instance in a reservation,
// because the capacity of a reservation stays reserved.
func (cr *CapacityReservations) release(h *history) {
	if h.current.CapacityReservationID == "" {
		cr.region.Capacity.vacate(h.offering(), h.stock.Facts.Processor.VCPUs)
	}
}

func (d TemplateData) targetReservationID() string {
	if d.Reservation == nil || d.Reservation.Target == nil {
		return ""
	}
	return d.Reservation.Target.ID
}

func unknownReservationError(id string) error {
	return failure.New("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
}

func fullReservationError() error {
	return failure.New("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
}

package verify

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

func choiceOf(typ string, o catalog.Offering) packing.Choice {
	return packing.Choice{InstanceType: typ, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price, Reservation: o.Reservation.ID}
}

func isReserved(at *place) bool {
	return slices.ContainsFunc(at.offers, func(o *offer) bool { return o.choice.Reservation != "" })
}

// checkReservation checks that a planned node which uses an instance of a capacity reservation has no other
// offerings, and that its NodeClaim requires the reservation.
func (c *checker) checkReservation(pn *packing.PlannedNode, at *place) {
	if !isReserved(at) {
		return
	}
	if len(at.offers) != 1 {
		c.report("%s is for an instance of a capacity reservation, but keeps %d offerings", at.name, len(at.offers))
		return
	}
	id := at.offers[0].choice.Reservation
	named := slices.ContainsFunc(pn.Requirements, func(r requirements.Requirement) bool {
		return r.Key == catalog.LabelReservationID && r.Operator == requirements.In && slices.Equal(r.Values, []string{id})
	})
	if !named {
		c.report("%s does not require capacity reservation %s", at.name, id)
	}
}

// checkReservations checks that each capacity reservation has enough unused instances for two kinds of users: planned
// nodes, and NodeClaims that require the reservation but have no instance yet. It sets taken to the number of
// instances that they need.
func (c *checker) checkReservations() {
	for _, n := range c.snapshot.Nodes {
		if id := n.Labels[catalog.LabelReservationID]; id != "" && !n.Joined && n.ProviderID == "" {
			c.taken[id]++
		}
	}
	planned := map[string]int{}
	for i := range c.places {
		if at := &c.places[i]; at.node == nil && isReserved(at) {
			planned[at.offers[0].choice.Reservation]++
		}
	}
	unused := c.unusedInstances()
	for _, id := range slices.Sorted(maps.Keys(planned)) {
		c.taken[id] += planned[id]
		if c.taken[id] > unused[id] {
			c.report("capacity reservation %s has %d instances left, the plan needs %d", id, unused[id], c.taken[id])
		}
	}
}

// unusedInstances returns, by ID, the number of unused instances of each reservation: the minimum over its offerings.
func (c *checker) unusedInstances() map[string]int {
	out := map[string]int{}
	for _, cat := range c.market {
		for _, t := range cat.Types {
			for _, o := range t.Offerings {
				r := o.Reservation
				if n, ok := out[r.ID]; r.ID != "" && (!ok || r.Left < n) {
					out[r.ID] = r.Left
				}
			}
		}
	}
	return out
}

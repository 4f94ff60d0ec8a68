package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// checkMinValues checks that the offerings of the planned node have as many values of each label as minValues of its
// pool require. If minValues may be relaxed, a node whose pods allow only fewer values lists the label as relaxed.
// A planned node on an instance of a capacity reservation is exempt: it has only one offering.
func (c *checker) checkMinValues(pn *packing.PlannedNode, pool *cluster.Pool, at *place) {
	if isReserved(at) {
		return
	}
	asked := map[string]int{} // by label: the required number of values
	for _, r := range pool.Requirements {
		asked[r.Key] = max(asked[r.Key], r.MinValues)
	}
	for _, r := range pool.Requirements {
		if n := asked[r.Key]; n > 1 && r.MinValues == n {
			c.checkMinValue(pn, pool, at, r.Key, n)
		}
	}
	for _, relaxation := range pn.Relaxed {
		if asked[relaxation.Key] != relaxation.Asked {
			c.report("%s relaxes minValues of %s, %d, and the pool requires %d", at.name, relaxation.Key, relaxation.Asked,
				asked[relaxation.Key])
		}
	}
}

// checkMinValue checks one label for which minValues require asked values.
func (c *checker) checkMinValue(pn *packing.PlannedNode, pool *cluster.Pool, at *place, key string, asked int) {
	have := countValues(at.offers, key)
	i := slices.IndexFunc(pn.Relaxed, func(r packing.Relaxation) bool { return r.Key == key })
	switch {
	case have >= asked && i >= 0:
		c.report("%s relaxes minValues of %s, although it keeps %d of %d values", at.name, key, have, asked)
	case have < asked && !pool.RelaxesMinValues:
		c.report("%s keeps %d values of %s, the pool requires %d", at.name, have, key, asked)
	case have < asked && (i < 0 || pn.Relaxed[i].Have != have):
		c.report("%s keeps %d of %d values of %s, but does not list the label as relaxed", at.name, have, asked, key)
	case have < asked && c.fewestAlone(pool, at, key) >= asked:
		c.report("%s relaxes minValues of %s, but each of its pods alone would keep %d values", at.name, key, asked)
	}
	for _, r := range pn.Requirements {
		if r.Key == key && r.MinValues > have {
			c.report("%s requires %d values of %s, but keeps %d", at.name, r.MinValues, key, have)
		}
	}
}

// fewestAlone returns how many values of the label a node with only one of the pods could keep: the minimum over the
// pods. It returns 0 if the pods' own requirements do not determine this number.
func (c *checker) fewestAlone(pool *cluster.Pool, at *place, key string) int {
	if len(pool.Limits.Ceiling) > 0 {
		return 0 // the offerings depend on the other pods
	}
	least := -1
	for _, p := range at.pods {
		if len(p.Preferred)+len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.Volumes) > 0 {
			return 0 // its preferences, or other pods, may reduce the choice
		}
		var fit []*offer
		demand := c.demandOf(p)
		for _, o := range c.offersLike(pool, at.offers[0]) {
			if c.accepts(o, demand) && len(o.lackingResources(p.Requests)) == 0 && !o.hasPortConflict(p.HostPorts) {
				fit = append(fit, o)
			}
		}
		if n := countValues(fit, key); least < 0 || n < least {
			least = n
		}
		if hasHole(fit, c.offersLike(pool, at.offers[0])) {
			return 0 // types, zones and capacity types cannot be combined freely
		}
	}
	return least
}

// offersLike returns all offerings, except those of capacity reservations, that the pool could launch for a node with
// the same additional labels as like.
func (c *checker) offersLike(pool *cluster.Pool, like *offer) []*offer {
	var name identity
	name.labels(like.extra)
	var out []*offer
	for _, t := range c.market.Types(pool.NodeClass, pool.Name) {
		for _, offering := range t.Offerings {
			o := c.cachedOffer(pool, like.extra, string(name), choiceOf(t.Name, offering))
			if o != nil && len(o.problems) == 0 && offering.Reservation.ID == "" {
				out = append(out, o)
			}
		}
	}
	return out
}

// hasHole reports whether some offer of all is missing in offers, although its type, its zone and its capacity type
// each occur in offers.
func hasHole(offers, all []*offer) bool {
	types, zones, capacityTypes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range offers {
		types[o.choice.InstanceType], zones[o.choice.Zone], capacityTypes[o.choice.CapacityType] = true, true, true
	}
	return slices.ContainsFunc(all, func(o *offer) bool {
		return types[o.choice.InstanceType] && zones[o.choice.Zone] && capacityTypes[o.choice.CapacityType] && !slices.Contains(offers, o)
	})
}

func countValues(offers []*offer, key string) int {
	seen := requirements.Labels{}
	for _, o := range offers {
		if value, ok := o.labels[key]; ok {
			seen[value] = value
		}
	}
	return len(seen)
}

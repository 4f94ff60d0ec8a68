package verify

import (
	"maps"
	"slices"
	"strings"
)

// checkClaims checks that the pods of an unbound volume claim are in one zone. The volume is created in the zone of the
// first pod, and an EBS volume cannot be attached in another zone.
func (c *checker) checkClaims() {
	placesOf := map[string][]int{} // by claim: places, ascending
	for i, place := range c.places {
		for _, p := range place.pods {
			for _, name := range p.Volumes {
				if list := placesOf[name]; len(list) == 0 || list[len(list)-1] != i {
					placesOf[name] = append(list, i)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(placesOf)) {
		zones := map[string]bool{}
		for _, i := range placesOf[name] {
			c.places[i].addZones(zones)
		}
		c.claimZones[name] = zones
		// A single planned node is always in one zone.
		if len(placesOf[name]) > 1 && len(zones) > 1 {
			c.report("volume claim %s: its pods are on %s and %s, which may be in zones %s", name,
				c.places[placesOf[name][0]].name, c.places[placesOf[name][1]].name,
				strings.Join(slices.Sorted(maps.Keys(zones)), " "))
		}
	}
}

// addZones adds to the set the zones that the place may be in; "" stands for a node without a zone.
func (p *place) addZones(zones map[string]bool) {
	if p.node != nil {
		zones[p.node.Labels[labelZone]] = true
	}
	for _, o := range p.offers {
		zones[o.labels[labelZone]] = true
	}
}

// claimsAllow reports whether a pod in that zone can use these volume claims. The other pods of each claim, if any,
// must certainly be in that zone.
func (c *checker) claimsAllow(claims []string, zone string) bool {
	for _, name := range claims {
		if zones := c.claimZones[name]; len(zones) > 1 || len(zones) == 1 && !zones[zone] {
			return false
		}
	}
	return true
}

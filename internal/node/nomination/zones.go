package nomination

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// HasZoneSpread reports whether the pod has a required spread over zones.
func HasZoneSpread(p cluster.Pod) bool { return slices.ContainsFunc(p.Spread, isRequiredZoneSpread) }

func isRequiredZoneSpread(s cluster.Spread) bool { return !s.Soft && s.Key == catalog.LabelZone }

// zoneCounts counts the pods of each zone for the spreads of the Node's pods.
type zoneCounts struct {
	in     Input
	placed []*cluster.Pod               // pods of the Node that can be bound
	counts map[spreadKey]map[string]int // cache: matching pods by zone
	owners map[spreadKey]*cluster.Pod   // a pod with the spread
}

// spreadKey identifies a spread of all pods of an owner.
type spreadKey struct {
	namespace, owner string
	index            int // into cluster.Pod.Spread
}

// allows reports whether the pod's spreads allow the Node's zone.
func (z *zoneCounts) allows(p *cluster.Pod) bool {
	for i := range p.Spread {
		s := &p.Spread[i]
		if !isRequiredZoneSpread(*s) {
			continue
		}
		counts := z.countsOf(p, i)
		self, fewest := 0, -1
		if s.Selector.Matches(p.Labels) {
			self = 1
		}
		for _, zone := range z.in.Zones {
			if n := counts[zone]; fewest < 0 || n < fewest {
				fewest = n
			}
		}
		if len(z.in.Zones) < s.MinDomains {
			fewest = 0
		}
		if counts[z.in.Zone]+self-max(fewest, 0) > s.MaxSkew {
			return false
		}
	}
	return true
}

func (z *zoneCounts) countsOf(p *cluster.Pod, index int) map[string]int {
	key := spreadKey{p.Namespace, p.Owner, index}
	if p.Owner == "" {
		key.owner = "Pod/" + p.Name
	}
	counts := z.counts[key]
	if counts != nil {
		return counts
	}
	counts = map[string]int{}
	for _, b := range z.in.Bound {
		if b.Namespace == p.Namespace && p.Spread[index].Selector.Matches(b.Labels) {
			counts[b.Zone]++
		}
	}
	for _, other := range z.placed {
		if other.Namespace == p.Namespace && p.Spread[index].Selector.Matches(other.Labels) {
			counts[z.in.Zone]++
		}
	}
	z.counts[key] = counts
	if z.owners == nil {
		z.owners = map[spreadKey]*cluster.Pod{}
	}
	z.owners[key] = p
	return counts
}

// place counts the pod in the Node's zone.
func (z *zoneCounts) place(p *cluster.Pod) {
	z.placed = append(z.placed, p)
	for key, counts := range z.counts {
		if owner := z.owners[key]; owner.Namespace == p.Namespace && owner.Spread[key.index].Selector.Matches(p.Labels) {
			counts[z.in.Zone]++
		}
	}
}

package podbinding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// HasZoneSpread reports whether the pod has a required spread over zones.
func HasZoneSpread(p cluster.Pod) bool { return slices.ContainsFunc(p.Spread, isRequiredZoneSpread) }

func isRequiredZoneSpread(s cluster.Spread) bool { return !s.Soft && s.Key == catalog.LabelZone }

// zoneCounts counts the pods of each zone for the spreads of the Node's pods.
type zoneCounts struct {
	in     Input
	added  []*cluster.Pod        // pods of the Node that are bound now
	counts map[string]*zoneCount // by countKey
}

// zoneCount has the matching pods of each zone for one spread.
type zoneCount struct {
	namespace string
	selector  cluster.Selector
	byZone    map[string]int // has all zones of the nodes that the spread counts
}

// allowsZone reports whether the pod's spreads allow the Node's zone.
func (z *zoneCounts) allowsZone(p *cluster.Pod) bool {
	for i := range p.Spread {
		s := &p.Spread[i]
		if !isRequiredZoneSpread(*s) {
			continue
		}
		counts := z.countsOf(p, s).byZone
		self, fewest := 0, -1
		if s.Selector.Matches(p.Labels) {
			self = 1
		}
		for _, n := range counts {
			if fewest < 0 || n < fewest {
				fewest = n
			}
		}
		if len(counts) < s.MinDomains {
			fewest = 0
		}
		if counts[z.in.Zone]+self-max(fewest, 0) > s.MaxSkew {
			return false
		}
	}
	return true
}

// countsOf returns the counts for the spread s of p. As in kube-scheduler, s counts only the nodes that p may run on,
// according to its policies.
func (z *zoneCounts) countsOf(p *cluster.Pod, s *cluster.Spread) *zoneCount {
	key := countKey(p, s)
	if known := z.counts[key]; known != nil {
		return known
	}
	out := &zoneCount{namespace: p.Namespace, selector: s.Selector, byZone: map[string]int{}}
	isCounted := make([]bool, len(z.in.Nodes))
	for i := range z.in.Nodes {
		n := &z.in.Nodes[i]
		_, isKeptOff := requirements.Untolerated(n.Taints, p.Tolerations)
		isCounted[i] = n.Zone != "" && (s.IgnoresNodeAffinity || accepts(p, n.Labels)) && !(s.HonorTaints && isKeptOff)
		if isCounted[i] {
			out.byZone[n.Zone] += 0
		}
	}
	for _, c := range z.in.Counted {
		if c.Node >= 0 && isCounted[c.Node] && out.matches(c.Namespace, c.Labels) {
			out.byZone[z.in.Nodes[c.Node].Zone]++
		}
	}
	for _, other := range z.added {
		if out.matches(other.Namespace, other.Labels) {
			out.byZone[z.in.Zone]++
		}
	}
	z.counts[key] = out
	return out
}

// countKey returns a text that is equal for spreads that count the same pods on the same nodes.
func countKey(p *cluster.Pod, s *cluster.Spread) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%t %s", p.Namespace, s.Selector.MatchesNothing, s.Selector.Labels)
	if !s.IgnoresNodeAffinity {
		fmt.Fprintf(&b, "|%v", p.Required)
	}
	if s.HonorTaints {
		fmt.Fprintf(&b, "|%v", p.Tolerations)
	}
	return b.String()
}

// accepts reports whether the pod's node selector and node affinity accept a node with the labels.
func accepts(p *cluster.Pod, labels requirements.Labels) bool {
	isAccepted := func(r requirements.Requirements) bool { return r.Accepts(labels) }
	return len(p.Required) == 0 || slices.ContainsFunc(p.Required, isAccepted)
}

func (c *zoneCount) matches(namespace string, labels requirements.Labels) bool {
	return c.namespace == namespace && c.selector.Matches(labels)
}

// add counts the pod in the Node's zone.
func (z *zoneCounts) add(p *cluster.Pod) {
	z.added = append(z.added, p)
	for _, c := range z.counts {
		if c.matches(p.Namespace, p.Labels) {
			c.byZone[z.in.Zone]++
		}
	}
}

package refusal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// hint returns the smallest change that would help, for the cause of the offering that passed the most checks. If no
// usable NodePool fits the class but an unusable NodePool would, the hint is to fix that NodePool. The hint is empty if
// there are no findings.
func (e *explanation) hint() string {
	best := e.highestRanked()
	if best == nil {
		return ""
	}
	if unusable := e.poolToFix(); unusable != nil && len(e.findings) > 1 && best.meansNoPoolFits() {
		return fmt.Sprintf("fix NodePool %s, whose labels and taints suit the pod: %s", unusable.Name, unusable.Unusable)
	}
	return e.fixFor(best)
}

// hintFinding returns the finding that the hint refers to; nil if there is none.
func (e *explanation) hintFinding() *finding {
	best := e.highestRanked()
	if best == nil {
		return nil
	}
	unusable := e.poolToFix()
	if unusable == nil || len(e.findings) <= 1 || !best.meansNoPoolFits() {
		return best
	}
	i := slices.IndexFunc(e.findings, func(f finding) bool { return f.reason.Code == PoolUnusable && f.pool == unusable })
	if i < 0 {
		return best
	}
	return &e.findings[i]
}

// meansNoPoolFits reports whether the finding, which has the highest rank, means that no usable NodePool fits the
// class. TypeMismatch is not included: no offering has the required value, and an unusable NodePool probably has the
// same offerings.
func (f *finding) meansNoPoolFits() bool {
	return f.rank <= rankLabel && f.reason.Code != TypeMismatch
}

// fixFor returns the change that would remove the cause of the finding; empty if there is none.
func (e *explanation) fixFor(best *finding) string {
	name := ""
	if best.pool != nil {
		name = best.pool.Name
	}
	switch best.reason.Code {
	case NoPool:
		return "create a NodePool and the EC2NodeClass that it names"
	case PoolUnusable:
		return "fix NodePool " + best.reason.Detail
	case PoolEmpty:
		return e.emptyHint(best)
	case TaintUntolerated:
		return taintHint(best.reason.Detail, best.pool)
	case LabelMissing, LabelConflict, TypeMismatch:
		return e.labelHint(best)
	case TooSmall:
		return e.roomHint(best)
	case HostPortTaken:
		return fmt.Sprintf("a DaemonSet takes port %s on every suitable node: use another port", best.reason.Detail)
	case NoCapacity:
		return fmt.Sprintf("EC2 has no capacity now: let NodePool %s use more instance types, zones or capacity types", name)
	case LimitReached:
		return limitHint(best)
	case MinValues:
		return fmt.Sprintf("the offerings of NodePool %s for the pod have %d of the %d values of %s that minValues requires: "+
			"lower minValues, let the NodePool use more instance types, or set --min-values-policy=BestEffort",
			name, best.missing.Have, best.missing.Asked, best.missing.Key)
	case ReservationFull:
		return fmt.Sprintf("every instance of capacity reservation %s is taken: enlarge it, "+
			"or let NodePool and pod use on-demand or spot too", best.reason.Detail)
	case TopologySpread, PodAffinity, PodAntiAffinity:
		return e.topologyHint(best)
	case EffortSpent:
		return RetryHint
	case Unplannable:
	}
	return ""
}

// RetryHint is the hint for pods that another plan may place.
const RetryHint = "plan again: pods that have a node by then need no more work"

// poolToFix returns the first unusable NodePool, by name, that would accept the class if it were usable; nil if
// there is none.
func (e *explanation) poolToFix() *offering.Pool {
	i := slices.IndexFunc(e.in.Stock.Pools, func(p *offering.Pool) bool {
		_, repels := requirements.Untolerated(p.Taints, e.sig.Tolerations)
		return p.Unusable != "" && !p.UnusableByIntent && !repels && slices.ContainsFunc(alternatives(e.sig.Required), p.MaySuit)
	})
	if i < 0 {
		return nil
	}
	return e.in.Stock.Pools[i]
}

// limitHint returns a hint to raise the limit, with the value that allows the smallest suitable node.
func limitHint(f *finding) string {
	format := func(v int64) string { return resources.Format(f.excess.limit, v) }
	return fmt.Sprintf("raise spec.limits.%s of NodePool %s from %s to %s or more: %s is used or planned, and the smallest suitable instance adds %s",
		f.excess.limit, f.pool.Name, format(f.pool.Limit(f.excess.limit)), format(f.excess.taken+f.excess.each),
		format(f.excess.taken), format(f.excess.each))
}

func (e *explanation) topologyHint(f *finding) string {
	if f.reason.Detail != topology.Hostname && len(e.in.Topology.Keys[f.reason.Detail].Values) == 0 {
		if foreign, ok := catalog.ForeignLabelOf(f.reason.Detail, ""); ok || offering.IsCloudKey(f.reason.Detail) {
			return fmt.Sprintf("its affinity or spread rule has the topologyKey %s, a label that no node has and no NodePool may set: "+
				"change it, for instance to %s", f.reason.Detail, cmp.Or(foreign.Key, catalog.LabelZone))
		}
		return fmt.Sprintf("its affinity or spread rule has the topologyKey %s, a label that no node and no NodePool has: "+
			"add it to spec.template.metadata.labels of NodePool %s, or change the rule's topologyKey", f.reason.Detail, f.pool.Name)
	}
	switch f.reason.Code {
	case TopologySpread:
		return fmt.Sprintf("the pods of its topology spread would be too uneven over %s: let NodePool %s use the domains "+
			"that have few of them, or raise maxSkew, or take whenUnsatisfiable: ScheduleAnyway", f.reason.Detail, f.pool.Name)
	case PodAffinity:
		return fmt.Sprintf("no suitable %s has a pod that its pod affinity selects: "+
			"start such pods first, or prefer them instead of requiring them", f.reason.Detail)
	default:
	}
	return fmt.Sprintf("every suitable %s has a pod that anti-affinity excludes: "+
		"offer more of them, or prefer anti-affinity instead of requiring it", f.reason.Detail)
}

// highestRanked returns the finding with the highest rank and, of several, the most frequent one; nil if there are no
// findings.
func (e *explanation) highestRanked() *finding {
	var best *finding
	for i := range e.findings {
		f := &e.findings[i]
		if best == nil || f.rank > best.rank || f.rank == best.rank && f.reason.Count > best.reason.Count {
			best = f
		}
	}
	return best
}

// emptyHint returns a hint about the requirement of the NodePool that excludes all offerings.
func (e *explanation) emptyHint(f *finding) string {
	if f.pool.EmptiedBy == "" {
		return fmt.Sprintf("no instance type of EC2NodeClass %s can be launched", f.pool.NodeClass)
	}
	var otherRequirements []string // on labels that are checked before EmptiedBy
	for _, key := range f.pool.Accepts.Keys() {
		if key < f.pool.EmptiedBy && offering.IsCloudKey(key) {
			otherRequirements = append(otherRequirements, f.pool.RequirementText(key))
		}
	}
	key := f.pool.EmptiedBy
	if f.pool.Accepts[key].IsEmpty() {
		return fmt.Sprintf("the requirements and labels of NodePool %s on %s contradict each other", f.pool.Name, key)
	}
	if value, ok := f.pool.Accepts[key].Single(); ok && catalog.SuggestedValue(key, value) != "" {
		return fmt.Sprintf("NodePool %s asks for %s: %s; the value is written %s", f.pool.Name, key, value, catalog.SuggestedValue(key, value))
	}
	if value, ok := f.pool.Accepts[key].Single(); ok && key == catalog.LabelCapacityType && value == catalog.Reserved {
		return fmt.Sprintf("NodePool %s uses capacity reservations alone, and EC2NodeClass %s has none with instances left: set spec.capacityReservationSelectorTerms there",
			f.pool.Name, f.pool.NodeClass)
	}
	if len(otherRequirements) == 0 {
		return fmt.Sprintf("NodePool %s asks for %s, which no offering has", f.pool.Name, f.pool.RequirementText(f.pool.EmptiedBy))
	}
	return fmt.Sprintf("NodePool %s asks for %s, which no offering with %s has: change one of them",
		f.pool.Name, f.pool.RequirementText(f.pool.EmptiedBy), strings.Join(otherRequirements, " and "))
}

func (e *explanation) labelHint(f *finding) string {
	key, _, _ := strings.Cut(f.reason.Detail, " ")
	switch {
	case f.needed.IsEmpty():
		return "the pod's own requirements on " + key + " contradict each other"
	case key == topology.Hostname:
		return "the pod requires a node by its name, but a new node has a different name"
	}
	asks := fmt.Sprintf("the pod asks for %s %s", key, f.needed)
	if hint := valueHint(key, f.needed); hint != "" {
		return hint
	}
	if hint := e.foreignHint(key, f.needed, f.pool); hint != "" && (f.reason.Code == LabelMissing || !offering.IsCloudKey(key)) {
		return hint
	}
	switch f.reason.Code {
	case LabelMissing:
		if offering.IsCloudKey(key) {
			return asks + ", which no offering has"
		}
		if value, ok := f.needed.Single(); ok {
			return fmt.Sprintf("%s, which %s: add the label %s: %s to spec.template.metadata.labels of NodePool %s",
				asks, e.noPoolOffersText(key, f.needed), key, value, f.pool.Name)
		}
		return fmt.Sprintf("%s, which %s: add the label to spec.template.metadata.labels of NodePool %s",
			asks, e.noPoolOffersText(key, f.needed), f.pool.Name)
	case LabelConflict:
		if hint := e.noPoolHint(asks, f.needed); key == catalog.LabelNodePool && hint != "" {
			return hint
		}
		return fmt.Sprintf("%s, NodePool %s has %s: change one of them", asks, f.pool.Name, f.pool.RequirementText(key))
	default:
	}
	if suggestion := e.nearestType(f.needed); suggestion != "" && key == catalog.LabelInstanceType {
		return fmt.Sprintf("%s, which is not an instance type: did you mean %s?", asks, suggestion)
	}
	return fmt.Sprintf("%s; the offerings of NodePool %s have %s", asks, f.pool.Name, e.offeredValues(key))
}

// noPoolOffersText returns the text that no usable NodePool offers the label, with the labels that usable NodePools
// offer.
func (e *explanation) noPoolOffersText(key string, needed requirements.Values) string {
	isOffered := func(p *offering.Pool) bool { v, ok := p.Accepts[key]; return ok && v.Intersects(needed) }
	if slices.ContainsFunc(e.in.Stock.Pools, isOffered) { // an unusable NodePool offers it
		return "no NodePool that can be used offers" + e.offeredLabels()
	}
	return "no NodePool offers" + e.offeredLabels()
}

// offeredLabels returns the custom labels of the usable NodePools as text in parentheses; empty if there are none.
func (e *explanation) offeredLabels() string {
	var parts []string
	for _, p := range e.in.Stock.Pools {
		if p.Unusable != "" {
			continue
		}
		var labels []string
		for _, key := range p.Accepts.Keys() {
			if !offering.IsCloudKey(key) {
				labels = append(labels, p.RequirementText(key))
			}
		}
		if len(labels) > 0 {
			parts = append(parts, "NodePool "+p.Name+" offers "+strings.Join(labels, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

const maxListedValues = 8 // values of a label in a hint

// offeredValues returns, as text, the values of a label that the offerings have: all of them, or their number, the
// first and the last.
func (e *explanation) offeredValues(key string) string {
	values := e.in.Stock.Labels.Column(key).Values
	if len(values) <= maxListedValues {
		return "[" + strings.Join(values, " ") + "]"
	}
	return fmt.Sprintf("%d values, from %s to %s", len(values), values[0], values[len(values)-1])
}

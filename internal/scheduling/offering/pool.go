package offering

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

const (
	labelNodePool    = "karpenter.sh/nodepool"
	labelNodeClass   = "karpenter.k8s.aws/ec2nodeclass"
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
	labelHostname    = "kubernetes.io/hostname"

	// unknownHostname is the host name of a node that does not exist yet. No pod can
	// require it, but the label exists.
	unknownHostname = "\x00"
)

// Pool is a NodePool with its evaluated requirements.
type Pool struct {
	*cluster.Pool
	Accepts   requirements.Requirements // the requirements, with the labels as further requirements
	Unusable  string                    // why no node can be launched, from the snapshot or found by New; empty if usable
	EmptiedBy string                    // the last key, by name, that excludes an offering; the cause if none is left
	MinValues []MinValue                // sorted by key
	Remaining RemainingLimits           // what the limits still allow, by the snapshot
	Volume    string                    // device name of the EBS volume with the pods' files; empty if unknown

	fixed    requirements.Labels // labels that every node of the pool has
	from, to int                 // its offers have the numbers from … to-1
}

// Limit returns the limit of that name, in the units of resources.Amounts; 0 if there is none.
func (p *Pool) Limit(name string) int64 {
	if name == limitNodes && p.Limits.Nodes != nil {
		return int64(*p.Limits.Nodes)
	}
	return p.Limits.Ceiling[name]
}

// newPool evaluates the requirements of the pool. It sets Unusable if a requirement is invalid or contradicts a label.
func newPool(p *cluster.Pool) *Pool {
	out := &Pool{Pool: p, Unusable: p.Unusable, Remaining: newRemainingLimits(p)}
	reqs, invalid := requirements.All(p.Requirements...)
	if invalid != nil && out.Unusable == "" {
		out.Unusable = "its requirement " + invalid.Key + " " + string(invalid.Operator) + " is invalid"
	}
	out.fixed = requirements.Labels{
		labelNodePool: p.Name, labelNodeClass: p.NodeClass, labelRegistered: "true", labelInitialized: "true",
	}
	for k, v := range p.Labels {
		out.fixed[k] = v
	}
	out.Accepts = reqs.And(requirements.Exactly(p.Labels))
	minValues := map[string]int{} // by key: the largest minValues of its requirements
	for _, r := range p.Requirements {
		minValues[r.Key] = max(minValues[r.Key], r.MinValues)
	}
	for _, key := range reqs.Keys() {
		if minValues[key] > 1 {
			out.MinValues = append(out.MinValues, MinValue{Key: key, N: minValues[key]})
		}
		if v, ok := p.Labels[key]; ok && !reqs[key].Accepts(v) && out.Unusable == "" {
			out.Unusable = "its label " + key + "=" + v + " contradicts its requirement " + reqs[key].String()
		}
	}
	return out
}

// Size returns how many offers the pool has.
func (p *Pool) Size() int { return p.to - p.from }

// MaySuit reports whether the labels and requirements of the pool allow nodes that satisfy reqs. It ignores labels
// that only the offerings define, so its result is also valid for a pool without offers.
func (p *Pool) MaySuit(reqs requirements.Requirements) bool {
	for key, ask := range reqs {
		accepted, limited := p.Accepts[key]
		value, fixed := p.fixed[key]
		switch {
		case limited && !accepted.Intersects(ask),
			fixed && !ask.Accepts(value),
			!limited && !fixed && !IsCloudKey(key) && !ask.Absent: // no node of the pool has the label
			return false
		}
	}
	return true
}

// RequirementText returns the pool's requirement for a label as text, or the value of the label that the pool sets.
func (p *Pool) RequirementText(key string) string {
	if v, ok := p.Accepts[key]; ok {
		return key + " " + v.String()
	}
	return key + " In [" + p.fixed[key] + "]"
}

type allowedType struct {
	typ       *catalog.Type
	offerings []*catalog.Offering
}

// filter returns the types and offerings that the pool's requirements allow. An excluded offering has one cause: the
// first key, by name, that excludes it. filter sets EmptiedBy to the last of these causes, by name.
func (p *Pool) filter(types []*catalog.Type) []allowedType {
	var out []allowedType
	var numbering offeringNumbers
	var excluding []string // by number from numbering: the key that excludes the offering, whatever its type; "" if none
	for _, t := range types {
		a := allowedType{typ: t, offerings: make([]*catalog.Offering, 0, len(t.Offerings))}
		byType := p.excludingKey(t.Labels, isOfferingKey)
		for i := range t.Offerings {
			o := &t.Offerings[i]
			n := numbering.number(o)
			if n == len(excluding) {
				excluding = append(excluding, p.excludingKey(o.Labels(), func(key string) bool { return !isOfferingKey(key) }))
			}
			if first := firstKey(byType, excluding[n]); first != "" {
				p.EmptiedBy = max(p.EmptiedBy, first)
				continue
			}
			a.offerings = append(a.offerings, o)
		}
		if len(a.offerings) > 0 {
			slices.SortFunc(a.offerings, compareOfferings)
			out = append(out, a)
		}
	}
	return out
}

// offeringNumbers numbers the distinct offerings, ignoring price and availability, in the order of their first
// appearance. Types mostly list the same offerings in the same order, so number tries the successor of the last
// result before the map.
type offeringNumbers struct {
	all  []catalog.Offering
	at   map[catalog.Offering]int
	last int
}

// number returns the number of the offering. A new offering gets the next number.
func (p *offeringNumbers) number(o *catalog.Offering) int {
	identity := *o
	identity.Price, identity.Available = 0, false
	if next := p.last + 1; next < len(p.all) && p.all[next] == identity {
		p.last = next
		return next
	}
	n, known := p.at[identity]
	if !known {
		if p.at == nil {
			p.at = map[catalog.Offering]int{}
		}
		n = len(p.all)
		p.all, p.at[identity] = append(p.all, identity), n
	}
	p.last = n
	return n
}

// firstKey returns the one of two keys that is first by name. "" means no key, so the other key is returned.
func firstKey(a, b string) string {
	if a == "" || b == "" {
		return max(a, b)
	}
	return min(a, b)
}

// excludingKey returns the first required key, by name, that these labels do not satisfy, or "". It ignores keys for
// which skip returns true. It also ignores a key that the labels lack, if the requirement accepts nodes without the
// label, or if the label is a custom label, whose value the pool sets.
func (p *Pool) excludingKey(labels requirements.Labels, skip func(key string) bool) string {
	first := ""
	for key, v := range p.Accepts {
		if skip(key) || first != "" && key > first {
			continue
		}
		value, ok := labels[key]
		if !ok && (!IsCloudKey(key) || v.Absent) {
			continue
		}
		if !ok || !v.Accepts(value) {
			first = key
		}
	}
	return first
}

// compareOfferings orders offerings by price, then by zone, capacity type, reservation and zone ID.
func compareOfferings(a, b *catalog.Offering) int {
	return cmp.Or(a.Compare(*b), cmp.Compare(a.ZoneID, b.ZoneID))
}

func sortedTypes(types []catalog.Type) []*catalog.Type {
	out := make([]*catalog.Type, len(types))
	for i := range types {
		out[i] = &types[i]
	}
	slices.SortStableFunc(out, func(a, b *catalog.Type) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// isOfferingKey reports whether the label depends on the offering rather than on the type.
func isOfferingKey(key string) bool {
	switch key {
	case catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType,
		catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible:
		return true
	}
	return false
}

// IsCloudKey reports whether the label's value comes from the instance, so a NodePool cannot choose it freely.
func IsCloudKey(key string) bool {
	switch key {
	case catalog.LabelZone, catalog.LabelZoneID, catalog.LabelRegion, catalog.LabelInstanceType,
		catalog.LabelArch, catalog.LabelOS, catalog.LabelWindowsBuild, labelHostname:
		return true
	case catalog.LabelPartition:
		return false // the launch into a placement group chooses the partition
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/") || strings.HasPrefix(key, "karpenter.sh/")
}

// isControllerKey reports whether the controller itself sets the label on each node. IsCloudKey is also true for such
// a label.
func isControllerKey(key string) bool {
	return key == labelNodePool || key == labelNodeClass || key == labelRegistered || key == labelInitialized
}

package packing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// stock is all that may be bought: every offering of every type that a pool
// allows, in one numbering, so that sets of them are bit sets.
type stock struct {
	res      resources
	pools    []*pool // heaviest first, then by name
	variants []variant
	models   []model
	offers   []offer
	shapes   []shape

	labels    *labelIndex
	available bitset

	reserves []reserve // the capacity reservations, by id
	reserved bitset    // the offers that take an instance of one
}

// pool is a NodePool and what its requirements come to.
type pool struct {
	*cluster.Pool
	accepts  constraint.Requirements // requirements and labels together
	fixed    constraint.Labels       // labels that every node of the pool has
	unusable string                  // why nothing can be bought
	emptied  string                  // the last key, by name, that ruled something out: if nothing is left, it left nothing
	least    []minValue
	budget   budget

	from, to int // its offers
}

// variant is a pool with one choice for each of its custom labels that may
// have several values. Most pools have a single one.
type variant struct {
	pool   int
	labels constraint.Labels // all but those of type and offering
	chosen constraint.Labels // those of them that were a choice
	from   int               // its models
	to     int

	byPrice []int // its offers but those of capacity reservations, the cheapest first
}

// model is an instance type in a variant of a pool.
type model struct {
	variant int
	typ     *catalog.Type
	from    int // its offers, cheapest first
	to      int
	alike   bool // all its offers have one shape
}

// offer is one way to buy a model.
type offer struct {
	*catalog.Offering
	model int
	shape int

	reserve int // number of its capacity reservation, -1 if it has none

	zoneBit, wayBit uint64 // one bit for the zone, one for the way of paying
}

const (
	labelNodePool    = "karpenter.sh/nodepool"
	labelNodeClass   = "karpenter.k8s.aws/ec2nodeclass"
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
	labelHostname    = "kubernetes.io/hostname"

	// unknownHostname stands for the name that a machine will have: nobody can
	// ask for it, yet the label is there.
	unknownHostname = "\x00"
)

func newStock(s cluster.Snapshot, market catalog.Market, res resources, q *queue) *stock {
	st := &stock{res: res}
	for i := range s.Pools {
		st.pools = append(st.pools, newPool(&s.Pools[i]))
	}
	slices.SortFunc(st.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for i, p := range st.pools {
		st.add(i, p, market, q)
	}
	st.numberPlaces()
	st.findReserves(s.Nodes)
	st.available = newBitset(len(st.offers))
	for i, o := range st.offers {
		if o.Available && (!o.isReserved() || st.reserves[o.reserve].left > 0) {
			st.available.set(i)
		}
	}
	st.labels = newLabelIndex(len(st.offers), st.visitLabel)
	st.shape(s.Daemons)
	for _, p := range st.pools {
		st.count(p)
	}
	return st
}

// numberPlaces gives zones and ways of paying their bits. Beyond 64 zones they
// share bits, which at worst makes machines choosier than they must be.
func (st *stock) numberPlaces() {
	zones, ways := map[string]int{}, map[string]int{}
	bit := func(numbers map[string]int, name string) uint64 {
		n, ok := numbers[name]
		if !ok {
			n = len(numbers)
			numbers[name] = n
		}
		return 1 << (n & 63)
	}
	for i := range st.offers {
		o := &st.offers[i]
		o.zoneBit, o.wayBit = bit(zones, o.Zone), bit(ways, o.CapacityType)
	}
}

func newPool(p *cluster.Pool) *pool {
	out := &pool{Pool: p, unusable: p.Unusable, budget: newBudget(p)}
	reqs, wrong := constraint.All(p.Requirements...)
	if wrong != nil && out.unusable == "" {
		out.unusable = "its requirement " + wrong.Key + " " + string(wrong.Operator) + " cannot be understood"
	}
	out.fixed = constraint.Labels{
		labelNodePool: p.Name, labelNodeClass: p.NodeClass, labelRegistered: "true", labelInitialized: "true",
	}
	for k, v := range p.Labels {
		out.fixed[k] = v
	}
	out.accepts = reqs.And(constraint.Exactly(p.Labels))
	least := map[string]int{}
	for _, r := range p.Requirements {
		least[r.Key] = max(least[r.Key], r.MinValues)
	}
	for _, key := range reqs.Keys() {
		if least[key] > 1 {
			out.least = append(out.least, minValue{key: key, n: least[key]})
		}
		if v, ok := p.Labels[key]; ok && !reqs[key].Accepts(v) && out.unusable == "" {
			out.unusable = "its label " + key + "=" + v + " contradicts its requirement " + reqs[key].String()
		}
	}
	return out
}

// add appends the offers of the pool.
func (st *stock) add(i int, p *pool, market catalog.Market, q *queue) {
	p.from, p.to = len(st.offers), len(st.offers)
	if p.unusable != "" {
		return
	}
	types := market[p.NodeClass].Types
	if len(types) == 0 {
		p.unusable = "its node class " + p.NodeClass + " has no instance types"
		return
	}
	allowed := p.filter(sortedTypes(types))
	for _, chosen := range p.choices(types, q) {
		v := variant{pool: i, chosen: chosen, labels: constraint.Labels{}, from: len(st.models)}
		for _, labels := range []constraint.Labels{p.fixed, chosen} {
			for k, value := range labels {
				v.labels[k] = value
			}
		}
		for _, a := range allowed {
			// What is reserved is a model of its own: no machine is one or the other.
			bought, reserved := a.split()
			st.addModel(a.typ, bought)
			for i := range reserved {
				st.addModel(a.typ, reserved[i:i+1])
			}
		}
		v.to = len(st.models)
		v.byPrice = st.byPrice(st.models[v.from:v.to])
		st.variants = append(st.variants, v)
	}
	p.to = len(st.offers)
}

// addModel appends a model of the variant that is about to be added.
func (st *stock) addModel(typ *catalog.Type, offerings []*catalog.Offering) {
	if len(offerings) == 0 {
		return
	}
	m := model{variant: len(st.variants), typ: typ, from: len(st.offers)}
	for _, o := range offerings {
		st.offers = append(st.offers, offer{Offering: o, model: len(st.models), reserve: -1})
	}
	m.to = len(st.offers)
	st.models = append(st.models, m)
}

func (st *stock) byPrice(models []model) []int {
	var out []int
	for _, m := range models {
		for o := m.from; o < m.to; o++ {
			if !st.offers[o].isReserved() {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(st.offers[a].Price, st.offers[b].Price), cmp.Compare(a, b))
	})
	return out
}

// allowedType is a type with the offerings that a pool allows.
type allowedType struct {
	typ       *catalog.Type
	offerings []*catalog.Offering
}

// filter returns what the pool's requirements leave of the types. If nothing
// is left, it notes the requirement, in the order of their keys, at which that happened.
func (p *pool) filter(types []*catalog.Type) []allowedType {
	var out []allowedType
	for _, t := range types {
		a := allowedType{typ: t}
		byType := p.refusal(t.Labels, isOfferingKey)
		for i := range t.Offerings {
			o := &t.Offerings[i]
			byOffering := p.refusal(o.Labels(), func(key string) bool { return !isOfferingKey(key) })
			if first := firstKey(byType, byOffering); first != "" {
				p.emptied = max(p.emptied, first)
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

// firstKey returns the key that comes first by name; the empty one is none.
func firstKey(a, b string) string {
	if a == "" || b == "" {
		return max(a, b)
	}
	return min(a, b)
}

// refusal returns the first required key, by name, that these labels do not
// satisfy, leaving out the keys that are judged elsewhere: labels that the pool
// itself puts on, and those for which skip is true.
func (p *pool) refusal(labels constraint.Labels, skip func(key string) bool) string {
	worst := ""
	for key, v := range p.accepts {
		if skip(key) || worst != "" && key > worst {
			continue
		}
		value, ok := labels[key]
		if !ok && (!isCloudKey(key) || v.Absent) {
			continue
		}
		if !ok || !v.Accepts(value) {
			worst = key
		}
	}
	return worst
}

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

// isOfferingKey reports whether the label depends on the offering, not on the type.
func isOfferingKey(key string) bool {
	switch key {
	case catalog.LabelZone, catalog.LabelZoneID, catalog.LabelCapacityType,
		catalog.LabelReservationID, catalog.LabelReservationType, catalog.LabelReservationInterruptible:
		return true
	}
	return false
}

// isCloudKey reports whether the label's value comes from what is bought, so
// that no pool can choose it freely.
func isCloudKey(key string) bool {
	switch key {
	case catalog.LabelZone, catalog.LabelZoneID, catalog.LabelRegion, catalog.LabelInstanceType,
		catalog.LabelArch, catalog.LabelOS, catalog.LabelWindowsBuild, labelHostname:
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/") || strings.HasPrefix(key, "karpenter.sh/")
}

// visitLabel calls add for the offers that have the label.
func (st *stock) visitLabel(key string, add func(from, to int, value string)) {
	for _, v := range st.variants {
		if value, ok := v.labels[key]; ok && (isOwnKey(key) || !isCloudKey(key)) {
			if v.from < v.to {
				add(st.models[v.from].from, st.models[v.to-1].to, value)
			}
			continue
		}
		for _, m := range st.models[v.from:v.to] {
			st.visitModel(m, key, add)
		}
	}
}

// isOwnKey reports whether the label looks like one of the cloud's but is put
// on by us.
func isOwnKey(key string) bool {
	return key == labelNodePool || key == labelNodeClass || key == labelRegistered || key == labelInitialized
}

func (st *stock) visitModel(m model, key string, add func(from, to int, value string)) {
	if key == labelHostname {
		add(m.from, m.to, unknownHostname)
		return
	}
	if !isOfferingKey(key) {
		if value, ok := m.typ.Labels[key]; ok {
			add(m.from, m.to, value)
		}
		return
	}
	for i := m.from; i < m.to; i++ {
		o := st.offers[i]
		switch {
		case key == catalog.LabelZone:
			add(i, i+1, o.Zone)
		case key == catalog.LabelCapacityType:
			add(i, i+1, o.CapacityType)
		default:
			if value, ok := o.Labels()[key]; ok {
				add(i, i+1, value)
			}
		}
	}
}

// variantOf returns the variant that the offer belongs to.
func (st *stock) variantOf(o int) *variant {
	return &st.variants[st.models[st.offers[o].model].variant]
}

// poolOf returns the pool that the offer belongs to.
func (st *stock) poolOf(o int) *pool { return st.pools[st.variantOf(o).pool] }

// typeOf returns the instance type of the offer.
func (st *stock) typeOf(o int) *catalog.Type { return st.models[st.offers[o].model].typ }

package offering

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Stock has all offers: every offering of every instance type that a pool
// allows. The offers of all pools have one numbering, so that sets of offers are bit sets.
type Stock struct {
	Dims     resources.Dimensions // dimensions of the vectors, as in podgroup.Queue.Dims
	Pools    []*Pool              // heaviest first, then by name
	Variants []Variant            // variants of all pools, by pool
	Models   []Model              // models of all variants, by variant
	Offers   []Offer              // offers of all models, by model; the index is the number of the offer
	Shapes   []Shape              // shapes of all offers; offers of one model may share a shape

	Labels    *bitset.Index // finds offers by label
	available bitset.Set    // the offers that EC2 can launch now; a reserved one only if its reservation has instances left
	ports     *podgroup.Ports

	Reservations []CapacityReservation // the capacity reservations of the offers
	Reserved     bitset.Set            // the offers of capacity reservations
}

// Variant is a pool with one value for each of its custom labels that may
// have several values. Most pools have a single variant.
type Variant struct {
	Pool   int                 // index into Stock.Pools
	Labels requirements.Labels // all labels except those of type and offering
	Chosen requirements.Labels // the custom labels in Labels for which the pool allows several values
	from   int                 // its models are Stock.Models[from:to]
	to     int

	ByPrice []int // its offers without capacity reservation, cheapest first
	quotes  []quote
}

// Model is an instance type in a variant of a pool.
type Model struct {
	Variant     int // index into Stock.Variants
	typ         *catalog.Type
	from        int // its offers are Stock.Offers[from:to], cheapest first
	to          int
	hasOneShape bool // whether all its offers have the same shape

	most [2]int64 // the most room of any of its offers in the first two dimensions, usually cpu and memory
}

// Offer is an offering of a model.
type Offer struct {
	*catalog.Offering
	Model            int // index into Stock.Models
	ReservationIndex int // index into Stock.Reservations; -1: no capacity reservation

	shape                    int    // index into Stock.Shapes
	zoneBit, capacityTypeBit uint64 // one bit for the zone, one for the capacity type
}

// New numbers the offers of the market that the pools of the snapshot allow. queue returns the pods to schedule; New
// calls it as late as possible, so that the caller can build the queue concurrently.
func New(s cluster.Snapshot, market catalog.Market, queue func() *podgroup.Queue) *Stock {
	st := &Stock{}
	for i := range s.Pools {
		st.Pools = append(st.Pools, newPool(&s.Pools[i]))
	}
	slices.SortFunc(st.Pools, func(a, b *Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	for i, p := range st.Pools {
		st.addPool(i, p, market, queue)
	}
	st.assignBits()
	st.findReservations(s.Nodes)
	st.available = bitset.New(len(st.Offers))
	for i, o := range st.Offers {
		if o.Available && (!o.IsReserved() || st.Reservations[o.ReservationIndex].Left > 0) {
			st.available.Add(i)
		}
	}
	st.Labels = bitset.NewIndex(len(st.Offers), st.visitLabel).WithNames(st.labelKeys)
	st.Dims, st.ports = queue().Dims, queue().Ports
	st.computeShapes(s.Daemons)
	for i := range st.Variants {
		st.Variants[i].quotes = st.quotes(&st.Variants[i])
	}
	for _, p := range st.Pools {
		st.numberValues(p)
	}
	return st
}

// assignBits assigns a bit to each zone and each capacity type. If there are more than 64 zones, zones share bits, and
// a planned node may keep fewer offers than possible.
func (st *Stock) assignBits() {
	var zones, capacityTypes []string // each list is short, so a linear search is faster than a map
	bit := func(names *[]string, name string) uint64 {
		n := slices.Index(*names, name)
		if n < 0 {
			n = len(*names)
			*names = append(*names, name)
		}
		return 1 << (n & 63)
	}
	for i := range st.Offers {
		o := &st.Offers[i]
		o.zoneBit, o.capacityTypeBit = bit(&zones, o.Zone), bit(&capacityTypes, o.CapacityType)
	}
}

// addPool appends the variants, models and offers of the pool with index i. It sets p.Unusable if the pool's node
// class has no instance types.
func (st *Stock) addPool(i int, p *Pool, market catalog.Market, queue func() *podgroup.Queue) {
	p.from, p.to = len(st.Offers), len(st.Offers)
	if p.Unusable != "" {
		return
	}
	types := market.Types(p.NodeClass, p.Name)
	p.Volume = market[p.NodeClass].PodVolume
	if len(types) == 0 {
		p.Unusable = "its node class " + p.NodeClass + " has no instance types"
		return
	}
	allowed := p.filter(sortedTypes(types))
	for _, chosen := range p.labelChoices(types, queue) {
		v := Variant{Pool: i, Chosen: chosen, Labels: requirements.Labels{}, from: len(st.Models)}
		for _, labels := range []requirements.Labels{p.fixed, chosen} {
			for k, value := range labels {
				v.Labels[k] = value
			}
		}
		st.growLists(allowed)
		for _, a := range allowed {
			// Each reserved offering is a model of its own: no planned node may keep both a reserved and an
			// unreserved offering.
			unreserved, reserved := a.split()
			st.addModel(a.typ, unreserved)
			for i := range reserved {
				st.addModel(a.typ, reserved[i:i+1])
			}
		}
		v.to = len(st.Models)
		v.ByPrice = st.byPrice(st.Models[v.from:v.to])
		st.Variants = append(st.Variants, v)
	}
	p.to = len(st.Offers)
}

func (st *Stock) growLists(allowed []allowedType) {
	n := 0
	for i := range allowed {
		n += len(allowed[i].offerings)
	}
	st.Offers, st.Models = slices.Grow(st.Offers, n), slices.Grow(st.Models, len(allowed))
}

// addModel appends a model of the variant that is being added. It ignores an empty list of offerings.
func (st *Stock) addModel(typ *catalog.Type, offerings []*catalog.Offering) {
	if len(offerings) == 0 {
		return
	}
	m := Model{Variant: len(st.Variants), typ: typ, from: len(st.Offers)}
	for _, o := range offerings {
		st.Offers = append(st.Offers, Offer{Offering: o, Model: len(st.Models), ReservationIndex: -1})
	}
	m.to = len(st.Offers)
	st.Models = append(st.Models, m)
}

// byPrice returns the offers of the models without capacity reservation, cheapest first.
func (st *Stock) byPrice(models []Model) []int {
	if len(models) == 0 {
		return nil
	}
	first, last := models[0].from, models[len(models)-1].to
	all := make([]priced, 0, last-first)
	for o := first; o < last; o++ {
		if !st.Offers[o].IsReserved() {
			all = append(all, priced{st.Offers[o].Price, o})
		}
	}
	sortByPrice(all)
	out := make([]int, len(all))
	for i := range all {
		out[i] = all[i].offer
	}
	return out
}

type priced struct {
	price catalog.Price
	offer int // index into Stock.Offers
}

// sortByPrice sorts offers by price, then by number. It packs each price and number into one integer and sorts the
// integers, which takes a third of the time. If a price or a number has too many bits, it sorts the offers themselves.
func sortByPrice(all []priced) {
	packed := make([]uint64, len(all))
	for i, p := range all {
		if p.price < 0 || p.price >= 1<<priceBits || p.offer >= 1<<(64-priceBits) {
			slices.SortFunc(all, func(a, b priced) int { return cmp.Or(cmp.Compare(a.price, b.price), a.offer-b.offer) })
			return
		}
		packed[i] = uint64(p.price)<<(64-priceBits) | uint64(p.offer)
	}
	slices.Sort(packed)
	for i, n := range packed {
		all[i] = priced{catalog.Price(n >> (64 - priceBits)), int(n & (1<<(64-priceBits) - 1))}
	}
}

// priceBits is the number of bits for a price in billionths of a dollar per hour: up to 8,796 dollars. The
// remaining bits number 2 million offers.
const priceBits = 43

// visitLabel calls add for each range of offers with the same value of the label. A variant sets the custom labels and
// the labels of the controller; type and offering set the others.
func (st *Stock) visitLabel(key string, add func(from, to int, value string)) {
	for _, v := range st.Variants {
		if value, ok := v.Labels[key]; ok && (isControllerKey(key) || !IsCloudKey(key)) {
			if v.from < v.to {
				add(st.Models[v.from].from, st.Models[v.to-1].to, value)
			}
			continue
		}
		for _, m := range st.Models[v.from:v.to] {
			st.visitModel(m, key, add)
		}
	}
}

// labelKeys returns the keys of the labels that some offer has.
func (st *Stock) labelKeys() map[string]bool {
	out := map[string]bool{labelHostname: true}
	add := func(labels requirements.Labels) {
		for key := range labels {
			out[key] = true
		}
	}
	for i := range st.Variants {
		add(st.Variants[i].Labels)
	}
	for i := range st.Models {
		add(st.Models[i].typ.Labels)
	}
	for i := range st.Offers {
		add(st.Offers[i].Labels())
	}
	return out
}

// visitModel is visitLabel for the offers of one model, whose variant does not set the label.
func (st *Stock) visitModel(m Model, key string, add func(from, to int, value string)) {
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
		o := st.Offers[i]
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

// VariantOf returns the variant that the offer belongs to.
func (st *Stock) VariantOf(o int) *Variant {
	return &st.Variants[st.Models[st.Offers[o].Model].Variant]
}

// PoolOf returns the pool that the offer belongs to.
func (st *Stock) PoolOf(o int) *Pool { return st.Pools[st.VariantOf(o).Pool] }

// TypeOf returns the instance type of the offer.
func (st *Stock) TypeOf(o int) *catalog.Type { return st.Models[st.Offers[o].Model].typ }

// ShapeOf returns the shape of the offer.
func (st *Stock) ShapeOf(o int) *Shape { return &st.Shapes[st.Offers[o].shape] }

// Room returns the room for pods on a node of the offer.
func (st *Stock) Room(o int) resources.Vector { return st.Shapes[st.Offers[o].shape].Room }

// OffersOf returns the offers of the variant.
func (st *Stock) OffersOf(v *Variant) bitset.Set {
	out := bitset.New(len(st.Offers))
	if v.from < v.to {
		out.AddRange(st.Models[v.from].from, st.Models[v.to-1].to)
	}
	return out
}

// Having returns the offers in the set that have labels with all these keys.
func (st *Stock) Having(offers bitset.Set, keys []string) bitset.Set {
	for _, key := range keys {
		offers = offers.Clone()
		offers.AndNot(st.Labels.Column(key).Absent)
	}
	return offers
}

// LabelsAtLaunch returns the labels of a node of the variant that are known before the node joins the cluster.
func (v *Variant) LabelsAtLaunch() requirements.Labels {
	out := maps.Clone(v.Labels)
	delete(out, labelRegistered)
	delete(out, labelInitialized)
	return out
}

package lowerbound

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// ascent searches for dual prices. It divides the price of each kind into shares, one for each resource. On a node, a
// pod pays for each resource: the price of the node, times the share of the resource, times the part of the room that
// the pod requests. The pods on one node use at most the whole room, so together they pay at most the node's price. The
// dual price of a pod is its payment on the kind where it pays least. So for any shares, the sum of the dual prices of
// the pods on a node never exceeds the node's price. The best shares prove the linear relaxation.
//
// Besides its room, a node has these resources:
//
//   - slots for a group: as many as pods of the group may be on one node; each pod of the group takes one slot;
//   - slots for large pods: n slots. A pod that requests a part x of the room of a resource takes
//     ⌈(n+1)·x⌉ − 1 slots. This number is less than (n+1)·x, so pods whose parts sum to at most 1
//     take less than n+1 slots in total, and thus at most n. (The number of slots is a dual feasible
//     function; see Fekete and Schepers.) So a pod that needs more than half a node pays for
//     the whole node, and a pod that needs more than a third of a node pays for half of the node.
//
// In each round, the ascent distributes the pods of each class over the kinds where they pay least, more strictly in
// later rounds: the pods lean to these kinds. Then the ascent shifts the price of each kind to the resources that
// the pods leaning to it use most. Each share has its own speed, which falls when the share reverses its direction and
// grows otherwise.
type ascent struct {
	*part
	shares    [][]float64 // by kind, by resource: share of the price; with the slots, the shares sum to 1
	pace      [][]pace    // by kind, by resource: speed of the share
	slots     [][]slot    // by kind
	options   [][]option  // by class: the kinds that may hold a pod of the class
	slotUses  [][]slotUse // by class: the slots that one pod takes, for all options of the class one after the other
	pods      []float64   // by class: number of pods
	coarse    *ascent     // ascent with few classes that represent all; nil if it would not be faster
	coarseOf  []int       // by class: the class of coarse that represents it
	usedSlots [][]int32   // by kind: the slots that a pod of some class takes

	asks         [][]four         // by class: class.ask, in fours
	rates        []four           // by kind, by resource in fours: payment for one unit
	loads        []four           // by kind, by resource in fours: requests of the pods that lean to the kind
	busy         []bool           // by kind: whether pods lean to it
	near         [][]option       // by class: the options that cost little more than the cheapest in the last round over all options
	cost         []float64        // by option of the current class: payment of one pod
	leanings     []weightedOption // options that the pods of the current class lean to
	value        float64          // sum of the best dual prices over all pods
	dualPrice    []float64        // by class: the best dual prices
	cheapestKind []int32          // by class: the kind with the least payment in the last round over all options
}

// four has the amounts of up to four resources, padded with zeros. Most pods request at most four.
type four [4]float64

// fours returns the number of groups of four for n amounts.
func fours(n int) int { return (n + 3) / 4 }

// weightedOption is an option, by its index, and the weight with which pods lean to it.
type weightedOption struct {
	weight float64
	at     int32
}

// slot describes the slots of a kind for a group, or for large pods.
type slot struct {
	count        int32   // number of the slots
	pricePerSlot float64 // price of the kind divided by the number of slots
	share        float64 // share of the price of the kind for all these slots
	fee          float64 // payment for one slot
	load         float64 // slots taken by the pods that lean to the kind
	pace         pace
}

// option is a kind that may hold a class. from and to are the range in ascent.slotUses of the
// slots that a pod takes there.
type option struct{ kind, from, to int32 }

// slotUse is the number n of slots that a pod takes. slot is their index in ascent.slots of the kind.
type slotUse struct{ slot, n int32 }

const (
	minRounds       = 40     // minimum number of rounds of an ascent without coarse
	maxRounds       = 320    // maximum number of rounds of an ascent without coarse
	roundsWork      = 25_000 // rounds of an ascent without coarse, times the square root of the number of its options
	wholeRoundEvery = 5      // one round in five considers all options; the others only those in near

	roughRounds      = 30    // rounds with few classes that represent all
	fineRounds       = 12    // rounds with all classes, after the rough rounds
	roughEndSoftness = 0.003 // softness at the end of the rounds with few classes

	startSoftness = 0.1    // softness at the start: an option that costs 10 % more than the cheapest gets 0.36 of its weight
	endSoftness   = 0.0003 // softness at the end
	maxLargeSlots = 4      // for each resource, a kind may have slots for large pods with n = 1 … 4

	maxShiftFactor = 2 // pace.factor limits the ratio of load to mean load to 1/2 … 2, so that no share falls to 0
)

// softRounds is the number of rounds after which the soft dual prices are taken. With the best shares, only
// the few kinds that the relaxation uses are worth exactly their price, and all other kinds a little less. But a
// plan of whole pods needs these other kinds. In the first rounds, pods still lean to every kind that is nearly as
// cheap, and their dual prices make all of these kinds worth their price. Plans made with soft dual prices
// cost 1 to 3 % less, although soft dual prices prove a bound that is a few percent lower.
const softRounds = 6

// newAscent returns an ascent with the data that all ascents of the part share; fork returns usable copies.
func (p *part) newAscent() *ascent {
	a := &ascent{part: p, slots: make([][]slot, len(p.kinds))}
	a.findOptions()
	a.packAsks()
	a.usedSlots = a.findUsedSlots()
	a.buildCoarse()
	return a
}

func (a *ascent) packAsks() {
	a.asks = grid[four](len(a.classes), fours(len(a.classes[0].ask)))
	for c := range a.classes {
		for r, n := range a.classes[c].ask {
			a.asks[c][r/4][r%4] = n
		}
	}
}

// fork returns a copy that shares only read-only data with a. The caller must call reset on it first.
func (a *ascent) fork() *ascent {
	kinds, n := slices.Clone(a.kinds), len(a.classes[0].ask)
	for i, rates := range grid[float64](len(kinds), n) {
		copy(rates, kinds[i].rates)
		kinds[i].rates = rates
	}
	out := a.copyFor(kinds)
	out.shares, out.pace = grid[float64](len(kinds), n), grid[pace](len(kinds), n)
	out.rates, out.loads = make([]four, len(kinds)*fours(n)), make([]four, len(kinds)*fours(n))
	out.busy, out.slots = make([]bool, len(kinds)), make([][]slot, len(kinds))
	for i := range a.slots {
		out.slots[i] = slices.Clone(a.slots[i])
	}
	if a.coarse != nil {
		r := a.coarse.copyFor(kinds)
		r.pods, r.slots = make([]float64, len(r.classes)), out.slots
		r.shares, r.pace, r.rates, r.loads, r.busy = out.shares, out.pace, out.rates, out.loads, out.busy
		out.coarse = r
	}
	return out
}

// copyFor returns a copy for these kinds, with separate memory for results by class.
func (a *ascent) copyFor(kinds []kind) *ascent {
	out, part := *a, *a.part
	part.kinds, part.scratchMemory = kinds, nil
	out.part, out.near, out.cheapestKind = &part, make([][]option, len(a.classes)), make([]int32, len(a.classes))
	return &out
}

func (a *ascent) reset(pods []float64) {
	a.value, a.dualPrice, a.pods = 0, nil, pods
	a.resetShares()
	if a.coarse != nil {
		clear(a.coarse.pods)
		for c, n := range pods {
			a.coarse.pods[a.coarseOf[c]] += n
		}
	}
}

func (a *ascent) computeSoft() {
	if a.coarse == nil {
		a.climb(softRounds, startSoftness, startSoftness)
		return
	}
	a.coarse.climb(softRounds, startSoftness, startSoftness)
	a.prove()
}

// computeHard finds the best dual prices: first with few classes, then with all.
func (a *ascent) computeHard() {
	if a.coarse == nil {
		a.climb(a.rounds(), startSoftness, endSoftness)
		return
	}
	a.coarse.climb(roughRounds, startSoftness, roughEndSoftness)
	a.climb(fineRounds, roughEndSoftness, endSoftness)
}

// climb does the given number of rounds, at least 2. The softness changes from start to end.
func (a *ascent) climb(rounds int, start, end float64) {
	for n := range rounds {
		softness := start * math.Pow(end/start, float64(n)/float64(rounds-1))
		a.round(softness, n%wholeRoundEvery == 0 || n == rounds-1)
	}
}

// rounds returns how many rounds to do: fewer if there are more options, because each round takes longer.
func (a *ascent) rounds() int {
	options := 1
	for _, o := range a.options {
		options += len(o)
	}
	return min(max(int(roundsWork/math.Sqrt(float64(options))), minRounds), maxRounds)
}

// firstSlotShare is the share of a price for all slots of a kind at the start.
const firstSlotShare = 0.05

// resetShares sets the first shares of each kind: firstSlotShare for all its slots, and equal parts of the rest for the
// requested resources. If no resource is requested, the slots get the whole price.
func (a *ascent) resetShares() {
	for i := range a.kinds {
		k := &a.kinds[i]
		asked := 0.0
		for r := range k.room {
			a.pace[i][r], a.shares[i][r] = pace{speed: 1}, 0
			if k.inRelaxation && slices.ContainsFunc(k.classes, func(c int) bool { return a.classes[c].ask[r] > 0 }) {
				a.shares[i][r] = 1
				asked++
			}
		}
		used, toSlots := a.usedSlots[i], 0.0
		if a.coarse != nil {
			used = a.coarse.usedSlots[i] // the other slots are rarely scarce, and start with a share of 0
		}
		if len(used) > 0 {
			toSlots = firstSlotShare
		}
		if asked == 0 {
			toSlots = 1
		}
		for r := range k.room {
			a.shares[i][r] *= (1 - toSlots) / max(asked, 1)
		}
		for s := range a.slots[i] {
			count := a.slots[i][s].count
			a.slots[i][s] = slot{count: count, pricePerSlot: k.price / float64(count), pace: pace{speed: 1}}
		}
		for _, s := range used {
			a.slots[i][s].share = toSlots / float64(len(used))
		}
		a.updateRates(i)
	}
}

// grid returns rows of n elements in one allocation.
func grid[T any](rows, n int) [][]T {
	all, out := make([]T, rows*n), make([][]T, rows)
	for i := range out {
		out[i] = all[i*n : (i+1)*n]
	}
	return out
}

// round computes the dual price of every class and moves the shares. If whole, it considers all options and keeps the
// dual prices if their sum is higher than before. Otherwise it considers only the options in near, and its dual
// prices prove no bound.
func (a *ascent) round(softness float64, whole bool) {
	value := 0.0
	dualPrice := make([]float64, len(a.classes))
	for c := range a.classes {
		if a.pods[c] == 0 {
			continue
		}
		options := a.near[c]
		if whole {
			options = a.options[c]
		}
		a.cost = slices.Grow(a.cost[:0], len(options))[:len(options)]
		least, at := a.payments(c, options, a.cost)
		if math.IsInf(least, 1) {
			continue
		}
		dualPrice[c] = least
		value += a.pods[c] * least
		if whole {
			a.cheapestKind[c] = options[at].kind
			a.narrow(c, least*(1+maxExcess*softness+0.05)) // 5 % more, because payments change until the next whole round
		}
		a.distribute(c, options, least, softness)
	}
	if whole {
		a.keep(dualPrice, value)
	}
	for i := range a.kinds {
		if a.busy[i] {
			a.shift(i)
			a.updateRates(i)
		}
	}
}

// prove does the same as a round over all options, on all cores, but does not move the shares.
func (a *ascent) prove() {
	dualPrice := make([]float64, len(a.classes))
	parallel.Each((len(a.classes)+provedAtOnce-1)/provedAtOnce, func(block int) {
		var costs []float64
		for c := block * provedAtOnce; c < min((block+1)*provedAtOnce, len(a.classes)); c++ {
			if a.pods[c] == 0 {
				continue
			}
			costs = slices.Grow(costs[:0], len(a.options[c]))[:len(a.options[c])]
			if least, at := a.payments(c, a.options[c], costs); !math.IsInf(least, 1) {
				dualPrice[c], a.cheapestKind[c] = least, a.options[c][at].kind
			}
		}
	})
	value := 0.0
	for c, n := range a.pods {
		value += n * dualPrice[c]
	}
	a.keep(dualPrice, value)
}

// provedAtOnce is the number of classes that one core processes at a time in prove.
const provedAtOnce = 32

// keep stores the dual prices, and the shares that prove them, if they prove a higher bound than before.
func (a *ascent) keep(dualPrice []float64, value float64) {
	if value <= a.value && a.dualPrice != nil {
		return
	}
	a.value, a.dualPrice = value, dualPrice
	for i := range a.kinds {
		for r, share := range a.shares[i] {
			a.kinds[i].rates[r] = share * a.kinds[i].price
		}
	}
}

// updateRates computes the rates and fees of the kind with index i from its shares, and resets its loads.
func (a *ascent) updateRates(i int) {
	k := &a.kinds[i]
	a.busy[i] = false
	rates, loads := a.rowsOf(i)
	for r, room := range k.room {
		loads[r/4][r%4] = 0
		if room > 0 {
			rates[r/4][r%4] = a.shares[i][r] * k.price / room
		}
	}
	for _, n := range a.usedSlots[i] {
		s := &a.slots[i][n]
		s.load, s.fee = 0, s.share*s.pricePerSlot
	}
}

func (a *ascent) rowsOf(i int) (rates, loads []four) {
	n := len(a.asks[0])
	return a.rates[i*n : (i+1)*n], a.loads[i*n : (i+1)*n]
}

// payments sets costs to the payment of a pod of the class at each option. It returns the least payment and the index
// of its option.
func (a *ascent) payments(c int, options []option, costs []float64) (least float64, at int) {
	ask, uses := a.asks[c], a.slotUses[c]
	first, rest := ask[0], ask[1:] // rest is usually empty; this function takes most of the time of an ascent
	least, costs = math.Inf(1), costs[:len(options)]
	for i := range options {
		o := &options[i]
		start := int(o.kind) * len(ask)
		x := &a.rates[start]
		sum := (x[0]*first[0] + x[1]*first[1]) + (x[2]*first[2] + x[3]*first[3])
		for q := range rest {
			x, y := &a.rates[start+1+q], &rest[q]
			sum += (x[0]*y[0] + x[1]*y[1]) + (x[2]*y[2] + x[3]*y[3])
		}
		if o.from < o.to {
			slots := a.slots[o.kind]
			for _, t := range uses[o.from:o.to] {
				sum += slots[t.slot].fee * float64(t.n)
			}
		}
		costs[i] = sum
		if sum < least {
			least, at = sum, i
		}
	}
	return least, at
}

// maxExcess is the excess cost from which no pod leans to an option, in multiples of the softness.
const maxExcess = 16

// distribute distributes the pods of a class over its options with the weight (1−x/16)^16, which is nearly e^−x; 16 is
// maxExcess. x is how much more the option costs than the cheapest, divided by the least payment and by the softness.
func (a *ascent) distribute(c int, options []option, least, softness float64) {
	span := max(least*softness*maxExcess, 1e-12)
	leanings := a.within(least + span)
	scale, total := 1/span, 0.0
	for i := range leanings {
		p := 1 - (a.cost[leanings[i].at]-least)*scale
		p *= p
		p *= p
		p *= p
		p *= p
		leanings[i].weight = p
		total += p
	}
	each := a.pods[c] / total
	ask := a.asks[c]
	first, rest := &ask[0], ask[1:] // see payments
	for _, l := range leanings {
		o, pods := &options[l.at], l.weight*each
		a.busy[o.kind] = true
		at := int(o.kind) * len(ask)
		x := &a.loads[at]
		x[0], x[1], x[2], x[3] = x[0]+pods*first[0], x[1]+pods*first[1], x[2]+pods*first[2], x[3]+pods*first[3]
		for q := range rest {
			x, y := &a.loads[at+1+q], &rest[q]
			x[0], x[1], x[2], x[3] = x[0]+pods*y[0], x[1]+pods*y[1], x[2]+pods*y[2], x[3]+pods*y[3]
		}
		if o.from < o.to {
			slots := a.slots[o.kind]
			for _, t := range a.slotUses[c][o.from:o.to] {
				slots[t.slot].load += pods * float64(t.n)
			}
		}
	}
}

// within returns the indices of the options that cost less than limit, without weights.
func (a *ascent) within(limit float64) []weightedOption {
	a.leanings = a.leanings[:0]
	for i, cost := range a.cost {
		if cost < limit {
			a.leanings = append(a.leanings, weightedOption{at: int32(i)})
		}
	}
	return a.leanings
}

// narrow sets near of the class to the options that cost no more than limit. Only these options are considered until
// the next whole round.
func (a *ascent) narrow(c int, limit float64) {
	if a.near[c] == nil {
		a.near[c] = make([]option, len(a.options[c]))
	}
	near, n := a.near[c][:len(a.options[c])], 0
	for i, o := range a.options[c] {
		if a.cost[i] <= limit {
			near[n] = o
			n++
		}
	}
	a.near[c] = near[:n]
}

// shift moves the price of a kind towards the resources and slots that are used most. For this, it converts the loads
// from amounts to prices: a load that fills one node becomes the price of the node.
func (a *ascent) shift(i int) {
	k, sum := &a.kinds[i], 0.0
	_, loads := a.rowsOf(i)
	for r, room := range k.room {
		if room > 0 {
			loads[r/4][r%4] *= k.price / room
			sum += a.shares[i][r] * loads[r/4][r%4]
		}
	}
	for _, n := range a.usedSlots[i] {
		s := &a.slots[i][n]
		s.load *= s.pricePerSlot
		sum += s.share * s.load
	}
	if sum <= 0 {
		return
	}
	total, floor := 0.0, 1e-8/float64(len(k.room)+len(a.usedSlots[i])) // a share of 0 could not grow again
	for r, share := range a.shares[i] {
		if share > 0 {
			a.shares[i][r] = max(share*a.pace[i][r].factor(loads[r/4][r%4]/sum), floor)
			total += a.shares[i][r]
		}
	}
	for _, n := range a.usedSlots[i] {
		s := &a.slots[i][n]
		if s.share > 2*floor || s.load > sum { // most slots are not scarce, and their share stays at the floor
			s.share = max(s.share*s.pace.factor(s.load/sum), floor)
		}
		total += s.share
	}
	scale := 1 / total
	for r := range a.shares[i] {
		a.shares[i][r] *= scale
	}
	for _, n := range a.usedSlots[i] {
		a.slots[i][n].share *= scale
	}
}

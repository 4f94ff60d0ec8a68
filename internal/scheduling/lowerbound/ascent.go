package lowerbound

import (
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// ascent searches for dual prices: it splits the price of each kind over its resources, in any shares.
// On a node, a pod then pays for each resource the share of the room that it takes. The pods on one
// node take no more than all of it, so together they pay no more than its price. The dual price of a
// pod is what it pays on the kind where it pays least. So for any shares, no node holds pods whose
// dual prices exceed its price. The best shares prove the linear relaxation.
//
// These count as resources of a node besides its room:
//
//   - its slots for a group: as many as the cap, and each pod of the group takes one;
//   - its slots for large pods: n of them, and a pod that asks for a part x of the room of
//     something takes ⌈(n+1)·x⌉ − 1. That is less than (n+1)·x, so pods with parts
//     of 1 in all take less than n+1 slots, which is n at most (a dual feasible
//     function, as Fekete and Schepers have it). So pods of more than half a node pay for
//     all of it, and pods of more than a third for half.
//
// The ascent lets pods lean towards the kinds where they pay least, the more
// strictly the later, and shifts the price of each kind to the resources that
// those pods use most. How fast is found out for each share by itself: slower when it
// turned round, faster when it did not.
type ascent struct {
	*part
	shares  [][]float64 // by kind, by resource: of its price; with its slots they add up to 1
	pace    [][]pace    // by kind, by resource
	slots   [][]slot    // by kind
	options [][]option  // by class
	takes   [][]taken   // by class: of all its options
	pods    []float64   // by class
	rough   *ascent     // of few classes that stand for all; nil where it would not be faster
	of      []int       // by class: the class of rough that stands for it
	live    [][]int32   // by kind: the slots that a pod of some class takes

	asks      [][]four   // by class: class.ask, in fours
	rates     []four     // by kind, by resource in fours: what one unit pays
	loads     []four     // by kind, by resource in fours: what the pods that lean there take
	busy      []bool     // by kind: some pods lean there
	near      [][]option // by class: the options that are not far from the cheapest
	cost      []float64  // of each option of the class that is looked at
	lent      []lent     // by option where its pods lean
	value     float64    // of the best dual prices
	dualPrice []float64
	payer     []int32 // by class: where it paid least, the last time that all options were looked at
}

// four is amounts of four resources, or of fewer and then nothing: pods mostly ask for no more.
type four [4]float64

// fours is a list of amounts, in groups of four.
func fours(n int) int { return (n + 3) / 4 }

// lent is an option, by its index, and its weight.
type lent struct {
	weight float64
	at     int32
}

// slot is slots of a kind for a group, or for large pods.
type slot struct {
	count int32
	whole float64 // the price of the kind for each slot
	share float64
	fee   float64 // for one
	load  float64
	pace  pace
}

// option is a kind that may hold a class, and where in ascent.takes it is
// written which of its slots a pod takes.
type option struct{ kind, from, to int32 }

// taken is how many slots a pod takes of one in ascent.slots.
type taken struct{ slot, n int32 }

const (
	leastRounds = 40
	mostRounds  = 320
	roundsWork  = 25_000 // rounds × the root of the number of options, within those two
	wholeEach   = 5      // rounds from one that looks at all options to the next

	roughRounds = 30    // with few classes that stand for all
	fineRounds  = 12    // with all classes, after those
	rougher     = 0.003 // how soft the rounds with few classes end

	softest = 0.1 // how much dearer an option may be and still get a good part of the pods, at first
	hardest = 0.0003
	largest = 4 // slots for large pods

	mostShift = 2 // how far out of proportion use is taken to be: a share that falls to nothing at once must come back
)

// Soft dual prices are those of the first rounds. With the best shares, only the few kinds that the
// relaxation uses are worth exactly their price, and all others a little less. But a plan of whole
// pods needs those others. In the first rounds, pods still pay on every kind that is nearly as cheap,
// and their dual prices make all of these kinds worth their price. Plans made with soft dual prices
// cost 1 to 3 % less, although these prove a bound that is some percent lower.
const softRounds = 6

// newAscent finds out what ascents of the part have in common; fork makes them.
func (p *part) newAscent() *ascent {
	a := &ascent{part: p, slots: make([][]slot, len(p.kinds))}
	a.findOptions()
	a.quarter()
	a.live = a.taken()
	a.roughen()
	return a
}

// quarter notes what the classes ask for in fours.
func (a *ascent) quarter() {
	a.asks = grid[four](len(a.classes), fours(len(a.classes[0].ask)))
	for c := range a.classes {
		for r, n := range a.classes[c].ask {
			a.asks[c][r/4][r%4] = n
		}
	}
}

// fork returns an ascent of its own, which shares with a what is only read; it begins with begin.
func (a *ascent) fork() *ascent {
	kinds, n := slices.Clone(a.kinds), len(a.classes[0].ask)
	for i, rates := range grid[float64](len(kinds), n) {
		copy(rates, kinds[i].rates)
		kinds[i].rates = rates
	}
	out := a.on(kinds)
	out.shares, out.pace = grid[float64](len(kinds), n), grid[pace](len(kinds), n)
	out.rates, out.loads = make([]four, len(kinds)*fours(n)), make([]four, len(kinds)*fours(n))
	out.busy, out.slots = make([]bool, len(kinds)), make([][]slot, len(kinds))
	for i := range a.slots {
		out.slots[i] = slices.Clone(a.slots[i])
	}
	if a.rough != nil {
		r := a.rough.on(kinds)
		r.pods, r.slots = make([]float64, len(r.classes)), out.slots
		r.shares, r.pace, r.rates, r.loads, r.busy = out.shares, out.pace, out.rates, out.loads, out.busy
		out.rough = r
	}
	return out
}

// on returns a copy for those kinds, with room of its own for what is found by class.
func (a *ascent) on(kinds []kind) *ascent {
	out, part := *a, *a.part
	part.kinds, part.cells = kinds, nil
	out.part, out.near, out.payer = &part, make([][]option, len(a.classes)), make([]int32, len(a.classes))
	return &out
}

// begin starts with these numbers of pods of each class.
func (a *ascent) begin(pods []float64) {
	a.value, a.dualPrice, a.pods = 0, nil, pods
	a.split()
	if a.rough != nil {
		clear(a.rough.pods)
		for c, n := range pods {
			a.rough.pods[a.of[c]] += n
		}
	}
}

// soften computes the soft dual prices.
func (a *ascent) soften() {
	if a.rough == nil {
		a.climb(softRounds, softest, softest)
		return
	}
	a.rough.climb(softRounds, softest, softest)
	a.prove()
}

// harden finds the best dual prices: most of the way with few classes, and the end with all.
func (a *ascent) harden() {
	if a.rough == nil {
		a.climb(a.rounds(), softest, hardest)
		return
	}
	a.rough.climb(roughRounds, softest, rougher)
	a.climb(fineRounds, rougher, hardest)
}

// climb does the given number of rounds while the softness falls.
func (a *ascent) climb(rounds int, from, to float64) {
	for n := range rounds {
		softness := from * math.Pow(to/from, float64(n)/float64(rounds-1))
		a.round(softness, n%wholeEach == 0 || n == rounds-1)
	}
}

// rounds is how many are worth the time.
func (a *ascent) rounds() int {
	options := 1
	for _, o := range a.options {
		options += len(o)
	}
	return min(max(int(roundsWork/math.Sqrt(float64(options))), leastRounds), mostRounds)
}

// opening is the part of a price that slots share at first.
const opening = 0.05

// split gives each kind its first shares: all resources that are asked for alike.
func (a *ascent) split() {
	for i := range a.kinds {
		k := &a.kinds[i]
		asked := 0.0
		for r := range k.room {
			a.pace[i][r], a.shares[i][r] = pace{speed: 1}, 0
			if k.lead && slices.ContainsFunc(k.classes, func(c int) bool { return a.classes[c].ask[r] > 0 }) {
				a.shares[i][r] = 1
				asked++
			}
		}
		live, toSlots := a.live[i], 0.0
		if a.rough != nil {
			live = a.rough.live[i] // the others are rarely scarce, and cost nothing at first
		}
		if len(live) > 0 {
			toSlots = opening
		}
		if asked == 0 {
			toSlots = 1
		}
		for r := range k.room {
			a.shares[i][r] *= (1 - toSlots) / max(asked, 1)
		}
		for s := range a.slots[i] {
			count := a.slots[i][s].count
			a.slots[i][s] = slot{count: count, whole: k.price / float64(count), pace: pace{speed: 1}}
		}
		for _, s := range live {
			a.slots[i][s].share = toSlots / float64(len(live))
		}
		a.price(i)
	}
}

// grid is rows of n in one piece.
func grid[T any](rows, n int) [][]T {
	all, out := make([]T, rows*n), make([][]T, rows)
	for i := range out {
		out[i] = all[i*n : (i+1)*n]
	}
	return out
}

// round prices every pod, keeps the dual prices if they prove more than any before,
// and moves the shares. Only a round over all options proves anything.
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
		least, at := a.look(c, options, a.cost)
		if math.IsInf(least, 1) {
			continue
		}
		dualPrice[c] = least
		value += a.pods[c] * least
		if whole {
			a.payer[c] = options[at].kind
			a.narrow(c, least*(1+far*softness+0.05))
		}
		a.lean(c, options, least, softness)
	}
	if whole {
		a.keep(dualPrice, value)
	}
	for i := range a.kinds {
		if a.busy[i] {
			a.shift(i)
			a.price(i)
		}
	}
}

// prove does the same, on all cores, and moves nothing.
func (a *ascent) prove() {
	dualPrice := make([]float64, len(a.classes))
	parallel.Each((len(a.classes)+provedAtOnce-1)/provedAtOnce, func(block int) {
		var costs []float64
		for c := block * provedAtOnce; c < min((block+1)*provedAtOnce, len(a.classes)); c++ {
			if a.pods[c] == 0 {
				continue
			}
			costs = slices.Grow(costs[:0], len(a.options[c]))[:len(a.options[c])]
			if least, at := a.look(c, a.options[c], costs); !math.IsInf(least, 1) {
				dualPrice[c], a.payer[c] = least, a.options[c][at].kind
			}
		}
	})
	value := 0.0
	for c, n := range a.pods {
		value += n * dualPrice[c]
	}
	a.keep(dualPrice, value)
}

// provedAtOnce is how many classes one core proves at a time.
const provedAtOnce = 32

// keep keeps the dual prices, and the shares by which they are proved, if they prove more than any before.
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

// price works out what the shares of a kind come to, and forgets its loads.
func (a *ascent) price(i int) {
	k := &a.kinds[i]
	a.busy[i] = false
	rates, loads := a.rowsOf(i)
	for r, room := range k.room {
		loads[r/4][r%4] = 0
		if room > 0 {
			rates[r/4][r%4] = a.shares[i][r] * k.price / room
		}
	}
	for _, n := range a.live[i] {
		s := &a.slots[i][n]
		s.load, s.fee = 0, s.share*s.whole
	}
}

// rowsOf returns the rates and the loads of a kind.
func (a *ascent) rowsOf(i int) (rates, loads []four) {
	n := len(a.asks[0])
	return a.rates[i*n : (i+1)*n], a.loads[i*n : (i+1)*n]
}

// look notes in costs what a pod of the class pays at each option, and returns the least and where that is.
func (a *ascent) look(c int, options []option, costs []float64) (least float64, at int) {
	ask, takes := a.asks[c], a.takes[c]
	first, rest := ask[0], ask[1:] // mostly there is no rest, and this is where most of the time goes
	least, costs = math.Inf(1), costs[:len(options)]
	for i := range options {
		o := &options[i]
		at0 := int(o.kind) * len(ask)
		x := &a.rates[at0]
		sum := (x[0]*first[0] + x[1]*first[1]) + (x[2]*first[2] + x[3]*first[3])
		for q := range rest {
			x, y := &a.rates[at0+1+q], &rest[q]
			sum += (x[0]*y[0] + x[1]*y[1]) + (x[2]*y[2] + x[3]*y[3])
		}
		if o.from < o.to {
			slots := a.slots[o.kind]
			for _, t := range takes[o.from:o.to] {
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

// far is how many times the softness an option may be dearer before no pod leans towards it.
const far = 16

// lean spreads the pods over their options, most of them where they pay
// least, as (1-x/16)^16 has it, which is nearly e^-x.
func (a *ascent) lean(c int, options []option, least, softness float64) {
	span := max(least*softness*far, 1e-12)
	lent := a.within(least + span)
	scale, total := 1/span, 0.0
	for i := range lent {
		p := 1 - (a.cost[lent[i].at]-least)*scale
		p *= p
		p *= p
		p *= p
		p *= p
		lent[i].weight = p
		total += p
	}
	each := a.pods[c] / total
	ask := a.asks[c]
	first, rest := &ask[0], ask[1:] // see look
	for _, l := range lent {
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
			for _, t := range a.takes[c][o.from:o.to] {
				slots[t.slot].load += pods * float64(t.n)
			}
		}
	}
}

// within returns the options that cost less than limit, by their index.
func (a *ascent) within(limit float64) []lent {
	a.lent = a.lent[:0]
	for i, cost := range a.cost {
		if cost < limit {
			a.lent = append(a.lent, lent{at: int32(i)})
		}
	}
	return a.lent
}

// narrow keeps the options that cost no more than limit for the next rounds.
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

// shift moves the price of a kind towards the resources that are used most.
func (a *ascent) shift(i int) {
	k, sum := &a.kinds[i], 0.0
	_, loads := a.rowsOf(i)
	for r, room := range k.room {
		if room > 0 {
			loads[r/4][r%4] *= k.price / room
			sum += a.shares[i][r] * loads[r/4][r%4]
		}
	}
	for _, n := range a.live[i] {
		s := &a.slots[i][n]
		s.load *= s.whole
		sum += s.share * s.load
	}
	if sum <= 0 {
		return
	}
	total, floor := 0.0, 1e-8/float64(len(k.room)+len(a.live[i]))
	for r, share := range a.shares[i] {
		if share > 0 {
			a.shares[i][r] = max(share*a.pace[i][r].factor(loads[r/4][r%4]/sum), floor)
			total += a.shares[i][r]
		}
	}
	for _, n := range a.live[i] {
		s := &a.slots[i][n]
		if s.share > 2*floor || s.load > sum { // most slots are enough for all, and stay unpaid
			s.share = max(s.share*s.pace.factor(s.load/sum), floor)
		}
		total += s.share
	}
	part := 1 / total
	for r := range a.shares[i] {
		a.shares[i][r] *= part
	}
	for _, n := range a.live[i] {
		a.slots[i][n].share *= part
	}
}

// Package estimate computes an approximate price of new nodes for a few pods, within microseconds.
//
// In: pods, the pools and the market that machines are bought from, and which instance types pods may share.
// Out: what the pods can be had for as far as room, labels and taints go.
// Never: a plan, or a bound: the least price may be lower, and what pods ask of each other, which counts for nothing here, may make it higher.
//
// # How it is done
//
// A pod alone costs what the cheapest machine does that holds it. Machines that pods share save some of that. The one that saves most is bought,
// again and again until none saves anything: each is filled with one class of pods after the other, in two orders, those first that cost most
// alone for what they take of the machine, or simply those that cost most alone.
package estimate

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Estimator knows what pods of one snapshot ask for, and what can be bought for them. It is for one at a time.
type Estimator struct {
	classes []class
	lots    []lot
	byPod   map[string]int // by ID: the class

	left        []int // by class: pods of the estimate that have no machine yet
	taken, best []int // by class: those on the machine that is filled now, and on the best
	room        resources.Vector
}

// class is pods that ask for the same.
type class struct {
	ask   resources.Vector
	alone float64 // what one of them costs by itself, in billionths of a dollar per hour; infinite where nothing holds it
	on    Machine // then
}

// lot is machines that can be bought, and shared.
type lot struct {
	Machine
	price  float64
	room   resources.Vector
	orders [2][]int // of the classes that it takes
}

// Machine is one that pods are on, as it is at its cheapest.
type Machine struct {
	Type     *catalog.Type
	Offering *catalog.Offering
	Labels   requirements.Labels // of its pool
	Taints   []requirements.Taint
	Room     resources.Amounts // for pods, of what they ask for
}

// Group is pods that are estimated together.
type Group struct {
	counts []int // by class
	alone  float64
}

// New prepares estimates for the pods of the snapshot that need a place. Pods share machines of the instance types in shared, by name, and of no others:
// few of them are worth looking at, and the more there are the longer an estimate takes.
func New(s cluster.Snapshot, market catalog.Market, shared map[string]bool) *Estimator {
	q := offering.Queue(s, market)
	st := offering.New(s, market, func() *podgroup.Queue { return q })
	accepts := st.Accept(q)
	lots := accepts.Lots(accepts.Hard)
	e := &Estimator{byPod: map[string]int{}, room: make(resources.Vector, len(q.Dims))}
	takes := func(l *offering.Lot, c *podgroup.Class) bool {
		return accepts.Sets[accepts.Hard[c.Sig]].Has(l.Offer) && c.Ask.Fits(st.Room(l.Offer))
	}
	for i := range q.Classes {
		c := &q.Classes[i]
		one, cheapest := class{ask: c.Ask, alone: math.Inf(1)}, -1
		for k := range lots {
			if lots[k].Price < one.alone && takes(&lots[k], c) {
				one.alone, cheapest = lots[k].Price, lots[k].Offer
			}
		}
		if cheapest >= 0 {
			one.on = machineOf(st, cheapest)
		}
		e.classes = append(e.classes, one)
		for _, p := range c.Pods {
			e.byPod[p.ID()] = i
		}
	}
	for k := range lots {
		if shared[st.TypeOf(lots[k].Offer).Name] {
			one := lot{Machine: machineOf(st, lots[k].Offer), price: lots[k].Price, room: st.Room(lots[k].Offer)}
			e.add(one, func(class int) bool { return takes(&lots[k], &q.Classes[class]) })
		}
	}
	e.left, e.taken, e.best = make([]int, len(e.classes)), make([]int, len(e.classes)), make([]int, len(e.classes))
	return e
}

func machineOf(st *offering.Stock, offer int) Machine {
	m := Machine{Type: st.TypeOf(offer), Offering: st.Offers[offer].Offering, Labels: st.VariantOf(offer).Labels, Taints: st.PoolOf(offer).Taints}
	for i, name := range st.Dims {
		m.Room = m.Room.With(name, st.Room(offer)[i])
	}
	return m
}

// add makes the lot one that pods may share.
func (e *Estimator) add(l lot, takes func(class int) bool) {
	var all []int
	dense := make([]float64, len(e.classes)) // what a pod costs alone, for the largest share that it takes of anything
	for i := range e.classes {
		if !takes(i) {
			continue
		}
		all = append(all, i)
		share := 0.0
		for r, ask := range e.classes[i].ask {
			if ask > 0 {
				share = max(share, float64(ask)/float64(l.room[r]))
			}
		}
		dense[i] = e.classes[i].alone / share
	}
	if len(all) == 0 {
		return
	}
	l.orders = [2][]int{slices.Clone(all), all}
	slices.SortStableFunc(l.orders[0], func(a, b int) int { return cmp.Compare(dense[b], dense[a]) })
	slices.SortStableFunc(l.orders[1], func(a, b int) int { return cmp.Compare(e.classes[b].alone, e.classes[a].alone) })
	e.lots = append(e.lots, l)
}

// Group returns the pods, each of which must be one of the snapshot's, as what can be estimated.
func (e *Estimator) Group(pods []cluster.Pod) Group {
	g := Group{counts: make([]int, len(e.classes))}
	for i := range pods {
		c, known := e.byPod[pods[i].ID()]
		if !known {
			g.alone = math.Inf(1) // nobody can say what it asks for
			continue
		}
		g.counts[c]++
		g.alone += e.classes[c].alone
	}
	return g
}

// Alike reports whether there are as many pods of each class in both, neither of which is without groups.
func Alike(a, b []Group) bool {
	for c := range a[0].counts {
		if count(a, c) != count(b, c) {
			return false
		}
	}
	return true
}

func count(groups []Group, class int) int {
	n := 0
	for i := range groups {
		n += groups[i].counts[class]
	}
	return n
}

// Size is how many numbers an estimate looks at, about.
func (e *Estimator) Size() int { return max(len(e.lots), 1) * max(len(e.classes), 1) }

// Price returns what the pods of all groups cost together, per hour; false if there is nothing to be bought for one of them.
func (e *Estimator) Price(groups []Group) (catalog.Price, bool) {
	price := e.begin(groups)
	if math.IsInf(price, 1) {
		return 0, false
	}
	for at, saves := e.share(); at >= 0; at, saves = e.share() {
		price -= saves
	}
	return catalog.Price(math.Round(price)), true
}

// begin has the pods of the groups in need of a machine, and returns what each of them alone would cost.
func (e *Estimator) begin(groups []Group) (alone float64) {
	clear(e.left)
	for i := range groups {
		for c, n := range groups[i].counts {
			e.left[c] += n
		}
		alone += groups[i].alone
	}
	return alone
}

// Machines returns the machines that the price of the pods is of; none if there is nothing to be bought for one of them.
func (e *Estimator) Machines(groups []Group) []Machine {
	if math.IsInf(e.begin(groups), 1) {
		return nil
	}
	var out []Machine
	for at, _ := e.share(); at >= 0; at, _ = e.share() {
		out = append(out, e.lots[at].Machine)
	}
	for c, n := range e.left {
		for range n {
			out = append(out, e.classes[c].on)
		}
	}
	return out
}

// share puts pods onto the machine that saves most, and returns which that is, and what it saves; -1 if none saves anything.
func (e *Estimator) share() (at int, most float64) {
	at = -1
	for i := range e.lots {
		for _, order := range e.lots[i].orders {
			if saves := e.fill(&e.lots[i], order) - e.lots[i].price; saves > most {
				at, most = i, saves
				copy(e.best, e.taken)
			}
		}
	}
	if at >= 0 {
		for c, n := range e.best {
			e.left[c] -= n
		}
	}
	return at, most
}

// fill puts as many pods onto a machine as there is room for, and returns what they would cost alone.
func (e *Estimator) fill(l *lot, order []int) float64 {
	copy(e.room, l.room)
	clear(e.taken)
	alone := 0.0
	for _, c := range order {
		if e.left[c] == 0 {
			continue
		}
		if n := e.classes[c].ask.Times(e.room, e.left[c]); n > 0 {
			e.room.Take(e.classes[c].ask, n)
			e.taken[c] = n
			alone += float64(n) * e.classes[c].alone
		}
	}
	return alone
}

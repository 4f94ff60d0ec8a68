package consolidation

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

// estimator knows what pods of one snapshot ask for, and what can be bought for them. It is for one at a time.
type estimator struct {
	classes []podClass
	lots    []sharedOffering
	byPod   map[string]int // by ID: the class

	remaining    []int // by class: pods of the estimate that have no machine yet
	filled, best []int // by class: those on the machine that is filled now, and on the best
	room         resources.Vector
}

// class is pods that ask for the same.
type podClass struct {
	requests resources.Vector
	alone    float64       // what one of them costs by itself, in billionths of a dollar per hour; infinite where nothing holds it
	cheapest estimatedNode // then
}

// lot is machines that can be bought, and shared.
type sharedOffering struct {
	node   estimatedNode
	price  float64
	room   resources.Vector
	orders [2][]int // of the classes that it takes
}

// estimatedNode is one that pods are on, as it is at its cheapest.
type estimatedNode struct {
	Type     *catalog.Type
	Offering *catalog.Offering
	Labels   requirements.Labels // of its pool
	Taints   []requirements.Taint
	Room     resources.Amounts // for pods, of what they ask for
}

// estimateGroup is pods that are estimated together.
type estimateGroup struct {
	counts []int // by class
	alone  float64
}

// newEstimator prepares estimates for the pods of the snapshot that need a place. Pods share machines of the instance types in shared, by name, and of no others:
// few of them are worth looking at, and the more there are the longer an estimate takes.
func newEstimator(s cluster.Snapshot, market catalog.Market, shared map[string]bool) *estimator {
	q := offering.Queue(s, market)
	st := offering.New(s, market, func() *podgroup.Queue { return q })
	accepts := st.Accept(q)
	lots := accepts.Lots(accepts.Hard)
	e := &estimator{byPod: map[string]int{}, room: make(resources.Vector, len(q.Dims))}
	takes := func(l *offering.Lot, c *podgroup.Class) bool {
		return accepts.Sets[accepts.Hard[c.Sig]].Has(l.Offer) && c.Ask.Fits(st.Room(l.Offer))
	}
	for i := range q.Classes {
		c := &q.Classes[i]
		one, cheapest := podClass{requests: c.Ask, alone: math.Inf(1)}, -1
		for k := range lots {
			if lots[k].Price < one.alone && takes(&lots[k], c) {
				one.alone, cheapest = lots[k].Price, lots[k].Offer
			}
		}
		if cheapest >= 0 {
			one.cheapest = machineOf(st, cheapest)
		}
		e.classes = append(e.classes, one)
		for _, p := range c.Pods {
			e.byPod[p.ID()] = i
		}
	}
	for k := range lots {
		if shared[st.TypeOf(lots[k].Offer).Name] {
			one := sharedOffering{node: machineOf(st, lots[k].Offer), price: lots[k].Price, room: st.Room(lots[k].Offer)}
			e.add(one, func(class int) bool { return takes(&lots[k], &q.Classes[class]) })
		}
	}
	e.remaining, e.filled, e.best = make([]int, len(e.classes)), make([]int, len(e.classes)), make([]int, len(e.classes))
	return e
}

func machineOf(st *offering.Stock, offer int) estimatedNode {
	m := estimatedNode{Type: st.TypeOf(offer), Offering: st.Offers[offer].Offering, Labels: st.VariantOf(offer).Labels, Taints: st.PoolOf(offer).Taints}
	for i, name := range st.Dims {
		m.Room = m.Room.With(name, st.Room(offer)[i])
	}
	return m
}

// add makes the lot one that pods may share.
func (e *estimator) add(l sharedOffering, takes func(class int) bool) {
	var all []int
	dense := make([]float64, len(e.classes)) // what a pod costs alone, for the largest share that it takes of anything
	for i := range e.classes {
		if !takes(i) {
			continue
		}
		all = append(all, i)
		share := 0.0
		for r, ask := range e.classes[i].requests {
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

// group returns the pods, each of which must be one of the snapshot's, as what can be estimated.
func (e *estimator) group(pods []cluster.Pod) estimateGroup {
	g := estimateGroup{counts: make([]int, len(e.classes))}
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

// alike reports whether there are as many pods of each class in both, neither of which is without groups.
func samePods(a, b []estimateGroup) bool {
	for c := range a[0].counts {
		if count(a, c) != count(b, c) {
			return false
		}
	}
	return true
}

func count(groups []estimateGroup, class int) int {
	n := 0
	for i := range groups {
		n += groups[i].counts[class]
	}
	return n
}

// size is how many numbers an estimate looks at, about.
func (e *estimator) size() int { return max(len(e.lots), 1) * max(len(e.classes), 1) }

// estimate returns what the pods of all groups cost together, per hour; false if there is nothing to be bought for one of them.
func (e *estimator) estimate(groups []estimateGroup) (catalog.Price, bool) {
	price := e.reset(groups)
	if math.IsInf(price, 1) {
		return 0, false
	}
	for at, saves := e.fillBest(); at >= 0; at, saves = e.fillBest() {
		price -= saves
	}
	return catalog.Price(math.Round(price)), true
}

// begin has the pods of the groups in need of a machine, and returns what each of them alone would cost.
func (e *estimator) reset(groups []estimateGroup) (alone float64) {
	clear(e.remaining)
	for i := range groups {
		for c, n := range groups[i].counts {
			e.remaining[c] += n
		}
		alone += groups[i].alone
	}
	return alone
}

// plannedNodes returns the machines that the price of the pods is of; none if there is nothing to be bought for one of them.
func (e *estimator) plannedNodes(groups []estimateGroup) []estimatedNode {
	if math.IsInf(e.reset(groups), 1) {
		return nil
	}
	var out []estimatedNode
	for at, _ := e.fillBest(); at >= 0; at, _ = e.fillBest() {
		out = append(out, e.lots[at].node)
	}
	for c, n := range e.remaining {
		for range n {
			out = append(out, e.classes[c].cheapest)
		}
	}
	return out
}

// share puts pods onto the machine that saves most, and returns which that is, and what it saves; -1 if none saves anything.
func (e *estimator) fillBest() (at int, most float64) {
	at = -1
	for i := range e.lots {
		for _, order := range e.lots[i].orders {
			if saves := e.fill(&e.lots[i], order) - e.lots[i].price; saves > most {
				at, most = i, saves
				copy(e.best, e.filled)
			}
		}
	}
	if at >= 0 {
		for c, n := range e.best {
			e.remaining[c] -= n
		}
	}
	return at, most
}

// fill puts as many pods onto a machine as there is room for, and returns what they would cost alone.
func (e *estimator) fill(l *sharedOffering, order []int) float64 {
	copy(e.room, l.room)
	clear(e.filled)
	alone := 0.0
	for _, c := range order {
		if e.remaining[c] == 0 {
			continue
		}
		if n := e.classes[c].requests.Times(e.room, e.remaining[c]); n > 0 {
			e.room.Take(e.classes[c].requests, n)
			e.filled[c] = n
			alone += float64(n) * e.classes[c].alone
		}
	}
	return alone
}

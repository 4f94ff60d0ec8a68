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

// estimator estimates the price of new nodes for a few pods in microseconds. It considers room, labels and taints, and
// ignores affinity, anti-affinity and spread. It must not be used concurrently.
//
// The stand-alone price of a pod is the price of the cheapest offering that holds the pod. An estimate starts with one
// node per pod, at the pod's stand-alone price. Then the estimator repeatedly fills a new node of the shared offering
// that saves most, until no offering saves anything. It fills a node with one class of pods after the other, and tries
// two orders of the classes. One is by stand-alone price relative to the pod's share of the node, the other by
// stand-alone price, both highest first.
//
// The result is neither a plan nor a lower bound: the lowest possible price may be lower.
type estimator struct {
	classes []podClass
	shared  []sharedOffering
	byPod   map[string]int // class, by pod ID

	remaining    []int            // by class: number of pods of the estimate without a node
	filled, best []int            // by class: number of pods on the node being filled, and on the best node so far
	room         resources.Vector // free room of the node being filled
}

type podClass struct {
	requests resources.Vector
	alone    float64       // stand-alone price of one pod, in billionths of a dollar per hour; infinite without an offering
	cheapest estimatedNode // the cheapest node for a single pod; zero if no offering holds the pod
}

type sharedOffering struct {
	node   estimatedNode
	price  float64 // in billionths of a dollar per hour
	room   resources.Vector
	orders [2][]int // the classes that the offering accepts, in two orders: see estimator
}

// estimatedNode is a new node at its cheapest offering.
type estimatedNode struct {
	Type     *catalog.Type
	Offering *catalog.Offering
	Labels   requirements.Labels // of its pool
	Taints   []requirements.Taint
	Room     resources.Amounts // for pods
}

// estimateGroup is a set of pods, for example the pods of one node. One estimate can be about several groups.
type estimateGroup struct {
	counts []int   // by class
	alone  float64 // sum of the stand-alone prices of the pods; infinite if a pod has no offering
}

// newEstimator prepares estimates for the pending pods of the snapshot. shared has the names of the instance types
// whose nodes several pods may share. An estimate takes longer with more such types, and only a few types are useful.
func newEstimator(s cluster.Snapshot, market catalog.Market, shared map[string]bool) *estimator {
	queue := offering.Queue(s, market)
	stock := offering.New(s, market, func() *podgroup.Queue { return queue })
	accepts := stock.Accept(queue)
	lots := accepts.Lots(accepts.Hard) // offerings that are equal for every class, without preferences
	e := &estimator{byPod: map[string]int{}, room: make(resources.Vector, len(queue.Dims))}
	takes := func(l *offering.Lot, c *podgroup.Class) bool {
		return accepts.Sets[accepts.Hard[c.Sig]].Has(l.Offer) && c.Ask.Fits(stock.Room(l.Offer))
	}
	for i := range queue.Classes {
		c := &queue.Classes[i]
		class, cheapest := podClass{requests: c.Ask, alone: math.Inf(1)}, -1
		for k := range lots {
			if lots[k].Price < class.alone && takes(&lots[k], c) {
				class.alone, cheapest = lots[k].Price, lots[k].Offer
			}
		}
		if cheapest >= 0 {
			class.cheapest = estimatedNodeOf(stock, cheapest)
		}
		e.classes = append(e.classes, class)
		for _, p := range c.Pods {
			e.byPod[p.ID()] = i
		}
	}
	for k := range lots {
		if shared[stock.TypeOf(lots[k].Offer).Name] {
			offer := sharedOffering{node: estimatedNodeOf(stock, lots[k].Offer), price: lots[k].Price, room: stock.Room(lots[k].Offer)}
			e.add(offer, func(class int) bool { return takes(&lots[k], &queue.Classes[class]) })
		}
	}
	e.remaining, e.filled, e.best = make([]int, len(e.classes)), make([]int, len(e.classes)), make([]int, len(e.classes))
	return e
}

// estimatedNodeOf returns a new node of the offer. offer is an index into the stock's Offers.
func estimatedNodeOf(stock *offering.Stock, offer int) estimatedNode {
	m := estimatedNode{
		Type:     stock.TypeOf(offer),
		Offering: stock.Offers[offer].Offering,
		Labels:   stock.VariantOf(offer).Labels,
		Taints:   stock.PoolOf(offer).Taints,
	}
	for i, name := range stock.Dims {
		m.Room = m.Room.With(name, stock.Room(offer)[i])
	}
	return m
}

// add adds a shared offering. takes reports whether the offering accepts a class.
func (e *estimator) add(o sharedOffering, takes func(class int) bool) {
	var all []int
	// density is, by class, the stand-alone price of a pod divided by its largest share of any resource of the node.
	density := make([]float64, len(e.classes))
	for i := range e.classes {
		if !takes(i) {
			continue
		}
		all = append(all, i)
		share := 0.0
		for r, ask := range e.classes[i].requests {
			if ask > 0 {
				share = max(share, float64(ask)/float64(o.room[r]))
			}
		}
		density[i] = e.classes[i].alone / share
	}
	if len(all) == 0 {
		return
	}
	o.orders = [2][]int{slices.Clone(all), all}
	slices.SortStableFunc(o.orders[0], func(a, b int) int { return cmp.Compare(density[b], density[a]) })
	slices.SortStableFunc(o.orders[1], func(a, b int) int { return cmp.Compare(e.classes[b].alone, e.classes[a].alone) })
	e.shared = append(e.shared, o)
}

// group returns the pods as a group for estimates. A pod that is not in the estimator's snapshot makes the price
// infinite.
func (e *estimator) group(pods []cluster.Pod) estimateGroup {
	g := estimateGroup{counts: make([]int, len(e.classes))}
	for i := range pods {
		c, known := e.byPod[pods[i].ID()]
		if !known {
			g.alone = math.Inf(1)
			continue
		}
		g.counts[c]++
		g.alone += e.classes[c].alone
	}
	return g
}

// samePods reports whether both lists of groups have equal numbers of pods of each class. Neither may be empty.
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

// size returns a measure of the work of one estimate: approximately how many numbers it reads.
func (e *estimator) size() int { return max(len(e.shared), 1) * max(len(e.classes), 1) }

// estimate returns the hourly price of new nodes for the pods of all groups. It returns false if a pod has no offering.
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

// reset marks the pods of the groups as remaining, and returns the sum of their stand-alone prices.
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

// plannedNodes returns the nodes of the estimate; none if a pod has no offering.
func (e *estimator) plannedNodes(groups []estimateGroup) []estimatedNode {
	if math.IsInf(e.reset(groups), 1) {
		return nil
	}
	var out []estimatedNode
	for at, _ := e.fillBest(); at >= 0; at, _ = e.fillBest() {
		out = append(out, e.shared[at].node)
	}
	for c, n := range e.remaining {
		for range n {
			out = append(out, e.classes[c].cheapest)
		}
	}
	return out
}

// fillBest puts remaining pods on a new node of the shared offering that saves most compared to the stand-alone prices
// of the pods. It returns the index of the offering, -1 if no offering saves anything, and the saving.
func (e *estimator) fillBest() (at int, saving float64) {
	at = -1
	for i := range e.shared {
		for _, order := range e.shared[i].orders {
			if saves := e.fill(&e.shared[i], order) - e.shared[i].price; saves > saving {
				at, saving = i, saves
				copy(e.best, e.filled)
			}
		}
	}
	if at >= 0 {
		for c, n := range e.best {
			e.remaining[c] -= n
		}
	}
	return at, saving
}

// fill fills a node of the offering with remaining pods, class by class, and sets filled. It returns the sum of the
// stand-alone prices of these pods.
func (e *estimator) fill(o *sharedOffering, order []int) float64 {
	copy(e.room, o.room)
	clear(e.filled)
	alone := 0.0
	for _, c := range order {
		if e.remaining[c] == 0 {
			continue
		}
		if n := e.classes[c].requests.FitCount(e.room, e.remaining[c]); n > 0 {
			e.room.SubtractTimes(e.classes[c].requests, n)
			e.filled[c] = n
			alone += float64(n) * e.classes[c].alone
		}
	}
	return alone
}

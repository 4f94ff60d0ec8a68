package consolidation

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// arriving is in which order pods come that are moved together.
type evictionOrder int

const (
	// worst is small ones before large ones: as each comes to the emptiest node, that is the order in which fewest find a place.
	smallFirst evictionOrder = iota
	// usual is about the order in which package drain lets them go, large ones first, and replicas of a StatefulSet last, which are made anew
	// only when the old ones have ended. Nobody knows it exactly, so all must find their places in several such orders. Few come in any order.
	drainOrder
	// inTurn is in an order that is looked for, one after the other, each when the one before has its place.
	oneAtATime
)

const (
	drainOrders      = 3   // that are usual
	drainJitter      = 0.2 // how much larger than it is a pod may be taken for: by a fifth
	maxUnorderedPods = 8

	maxSequences   = 24  // orders that are tried
	sequenceJitter = 2.0 // how much larger a pod may be taken for in these
)

// arrival is a pod that comes, and where it is planned.
type incomingPod struct {
	pod      *cluster.Pod
	from     string // the node that it leaves
	group    string // see lost
	planned  string
	node     int     // the seat that it was given
	priority float64 // the higher the sooner
}

// takeIf is take if all places that the pods get are right. Pods that have only one place come first.
func (b *simulation) scheduleIf(arrivals []incomingPod, right func(*simNode) bool) *cluster.Pod {
	if b.order == oneAtATime {
		return b.scheduleOneAtATime(arrivals, right)
	}
	for n := range b.orders(len(arrivals)) {
		if n > 0 {
			b.unbind(arrivals)
		}
		b.sort(arrivals, n)
		if p := b.bindAll(arrivals, right); p != nil {
			return p
		}
	}
	return nil
}

// takeInTurn is takeIf with the first order that does, in which the pods are then.
func (b *simulation) scheduleOneAtATime(arrivals []incomingPod, right func(*simNode) bool) (lost *cluster.Pod) {
	for n := range maxSequences {
		for i := range arrivals {
			a := &arrivals[i]
			a.priority = a.pod.Requests.Bulk() * (1 + sequenceJitter*pseudoRandom(a.pod.ID(), n))
		}
		slices.SortFunc(arrivals, compareIncoming)
		if lost = b.bindAll(arrivals, right); lost == nil {
			break
		}
	}
	return lost
}

// tries is in how many orders pods may be dealt out until it is known that they find no places.
func (b *simulation) tries() int {
	if b.order == oneAtATime {
		return maxSequences
	}
	return 1
}

// orders is in how many orders so many pods may come.
func (b *simulation) orders(pods int) int {
	if b.order == smallFirst || pods <= maxUnorderedPods {
		return 1
	}
	return drainOrders
}

// line puts the pods into the order of that number.
func (b *simulation) sort(arrivals []incomingPod, n int) {
	if b.orders(len(arrivals)) > 1 {
		sortAsDrained(arrivals, n)
		return
	}
	slices.SortStableFunc(arrivals, func(a, b incomingPod) int {
		return cmp.Or(rank(a.pod)-rank(b.pod), cmp.Compare(a.pod.Requests.CPU, b.pod.Requests.CPU), cmp.Compare(a.pod.Requests.Memory, b.pod.Requests.Memory))
	})
}

// lines are the pods in each of the orders in which they may come.
func (b *simulation) allOrders(arrivals []incomingPod) [][]incomingPod {
	out := make([][]incomingPod, b.orders(len(arrivals)))
	for n := range out {
		out[n] = slices.Clone(arrivals)
		b.sort(out[n], n)
	}
	return out
}

// mix puts the pods into the usual order of that number: the first is that in which all nodes let go of theirs at once, in the others
// each pod may come somewhat sooner.
func sortAsDrained(arrivals []incomingPod, n int) {
	for i := range arrivals {
		p := arrivals[i].pod
		arrivals[i].priority = p.Requests.Bulk()
		if n > 0 {
			arrivals[i].priority *= 1 + drainJitter*pseudoRandom(p.ID(), n)
		}
	}
	slices.SortFunc(arrivals, compareIncoming)
	if n > 0 {
		return
	}
	count := map[string]int{}
	for i := range arrivals {
		a := &arrivals[i]
		a.priority = float64(-count[a.from])
		count[a.from]++
	}
	slices.SortFunc(arrivals, compareIncoming)
}

// soonest orders pods by when they come.
func compareIncoming(a, b incomingPod) int {
	return cmp.Or(rank(a.pod)-rank(b.pod), replacedLate(a.pod)-replacedLate(b.pod), cmp.Compare(b.priority, a.priority), cmp.Compare(a.from, b.from), byID(*a.pod, *b.pod))
}

// chance is a number from 0 to 1 that is another for each pod in each order, and always the same.
func pseudoRandom(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte(id), uint64(n)))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// rank is lower for pods that have only one place.
func rank(p *cluster.Pod) int {
	if isConstrained(p) {
		return 0
	}
	return 1
}

// late is higher for pods that come when others are there already.
func replacedLate(p *cluster.Pod) int {
	if strings.HasPrefix(p.Owner, "StatefulSet/") {
		return 1
	}
	return 0
}

// seatAll puts the pods on the board one after the other. It returns the first that finds no place, and then leaves the board as it was.
func (b *simulation) bindAll(arrivals []incomingPod, right func(*simNode) bool) *cluster.Pod {
	for i := range arrivals {
		if !b.bind(&arrivals[i], right) {
			b.unbind(arrivals[:i])
			return arrivals[i].pod
		}
	}
	return nil
}

// sit gives the pod its seat, if there is one, and it is right.
func (b *simulation) bind(a *incomingPod, right func(*simNode) bool) bool {
	at := b.nodeFor(a)
	if at < 0 || right != nil && !right(&b.nodes[at]) {
		return false
	}
	b.setFree(at, b.nodes[at].free.Sub(a.pod.Requests))
	b.nodes[at].newPods++
	a.node = at
	return true
}

// leave takes the pods off the board again.
func (b *simulation) unbind(arrivals []incomingPod) {
	for i := range arrivals {
		at := arrivals[i].node
		b.setFree(at, b.nodes[at].free.Add(arrivals[i].pod.Requests))
		b.nodes[at].newPods--
	}
}

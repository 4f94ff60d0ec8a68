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
type arriving int

const (
	// worst is small ones before large ones: as each comes to the emptiest node, that is the order in which fewest find a place.
	worst arriving = iota
	// usual is about the order in which package drain lets them go, large ones first, and replicas of a StatefulSet last, which are made anew
	// only when the old ones have ended. Nobody knows it exactly, so all must find their places in several such orders. Few come in any order.
	usual
	// inTurn is in an order that is looked for, one after the other, each when the one before has its place.
	inTurn
)

const (
	orders  = 3   // that are usual
	jitter  = 0.2 // how much larger than it is a pod may be taken for: by a fifth
	mostFew = 8

	mostTurns = 24  // orders that are tried
	anyJitter = 2.0 // how much larger a pod may be taken for in these
)

// arrival is a pod that comes, and where it is planned.
type arrival struct {
	pod   *cluster.Pod
	from  string // the node that it leaves
	group string // see lost
	plan  string
	got   int     // the seat that it was given
	turn  float64 // the higher the sooner
}

// takeIf is take if all places that the pods get are right. Pods that have only one place come first.
func (b *board) takeIf(arrivals []arrival, right func(*seat) bool) *cluster.Pod {
	if b.arriving == inTurn {
		return b.takeInTurn(arrivals, right)
	}
	for n := range b.orders(len(arrivals)) {
		if n > 0 {
			b.leave(arrivals)
		}
		b.line(arrivals, n)
		if p := b.seatAll(arrivals, right); p != nil {
			return p
		}
	}
	return nil
}

// takeInTurn is takeIf with the first order that does, in which the pods are then.
func (b *board) takeInTurn(arrivals []arrival, right func(*seat) bool) (lost *cluster.Pod) {
	for n := range mostTurns {
		for i := range arrivals {
			a := &arrivals[i]
			a.turn = a.pod.Requests.Bulk() * (1 + anyJitter*chance(a.pod.ID(), n))
		}
		slices.SortFunc(arrivals, soonest)
		if lost = b.seatAll(arrivals, right); lost == nil {
			break
		}
	}
	return lost
}

// tries is in how many orders pods may be dealt out until it is known that they find no places.
func (b *board) tries() int {
	if b.arriving == inTurn {
		return mostTurns
	}
	return 1
}

// orders is in how many orders so many pods may come.
func (b *board) orders(pods int) int {
	if b.arriving == worst || pods <= mostFew {
		return 1
	}
	return orders
}

// line puts the pods into the order of that number.
func (b *board) line(arrivals []arrival, n int) {
	if b.orders(len(arrivals)) > 1 {
		mix(arrivals, n)
		return
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(rank(a.pod)-rank(b.pod), cmp.Compare(a.pod.Requests.CPU, b.pod.Requests.CPU), cmp.Compare(a.pod.Requests.Memory, b.pod.Requests.Memory))
	})
}

// lines are the pods in each of the orders in which they may come.
func (b *board) lines(arrivals []arrival) [][]arrival {
	out := make([][]arrival, b.orders(len(arrivals)))
	for n := range out {
		out[n] = slices.Clone(arrivals)
		b.line(out[n], n)
	}
	return out
}

// mix puts the pods into the usual order of that number: the first is that in which all nodes let go of theirs at once, in the others
// each pod may come somewhat sooner.
func mix(arrivals []arrival, n int) {
	for i := range arrivals {
		p := arrivals[i].pod
		arrivals[i].turn = p.Requests.Bulk()
		if n > 0 {
			arrivals[i].turn *= 1 + jitter*chance(p.ID(), n)
		}
	}
	slices.SortFunc(arrivals, soonest)
	if n > 0 {
		return
	}
	count := map[string]int{}
	for i := range arrivals {
		a := &arrivals[i]
		a.turn = float64(-count[a.from])
		count[a.from]++
	}
	slices.SortFunc(arrivals, soonest)
}

// soonest orders pods by when they come.
func soonest(a, b arrival) int {
	return cmp.Or(rank(a.pod)-rank(b.pod), late(a.pod)-late(b.pod), cmp.Compare(b.turn, a.turn), cmp.Compare(a.from, b.from), byID(*a.pod, *b.pod))
}

// chance is a number from 0 to 1 that is another for each pod in each order, and always the same.
func chance(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte(id), uint64(n)))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// rank is lower for pods that have only one place.
func rank(p *cluster.Pod) int {
	if isTied(p) {
		return 0
	}
	return 1
}

// late is higher for pods that come when others are there already.
func late(p *cluster.Pod) int {
	if strings.HasPrefix(p.Owner, "StatefulSet/") {
		return 1
	}
	return 0
}

// seatAll puts the pods on the board one after the other. It returns the first that finds no place, and then leaves the board as it was.
func (b *board) seatAll(arrivals []arrival, right func(*seat) bool) *cluster.Pod {
	for i := range arrivals {
		if !b.sit(&arrivals[i], right) {
			b.leave(arrivals[:i])
			return arrivals[i].pod
		}
	}
	return nil
}

// sit gives the pod its seat, if there is one, and it is right.
func (b *board) sit(a *arrival, right func(*seat) bool) bool {
	at := b.place(a)
	if at < 0 || right != nil && !right(&b.seats[at]) {
		return false
	}
	b.set(at, b.seats[at].free.Sub(a.pod.Requests))
	b.seats[at].pods++
	a.got = at
	return true
}

// leave takes the pods off the board again.
func (b *board) leave(arrivals []arrival) {
	for i := range arrivals {
		at := arrivals[i].got
		b.set(at, b.seats[at].free.Add(arrivals[i].pod.Requests))
		b.seats[at].pods--
	}
}

package packing

import (
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
)

// lot is a group of offerings that the pods to place do not distinguish, with its key in lotQueue.
// Only the cheapest offering of a lot is compared.
type lot struct {
	offering.Lot
	key float64 // lower limit of the price per value of a node of the lot; the value is the total dual price of its pods
}

// lotQueue is a heap of lots by key, then price, then number of the offering.
type lotQueue []lot

func (h lotQueue) Len() int { return len(h) }

func (h lotQueue) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.Price != b.Price:
		return a.Price < b.Price
	}
	return a.Offer < b.Offer
}

func (h lotQueue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds x, a lot, at the end, for container/heap.
func (h *lotQueue) Push(x any) { *h = append(*h, x.(lot)) }

// Pop removes the last lot, for container/heap.
func (h *lotQueue) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// lotsFor returns the lots that the classes accept. setOf returns the number of a class's accept set.
func lotsFor(pr *pending.Problem, classes []int, setOf func(class int) int) []lot {
	sets := make([]int, len(classes))
	for i, c := range classes {
		sets[i] = setOf(c)
	}
	lots := pr.Accepts.Lots(sets)
	out := make([]lot, len(lots))
	for i := range lots {
		out[i].Lot = lots[i]
	}
	return out
}

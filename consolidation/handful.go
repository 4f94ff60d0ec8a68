package consolidation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/estimate"
)

// How far handfuls looks.
const (
	fewPods       = 12         // of a node that has few
	mostEach      = 256        // nodes of which each is looked at with each
	mostThirds    = 100        // pairs that are looked at with each
	mostEstimated = 40_000_000 // numbers for pairs, and as many for threes: some tenths of a second
	mostWagers    = 48         // plans that are made
	roomier       = 4          // percent that pods are taken for larger where they find no places otherwise
)

// handful is up to three nodes that go together.
type handful struct {
	nodes []int
	pods  []estimate.Group // by node
	price catalog.Price    // of the nodes
	cost  float64
	worth float64 // about what is saved, for what it takes to move the pods
}

// handfuls adds moves of up to three nodes that have few pods. These are as many large pieces, and what is left free beside them depends on which of
// them came together, so that nodes of other sizes, or one less, may do for those of some nodes. Only very few of all handfuls are worth
// it, of far too many for plans: what each may come to is estimated, and of those that may be worth it, the best first, it is looked whether
// kube-scheduler would find places for the pods on the machines of the estimate. Hardly one in a hundred is left, and planned for.
func (f *further) handfuls(order []int) {
	all, e := f.estimated(f.fewPods(order))
	slices.SortStableFunc(all, byHandful)
	var failed []*handful
	plans := 0
	for i, deals := 0, 0; i < len(all) && plans < mostWagers && deals < mostDeals; i++ {
		h := &all[i]
		if slices.ContainsFunc(failed, h.isLike) || !f.mayGo(f.names(h.nodes)) {
			continue
		}
		deals += f.podsOf(h.nodes) * len(f.board.seats)
		if !f.wouldFit(h.nodes, e.Machines(h.pods)) {
			continue
		}
		plans++
		if f.try(h.nodes, ease{}) == 0 && f.try(h.nodes, ease{pods: roomier}) == 0 {
			failed = append(failed, h)
		}
	}
}

func byHandful(a, b handful) int { return cmp.Compare(b.worth, a.worth) }

// isLike reports whether both have the same pods at the same price: where one comes to nothing, so does the other.
func (h *handful) isLike(other *handful) bool {
	return h.price == other.price && estimate.Alike(h.pods, other.pods)
}

// fewPods returns the first of the order that have few pods, and may go.
func (f *further) fewPods(order []int) []int {
	var out []int
	for _, c := range order {
		n := f.candidates[c].node
		if len(n.Pods) > 0 && len(n.Pods) <= fewPods && len(out) < mostEach && !f.stays(c) && f.room(n.Pool) > 0 && !slices.ContainsFunc(n.Pods, isBound) {
			out = append(out, c)
		}
	}
	return out
}

// estimated returns the handfuls of the nodes that may be worth it: each node, each with each, and of those pairs that save most each with each
// once more. Where an estimate takes long, only the first of the nodes are looked at.
func (f *further) estimated(nodes []int) ([]handful, *estimate.Estimator) {
	if len(nodes) == 0 {
		return nil, nil
	}
	e := f.estimator(nodes)
	most := mostEstimated / e.Size()
	nodes = nodes[:min(len(nodes), int(math.Sqrt(float64(2*most))))]
	groups := make(map[int]estimate.Group, len(nodes))
	for _, c := range nodes {
		groups[c] = e.Group(f.candidates[c].node.Pods)
	}
	var out, pairs []handful
	var its [3]estimate.Group
	look := func(group ...int) {
		h := handful{pods: its[:len(group)]}
		for i, c := range group {
			its[i] = groups[c]
			h.price, h.cost = h.price+f.candidates[c].Price, h.cost+f.candidates[c].Cost
		}
		price, ok := e.Price(h.pods)
		if !ok || price >= h.price {
			return
		}
		h.nodes, h.pods, h.worth = slices.Clone(group), slices.Clone(h.pods), (h.price-price).Dollars()/(h.cost+1)
		if len(group) == 2 {
			pairs = append(pairs, h)
		}
		if f.share(h.price-price) >= f.bar*f.effort(h.cost) {
			out = append(out, h)
		}
	}
	for i, c := range nodes {
		look(c)
		for _, with := range nodes[:i] {
			look(with, c)
		}
	}
	slices.SortStableFunc(pairs, byHandful)
	for _, pair := range pairs[:min(len(pairs), mostThirds, most/max(len(nodes), 1))] {
		for _, c := range nodes {
			if !slices.Contains(pair.nodes, c) {
				look(pair.nodes[0], pair.nodes[1], c)
			}
		}
	}
	return out, e
}

// estimator knows the pods of the nodes, and lets them share machines of the types that these are, or that would be bought if all nodes went.
func (f *further) estimator(nodes []int) *estimate.Estimator {
	types, gone := map[string]bool{}, make([]bool, len(f.candidates))
	for _, name := range f.bestTypes {
		types[name] = true
	}
	for _, c := range nodes {
		types[f.candidates[c].node.Labels[catalog.LabelInstanceType]] = true
		gone[c] = true
	}
	return estimate.New(f.without(gone), f.in.Market, types)
}

// wouldFit reports whether kube-scheduler would find places for the pods of the nodes on those machines, and on what other nodes have left.
func (f *further) wouldFit(nodes []int, machines []estimate.Machine) bool {
	before := len(f.board.seats)
	var pods []arrival
	for _, c := range nodes {
		n := f.candidates[c].node
		for i := range n.Pods {
			pods = append(pods, arrival{pod: &n.Pods[i], from: n.Name})
		}
	}
	f.shut(nodes, true)
	for i := range machines {
		f.board.add(fmt.Sprint("~", i), seatLike(&machines[i]))
	}
	fits := f.board.take(pods) == nil
	if fits {
		f.board.leave(pods)
	}
	f.board.cut(before)
	f.shut(nodes, false)
	return fits
}

func seatLike(m *estimate.Machine) seat {
	labels := constraint.Labels{}
	maps.Copy(labels, m.Type.Labels)
	maps.Copy(labels, m.Labels)
	labels[catalog.LabelZone], labels[catalog.LabelCapacityType] = m.Offering.Zone, m.Offering.CapacityType
	return seat{bought: true, labels: labels, taints: m.Taints, all: m.Type.Allocatable, free: m.Room}
}

func (s *scene) podsOf(candidates []int) int {
	n := 0
	for _, c := range candidates {
		n += len(s.candidates[c].node.Pods)
	}
	return n
}

func (s *scene) names(candidates []int) []string {
	out := make([]string, len(candidates))
	for i, c := range candidates {
		out[i] = s.candidates[c].node.Name
	}
	return out
}

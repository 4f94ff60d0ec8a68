package consolidation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/disruption/estimate"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// How far handfuls looks.
const (
	mostNodes     = 3          // of a handful
	fewPods       = 12         // of a node that has few
	mostEach      = 256        // nodes of which each is looked at with each
	mostThirds    = 100        // pairs that are looked at with each
	mostEstimated = 40_000_000 // numbers for pairs, and as many for threes: some tenths of a second
	mostWagers    = 48         // plans that are made
	fewWagers     = 4          // and where there are many nodes, as each plan takes longer then
	wagerNodes    = 10_000     // nodes, counted once for each plan, between the two
	roomier       = 4          // percent that pods are taken for larger where they find no places otherwise
)

// handful is up to three nodes that go together.
type handful struct {
	nodes []int
	pods  []estimate.Group // by node
	price catalog.Price    // of the nodes
	cost  float64

	saving catalog.Price // about
	worth  float64       // that, for what it takes to move the pods
}

// handfuls adds moves of up to three nodes that have few pods. These are as many large pieces, and what is left free beside them depends on which of
// them came together, so that nodes of other sizes, or one less, may do for those of some nodes. Only very few of all handfuls are worth
// it, of far too many for plans: what each may come to is estimated, and of those that may be worth it, the best first, it is looked whether
// kube-scheduler would find places for the pods on the machines of the estimate. Hardly one in a hundred is left, and planned for.
func (f *further) handfuls(order []int) {
	nodes := f.fewPods(order)
	if len(nodes) == 0 {
		return
	}
	l := f.s.newLens(nodes)
	all, pairs := l.pairs()
	if f.wager(l, all) == 0 {
		f.wager(l, l.threes(pairs))
	}
}

// wager tries the handfuls, the best first, keeps those that are worth it, and returns how many that were.
func (f *further) wager(l *lens, all []handful) (kept int) {
	slices.SortStableFunc(all, byHandful)
	var failed []*handful
	left := f.p.perNode(wagerNodes, fewWagers, mostWagers)
	for i, deals := 0, 0; i < len(all) && left > 0 && deals < mostDeals; i++ {
		h := &all[i]
		if slices.ContainsFunc(failed, h.isLike) || !f.mayGo(f.p.names(h.nodes)) {
			continue
		}
		deals += f.p.podsOf(h.nodes) * len(f.board.seats) * f.board.tries()
		if !f.wouldFit(h.nodes, l.estimator.Machines(h.pods)) {
			continue
		}
		left--
		if f.try(h.nodes, ease{}) == 0 && f.try(h.nodes, ease{pods: roomier}) == 0 {
			failed = append(failed, h)
		} else {
			if kept++; f.board.arriving == inTurn {
				break
			}
		}
	}
	return kept
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
		n := f.p.candidates[c].node
		if len(n.Pods) > 0 && len(n.Pods) <= fewPods && len(out) < mostEach && !f.stays(c) && f.room(n.Pool) > 0 && !slices.ContainsFunc(n.Pods, f.isOut) {
			out = append(out, c)
		}
	}
	return out
}

// isOut reports whether nodes with such a pod are not looked at.
func (f *further) isOut(p cluster.Pod) bool {
	return isBound(p) || f.board.arriving == inTurn && !takesTurns(&p)
}

// systemCritical is the least priority of what a cluster cannot do without: users' classes have at most half of it.
const systemCritical = 2_000_000_000

// takesTurns reports whether the pod leaves when it is told to, and its successor comes at once under another name, as those of a ReplicaSet do: others
// make theirs only when the old one has ended. Pods that are critical leave after all others of their node, those that tolerate that it leaves never.
func takesTurns(p *cluster.Pod) bool {
	leaving := requirements.Taint{Key: karpenterDisrupted, Effect: requirements.NoSchedule}
	return (p.Owner == "" || strings.HasPrefix(p.Owner, "ReplicaSet/")) && p.Priority < systemCritical && !requirements.Tolerated(leaving, p.Tolerations)
}

// karpenterDisrupted is the taint of nodes that leave.
const karpenterDisrupted = "karpenter.sh/disrupted"

// lens is what handfuls are estimated with.
type lens struct {
	s         *scene
	p         *problem
	estimator *estimate.Estimator
	nodes     []int
	pods      map[int]estimate.Group // by node
	most      int                    // estimates
}

// newLens knows the pods of the nodes, and lets them share machines of the types that these are, or that would be bought if all nodes went. Where an
// estimate takes long, only the first of the nodes are looked at.
func (s *scene) newLens(nodes []int) *lens {
	types, gone := map[string]bool{}, make([]bool, len(s.p.candidates))
	for _, name := range s.bestTypes {
		types[name] = true
	}
	for i := range s.p.candidates {
		if n := s.p.candidates[i].node; len(n.Pods) <= fewPods {
			types[n.Labels[catalog.LabelInstanceType]] = true
		}
	}
	for _, c := range nodes {
		gone[c] = true
	}
	l := &lens{s: s, p: s.p, estimator: estimate.New(s.without(gone), s.p.in.Market, types), pods: map[int]estimate.Group{}}
	l.most = mostEstimated / l.estimator.Size()
	l.nodes = nodes[:min(len(nodes), int(math.Sqrt(float64(2*l.most))))]
	for _, c := range l.nodes {
		l.pods[c] = l.estimator.Group(s.p.candidates[c].node.Pods)
	}
	return l
}

// pairs returns each node, and each with each, as far as it may be worth it; and all pairs that save anything.
func (l *lens) pairs() (worth, saving []handful) {
	for i, c := range l.nodes {
		if h, ok := l.look(c); ok && l.isWager(&h) {
			worth = append(worth, h)
		}
		for _, with := range l.nodes[:i] {
			if h, ok := l.look(with, c); ok {
				saving = append(saving, h)
			}
		}
	}
	for i := range saving {
		if l.isWager(&saving[i]) {
			worth = append(worth, saving[i])
		}
	}
	return worth, saving
}

// threes returns those of the pairs that save most, each with each other node, as far as it may be worth it.
func (l *lens) threes(pairs []handful) []handful {
	slices.SortStableFunc(pairs, byHandful)
	var out []handful
	for _, pair := range pairs[:min(len(pairs), mostThirds, l.most/max(len(l.nodes), 1))] {
		for _, c := range l.nodes {
			if slices.Contains(pair.nodes, c) {
				continue
			}
			if h, ok := l.look(pair.nodes[0], pair.nodes[1], c); ok && l.isWager(&h) {
				out = append(out, h)
			}
		}
	}
	return out
}

// look estimates what the nodes may come to together, and reports whether that saves anything.
func (l *lens) look(nodes ...int) (handful, bool) {
	h := handful{}
	var its [mostNodes]estimate.Group
	for i, c := range nodes {
		its[i] = l.pods[c]
		h.price, h.cost = h.price+l.p.candidates[c].Price, h.cost+l.p.candidates[c].Cost
	}
	price, ok := l.estimator.Price(its[:len(nodes)])
	if !ok || price >= h.price {
		return h, false
	}
	h.saving, h.worth = h.price-price, (h.price-price).Dollars()/(h.cost+1)
	h.nodes, h.pods = slices.Clone(nodes), slices.Clone(its[:len(nodes)])
	return h, true
}

// isWager reports whether the handful may be worth as much as the bar asks for.
func (l *lens) isWager(h *handful) bool {
	bar := l.s.bar
	if l.s.isLow() {
		bar = l.p.usual()
	}
	return l.p.share(h.saving) >= bar*l.p.effort(h.cost)
}

// wouldFit reports whether kube-scheduler would find places for the pods of the nodes on those machines, and on what other nodes have left.
func (f *further) wouldFit(nodes []int, machines []estimate.Machine) bool {
	before := len(f.board.seats)
	var pods []arrival
	for _, c := range nodes {
		n := f.p.candidates[c].node
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
	return seat{bought: true, labels: labelsOf(m.Type, m.Labels, m.Offering.Zone, m.Offering.CapacityType), taints: m.Taints, all: m.Type.Allocatable, free: m.Room}
}

func (p *problem) podsOf(candidates []int) int {
	n := 0
	for _, c := range candidates {
		n += len(p.candidates[c].node.Pods)
	}
	return n
}

func (p *problem) names(candidates []int) []string {
	out := make([]string, len(candidates))
	for i, c := range candidates {
		out[i] = p.candidates[c].node.Name
	}
	return out
}

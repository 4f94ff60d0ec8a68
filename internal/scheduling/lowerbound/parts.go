package lowerbound

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// part is a connected component of the problem: demands that share offers, directly or through other demands.
type part struct {
	problem       *Problem
	classes       []class
	kinds         []kind
	holders       [][]int   // by class: the kinds that can hold a pod of the class
	scratchMemory []float64 // reusable memory; see scratch
}

// class is a set of pods that the bound does not distinguish: they have the same requests,
// the same set of offers and the same groups.
type class struct {
	demands []int     // indexes into Problem.Demands
	set     int       // as Demand.Set
	count   int       // number of pods
	ask     []float64 // by resource
	groups  []int     // as Demand.Groups
	shared  int       // the group with the most classes, among its groups with several classes; -1: none
	cap     int       // maximum number of its pods on one instance, by its groups and its count
}

// kind is an offer, and the other offers that it dominates.
type kind struct {
	offers       []int // indices into Problem.Offers: itself, then the dominated offers (at most its room, at least its price)
	price        float64
	room         []float64
	classes      []int     // the classes whose pods fit on it, ascending
	inRelaxation bool      // whether no other kind dominates the kind for fractional pods; see findLeads
	rates        []float64 // by resource: the price of the whole room, from the last ascent or relaxation
}

// maxPods returns the maximum number of pods of the class on one instance, if the instance has no other pods.
func (k *kind) maxPods(c *class) int {
	n := float64(c.cap)
	for r, a := range c.ask {
		if a > 0 {
			n = min(n, math.Floor(k.room[r]/a))
		}
	}
	return int(n)
}

// holds reports whether an instance can hold a pod of the class.
func (k *kind) holds(c *class) bool {
	for r, a := range c.ask {
		if a > k.room[r] {
			return false
		}
	}
	return c.cap > 0
}

// parts splits the problem into parts that share no offer, in the order of
// their first sets. Pods that fit no offer, or that fit an offer with a price of 0, are in no part.
func parts(p Problem) []*part {
	owner := p.components()
	byOwner := map[int]*part{}
	var out []*part
	for s := range p.Sets {
		if owner[s] >= 0 && byOwner[owner[s]] == nil {
			q := &part{problem: &p}
			byOwner[owner[s]] = q
			out = append(out, q)
		}
	}
	for _, c := range p.newClasses() {
		if q := byOwner[owner[c.set]]; q != nil {
			q.classes = append(q.classes, c)
		}
	}
	for _, q := range out {
		q.findKinds()
	}
	return slices.DeleteFunc(out, func(q *part) bool { return len(q.classes) == 0 })
}

// components returns, by set, a number that is equal for sets that are connected through shared offers: the index of
// the first of these sets. It is -1 for empty sets and sets without pods.
func (p *Problem) components() []int {
	owner := make([]int, len(p.Sets))
	for s := range owner {
		owner[s] = -1
	}
	for i := range p.Demands {
		if s := p.Demands[i].Set; p.Demands[i].Count > 0 && len(p.Sets[s]) > 0 {
			owner[s] = s
		}
	}
	root := func(s int) int { // the first set found so far that s is connected to
		for owner[s] != s {
			s = owner[s]
		}
		return s
	}
	first := make([]int, len(p.Offers)) // by offer: the first set that has it, plus one
	for s, offers := range p.Sets {
		if owner[s] < 0 {
			continue
		}
		for _, o := range offers {
			if first[o] == 0 {
				first[o] = s + 1
				continue
			}
			a, b := root(first[o]-1), root(s)
			owner[max(a, b)] = min(a, b)
		}
	}
	for s := range owner {
		if owner[s] >= 0 {
			owner[s] = root(s)
		}
	}
	return owner
}

func (p *Problem) newClasses() []class {
	var out []class
	members := make([]int, len(p.Caps)) // by group: number of its classes
	seen := map[string]int{}
	var key []byte
	for i := range p.Demands {
		d := &p.Demands[i]
		if d.Count <= 0 {
			continue
		}
		key = strconv.AppendInt(key[:0], int64(d.Set), 36)
		for _, a := range d.Ask {
			key = strconv.AppendInt(append(key, ' '), max(a, 0), 36)
		}
		for _, g := range d.Groups {
			key = strconv.AppendInt(append(key, '/'), int64(g), 36)
		}
		at, ok := seen[string(key)]
		if !ok {
			at = len(out)
			seen[string(key)] = at
			c := class{set: d.Set, groups: d.Groups, shared: -1, cap: math.MaxInt32}
			for _, a := range d.Ask {
				c.ask = append(c.ask, float64(max(a, 0)))
			}
			for _, g := range d.Groups {
				c.cap = min(c.cap, max(p.Caps[g], 0))
				members[g]++
			}
			out = append(out, c)
		}
		out[at].demands = append(out[at].demands, i)
		out[at].count += d.Count
	}
	for i := range out {
		c := &out[i]
		c.cap = min(c.cap, c.count)
		for _, g := range c.groups {
			if members[g] > 1 && (c.shared < 0 || members[g] > members[c.shared]) {
				c.shared = g
			}
		}
	}
	return out
}

// findKinds sets the kinds of the part and the holders of its classes. It drops the classes that fit no kind, or that
// fit a kind with price 0.
func (p *part) findKinds() {
	bySet := map[int][]int{}
	for i := range p.classes {
		bySet[p.classes[i].set] = append(bySet[p.classes[i].set], i)
	}
	sets := make([][]int, len(p.problem.Offers)) // by offer: its sets, ascending
	for s, offers := range p.problem.Sets {
		if bySet[s] == nil {
			continue
		}
		for _, o := range offers {
			sets[o] = append(sets[o], s)
		}
	}
	p.kinds = p.undominated(sets)
	parallel.Each(len(p.kinds), func(i int) {
		k := &p.kinds[i]
		in := make([]bool, len(p.problem.Sets))
		n := 0
		for _, s := range sets[k.offers[0]] {
			in[s] = true
			n += len(bySet[s])
		}
		k.classes = make([]int, 0, n)
		for c := range p.classes {
			if in[p.classes[c].set] && k.holds(&p.classes[c]) {
				k.classes = append(k.classes, c)
			}
		}
	})
	p.dropClasses()
	p.findLeads(sets)
}

// dropClasses removes the classes that fit no kind, and the classes that fit a kind with price 0. It then removes the
// kinds without a class and the kinds with price 0.
func (p *part) dropClasses() {
	found := make([]int, len(p.classes)) // by class: number of kinds that hold it
	free := make([]bool, len(p.classes)) // by class: whether a kind with price 0 holds it
	for i := range p.kinds {
		k := &p.kinds[i]
		for _, c := range k.classes {
			found[c]++
		}
		if k.price > 0 {
			continue
		}
		for _, c := range k.classes {
			free[c] = true
		}
	}
	number := make([]int, len(p.classes)) // by class: its new number, or -1
	kept, held := p.classes[:0], 0
	for i, c := range p.classes {
		number[i] = -1
		if found[i] > 0 && !free[i] {
			number[i], kept, held = len(kept), append(kept, c), held+found[i]
		}
	}
	cells := make([]int, held) // memory for all lists of holders
	for i := range number {
		if number[i] >= 0 {
			p.holders, cells = append(p.holders, cells[:0:found[i]]), cells[found[i]:]
		}
	}
	keepsAll := len(kept) == len(p.classes)
	p.classes = kept
	p.kinds = slices.DeleteFunc(p.kinds, func(k kind) bool { return k.price <= 0 })
	for i := range p.kinds {
		if k := &p.kinds[i]; !keepsAll {
			k.classes = slices.DeleteFunc(k.classes, func(c int) bool { return number[c] < 0 })
			for n, c := range k.classes {
				k.classes[n] = number[c]
			}
		}
	}
	p.kinds = slices.DeleteFunc(p.kinds, func(k kind) bool { return len(k.classes) == 0 })
	for i := range p.kinds {
		for _, c := range p.kinds[i].classes {
			p.holders[c] = append(p.holders[c], i)
		}
	}
}

// undominated returns a kind for each offer that no other offer dominates, cheapest first. sets has, by offer, its
// sets, ascending. An offer dominates another offer if it is in all sets of the other, has at least the room of the
// other and costs at most as much. Until the ascent, the rates divide the price equally among the resources.
func (p *part) undominated(sets [][]int) []kind {
	offers := p.problem.Offers
	order := make([]int, 0, len(sets))
	for o, in := range sets {
		if in != nil {
			order = append(order, o)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(max(offers[a].Price, 0), max(offers[b].Price, 0)),
			slices.Compare(offers[b].Room, offers[a].Room), cmp.Compare(a, b))
	})
	var out []kind
	for _, o := range order {
		dominated := false
		for i := 0; i < len(out) && !dominated; i++ {
			better := out[i].offers[0]
			if dominated = covers(offers[better].Room, offers[o].Room, 1) && contains(sets[better], sets[o]); dominated {
				out[i].offers = append(out[i].offers, o)
			}
		}
		if dominated {
			continue
		}
		room := make([]float64, 2*len(offers[o].Room))
		k := kind{offers: []int{o}, price: float64(max(offers[o].Price, 0))}
		k.room, k.rates = room[:len(room)/2:len(room)/2], room[len(room)/2:]
		for r, n := range offers[o].Room {
			k.room[r] = float64(max(n, 0))
			k.rates[r] = k.price / float64(len(k.rates))
		}
		out = append(out, k)
	}
	return out
}

// findLeads sets inRelaxation of the kinds that no other kind dominates for fractional pods. A kind dominates another
// kind if its node has the room of n nodes of the other and costs at most as much as these n nodes. If a pod of a group
// fits the other kind, n is 1, because two nodes hold twice as many pods of the group.
func (p *part) findLeads(sets [][]int) {
	offers := p.problem.Offers
	order := make([]int, len(p.kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(p.kinds[b].room, p.kinds[a].room) })
	var leads []int
	for _, i := range order {
		k := &p.kinds[i]
		grouped := slices.ContainsFunc(k.classes, func(c int) bool { return len(p.classes[c].groups) > 0 })
		k.inRelaxation = !slices.ContainsFunc(leads, func(l int) bool {
			lead := &p.kinds[l]
			n := int64(math.Ceil(lead.price / k.price))
			return (n == 1 || !grouped) && covers(offers[lead.offers[0]].Room, offers[k.offers[0]].Room, n) &&
				contains(sets[lead.offers[0]], sets[k.offers[0]])
		})
		if k.inRelaxation {
			leads = append(leads, i)
		}
	}
}

// covers reports whether a has at least n times the room of b.
func covers(a, b []int64, n int64) bool {
	for r := range a {
		if max(a[r], 0)/n < b[r] {
			return false
		}
	}
	return true
}

// contains reports whether a contains all elements of b. Both must be sorted.
func contains(a, b []int) bool {
	if len(b) > len(a) {
		return false
	}
	at := 0
	for _, x := range b {
		for at < len(a) && a[at] < x {
			at++
		}
		if at == len(a) || a[at] != x {
			return false
		}
	}
	return true
}

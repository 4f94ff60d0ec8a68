package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/topology"
)

// terrain is what topology rules are judged on: the domains of the labels that
// they speak of, and the pods that stand there already.
type terrain struct {
	keys    map[string]*field
	census  *topology.Census
	counted []bitset         // by group: the nodes whose pods count; nil: all
	domains [][]bool         // by group of a spread, not over host names: the domains that count
	bare    map[int]bool     // groups over host names of which some machine will have no pod
	away    map[int]bool     // groups over host names that count a pod on a node that takes no pods
	fewest  map[int]scarcity // by group over host names, of a spread
}

// field is the domains of one label.
type field struct {
	values []string // sorted
	offers []bitset // by value: the offers that have it; last, those without the label
	nodes  []bitset // by value: the nodes that have it, by number in rooms; last, those without the label
	at     []int    // by node: its domain, the number of values without the label
}

// newTerrain looks at the ground; it notes the residents of nodes in rooms.hosts.
func newTerrain(st *stock, r *rooms, q *queue, buyable func(sig int, offers bitset) bool, nodes []cluster.Node) *terrain {
	t := &terrain{keys: map[string]*field{}, fewest: map[int]scarcity{}, away: map[int]bool{}, bare: map[int]bool{}}
	domains := map[string]int{}
	for i := range q.book.Groups {
		key := q.book.Groups[i].Key
		if _, ok := t.keys[key]; ok || key == topology.Hostname {
			continue
		}
		f := newField(st.labels.of(key), r.labels.of(key), len(st.offers), len(r.nodes))
		t.keys[key], domains[key] = f, len(f.values)
	}
	t.census = topology.NewCensus(q.book, domains)
	if len(q.book.Groups) == 0 {
		return t
	}
	t.domains = make([][]bool, len(q.book.Groups))
	t.counted = t.countable(r, q, buyable)
	for i, n := range r.nodes {
		t.settle(q, n, i, &r.hosts[i])
	}
	for i := range nodes {
		if nodes[i].Leaving { // who stays there still counts in its zone
			t.settle(q, &nodes[i], -1, nil)
		}
	}
	t.findFewest(r, q.book, t.counted)
	return t
}

func newField(offers, nodes *keyIndex, sizeOffers, sizeNodes int) *field {
	f := &field{at: make([]int, sizeNodes)}
	f.values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(offers.values, nodes.values))))
	for i := range f.at {
		f.at[i] = len(f.values)
	}
	pick := func(k *keyIndex, value string, size int) bitset {
		if i, ok := slices.BinarySearch(k.values, value); ok {
			return k.sets[i]
		}
		return newBitset(size)
	}
	for d, value := range f.values {
		f.offers = append(f.offers, pick(offers, value, sizeOffers))
		f.nodes = append(f.nodes, pick(nodes, value, sizeNodes))
		f.nodes[d].each(func(i int) { f.at[i] = d })
	}
	f.offers, f.nodes = append(f.offers, offers.absent), append(f.nodes, nodes.absent)
	return f
}

// countable returns, for each group of a spread, the nodes whose pods count (nil:
// all), and tells the census which domains do: those with such a node,
// and those where a machine for the owner can be bought.
func (t *terrain) countable(r *rooms, q *queue, buyable func(sig int, offers bitset) bool) []bitset {
	out := make([]bitset, len(q.book.Groups))
	for n := range q.book.Groups {
		g := &q.book.Groups[n]
		if g.Form != topology.Spread {
			continue
		}
		s := &q.signatures[g.Nodes]
		if !g.AnyNode && len(s.required) > 0 {
			out[n] = r.labels.satisfyingOne(s.required)
		}
		if g.HonorTaints {
			tolerated, _ := r.tolerated(s)
			if out[n] != nil {
				tolerated.and(out[n])
			}
			out[n] = tolerated
		}
		if g.Key == topology.Hostname {
			continue
		}
		f := t.keys[g.Key]
		counted := make([]bool, len(f.values))
		for d := range f.values {
			counted[d] = f.nodes[d].meets(out[n]) || buyable(g.Nodes, f.offers[d])
		}
		t.domains[n] = counted
		t.census.Count(n, counted)
	}
	return out
}

// settle notes the residents of a node: in the census by domain, in the tally
// by host. number is -1 for a node that takes no pods.
func (t *terrain) settle(q *queue, n *cluster.Node, number int, tally *topology.Tally) {
	b := q.book
	for _, resident := range n.Residents {
		standing := b.Standing(resident.Kind)
		for _, g := range standing.In {
			group := &b.Groups[g]
			if group.Form == topology.Spread && (resident.Ending || !t.counts(q, g, n, number)) {
				continue
			}
			if group.Key == topology.Hostname {
				if tally != nil {
					tally.Resident(g, resident.Count)
				} else {
					t.away[g] = true
				}
			} else {
				t.census.Resident(g, t.domain(group.Key, n, number), resident.Count)
			}
		}
		for _, g := range standing.Avoids {
			if key := b.Groups[g].Key; key == topology.Hostname {
				if tally != nil {
					tally.Owner(g, resident.Count)
				}
			} else {
				t.census.Owner(g, t.domain(key, n, number), resident.Count)
			}
		}
	}
}

// counts reports whether the pods of a node count for the group of a spread.
func (t *terrain) counts(q *queue, group int, n *cluster.Node, number int) bool {
	if number >= 0 {
		return t.counted[group] == nil || t.counted[group].has(number)
	}
	g := &q.book.Groups[group]
	if g.HonorTaints {
		return false // a node that takes no pods has a taint that says so
	}
	required := q.signatures[g.Nodes].required
	accepts := func(reqs constraint.Requirements) bool { return reqs.Accepts(n.Labels) }
	return g.AnyNode || len(required) == 0 || slices.ContainsFunc(required, accepts)
}

// domain returns the node's domain of a label.
func (t *terrain) domain(key string, n *cluster.Node, number int) int {
	f := t.keys[key]
	if number >= 0 {
		return f.at[number]
	}
	if d, ok := slices.BinarySearch(f.values, n.Labels[key]); ok {
		return d
	}
	return len(f.values)
}

// scarcity is the pods of a group on the node that has the fewest, of so many nodes.
type scarcity struct{ pods, nodes int }

// fewestOf is scarcity.pods as a rule sees it that asks for so many nodes.
func (t *terrain) fewestOf(group, minDomains int) int {
	if f := t.fewest[group]; f.nodes >= minDomains && !t.bare[group] {
		return f.pods
	}
	return 0
}

// findFewest finds the node that has the fewest pods, for the spreads over host names.
func (t *terrain) findFewest(r *rooms, b *topology.Book, counted []bitset) {
	for g := range b.Groups {
		if b.Groups[g].Form != topology.Spread || b.Groups[g].Key != topology.Hostname {
			continue
		}
		among := counted[g]
		if among == nil {
			among = newBitset(len(r.nodes))
			among.setRange(0, len(r.nodes))
		}
		f := scarcity{pods: -1, nodes: among.count()}
		for i := among.next(0); i >= 0 && f.pods != 0; i = among.next(i + 1) {
			if n := r.hosts[i].Matched(g); f.pods < 0 || n < f.pods {
				f.pods = n
			}
		}
		f.pods = max(f.pods, 0)
		t.fewest[g] = f
	}
}

// fork returns a terrain whose census can be added to by itself.
func (t *terrain) fork() *terrain {
	out := *t
	out.census, out.fewest = t.census.Clone(), maps.Clone(t.fewest)
	return &out
}

package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/topology"
)

// terrain is what topology rules are judged on: the domains of the labels that
// they speak of, and the pods that stand there already.
type terrain struct {
	keys    map[string]*field
	census  *topology.Census
	counted []bitset    // by group: the nodes whose pods count; nil: all
	fewest  map[int]int // by group over host names, of a spread: the pods on the node that has the fewest
}

// field is the domains of one label.
type field struct {
	values []string // sorted
	offers []bitset // by value: the offers that have it
	nodes  []bitset // by value: the nodes that have it, by number in rooms
	at     []int    // by node: its domain, -1 without the label
}

// newTerrain looks at the ground; it notes the residents of nodes in rooms.hosts.
func newTerrain(st *stock, r *rooms, q *queue, hard func(sig int) bitset, nodes []cluster.Node) *terrain {
	t := &terrain{keys: map[string]*field{}, fewest: map[int]int{}}
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
	counted := t.countable(st, r, q, hard)
	t.counted = counted
	for i, n := range r.nodes {
		t.settle(q.book, n, counted, i, &r.hosts[i])
	}
	for i := range nodes {
		if nodes[i].Leaving { // who stays there still counts in its zone
			t.settle(q.book, &nodes[i], counted, -1, nil)
		}
	}
	t.findFewest(r, q.book, counted)
	return t
}

func newField(offers, nodes *keyIndex, sizeOffers, sizeNodes int) *field {
	f := &field{at: make([]int, sizeNodes)}
	f.values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(offers.values, nodes.values))))
	for i := range f.at {
		f.at[i] = -1
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
	return f
}

// countable returns, for each group of a spread, the nodes whose pods count (nil:
// all), and tells the census which domains do: those with such a node,
// and those where a machine for the owner can be bought.
func (t *terrain) countable(st *stock, r *rooms, q *queue, hard func(sig int) bitset) []bitset {
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
		buyable := hard(g.Nodes)
		for d := range f.values {
			counted[d] = f.nodes[d].meets(out[n]) || buyable.meets(f.offers[d])
		}
		t.census.Count(n, counted)
	}
	return out
}

// settle notes the residents of a node: in the census by domain, in the tally
// by host. number is -1 for a node that takes no pods.
func (t *terrain) settle(b *topology.Book, n *cluster.Node, counted []bitset, number int, tally *topology.Tally) {
	for _, resident := range n.Residents {
		for _, g := range b.GroupsOf(resident.Namespace, resident.Labels) {
			group := &b.Groups[g]
			if group.Form == topology.Spread && (resident.Ending || counted[g] != nil && (number < 0 || !counted[g].has(number))) {
				continue
			}
			if group.Key == topology.Hostname {
				if tally != nil {
					tally.Resident(g, resident.Count)
				}
			} else if d := t.domain(group.Key, n, number); d >= 0 {
				t.census.Resident(g, d, resident.Count)
			}
		}
		for i := range resident.Avoids {
			g, ok := b.Apart(&resident.Avoids[i])
			if !ok {
				continue
			}
			if key := resident.Avoids[i].Key; key == topology.Hostname {
				if tally != nil {
					tally.Owner(g, resident.Count)
				}
			} else if d := t.domain(key, n, number); d >= 0 {
				t.census.Owner(g, d, resident.Count)
			}
		}
	}
}

// domain returns the node's domain of a label, -1 if it has none that matters.
func (t *terrain) domain(key string, n *cluster.Node, number int) int {
	f := t.keys[key]
	if number >= 0 {
		return f.at[number]
	}
	if d, ok := slices.BinarySearch(f.values, n.Labels[key]); ok {
		return d
	}
	return -1
}

// findFewest finds the node that has the fewest pods, for the spreads over host names.
func (t *terrain) findFewest(r *rooms, b *topology.Book, counted []bitset) {
	for g := range b.Groups {
		if b.Groups[g].Form != topology.Spread || b.Groups[g].Key != topology.Hostname {
			continue
		}
		fewest := -1
		for i := range r.nodes {
			if counted[g] != nil && !counted[g].has(i) {
				continue
			}
			if n := r.hosts[i].Matched(g); fewest < 0 || n < fewest {
				fewest = n
			}
			if fewest == 0 {
				break
			}
		}
		t.fewest[g] = max(fewest, 0)
	}
}

// fork returns a terrain whose census can be added to by itself.
func (t *terrain) fork() *terrain {
	return &terrain{keys: t.keys, census: t.census.Clone(), counted: t.counted, fewest: maps.Clone(t.fewest)}
}

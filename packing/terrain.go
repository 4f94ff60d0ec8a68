package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/bitmap"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/offers"
	"github.com/joiner-sh/joiner/topology"
)

// terrain is what topology rules are judged on: the domains of the labels that
// they speak of, and the pods that stand there already.
type terrain struct {
	keys map[string]*field
	// combined are the combinations of domains that there are, by labels.
	combined map[string][][]int
	census   *topology.Census
	counted  []bitmap.Set     // by group: the nodes whose pods count; nil: all
	domains  [][]bool         // by group of a spread, not over host names: the domains that count
	there    [][]bool         // likewise, those of them that count whatever is bought
	bare     map[int]bool     // groups over host names of which some machine will have no pod
	away     map[int]bool     // groups over host names that count a pod on a node that takes no pods
	fewest   map[int]scarcity // by group over host names, of a spread
}

// field is the domains of one label.
type field struct {
	values []string     // sorted
	offers []bitmap.Set // by value: the offers that have it; last, those without the label
	nodes  []bitmap.Set // by value: the nodes that have it, by number in rooms; last, those without the label
	at     []int        // by node: its domain, the number of values without the label
	// offerAt is likewise by offer.
	offerAt []int
}

// newTerrain looks at the ground; it notes the residents of nodes in rooms.hosts.
func newTerrain(st *offers.Stock, r *rooms, q *queue, buyable func(sig int, among bitmap.Set) bool, nodes []cluster.Node) *terrain {
	t := &terrain{keys: map[string]*field{}, combined: map[string][][]int{}, fewest: map[int]scarcity{}, away: map[int]bool{}, bare: map[int]bool{}}
	domains := map[string]int{}
	for i := range q.Book.Groups {
		key := q.Book.Groups[i].Key
		if _, ok := t.keys[key]; ok || key == topology.Hostname {
			continue
		}
		f := newField(st.Labels.Of(key), r.labels.Of(key), valuesOf(key, nodes), len(st.Offers), len(r.nodes))
		t.keys[key], domains[key] = f, len(f.values)
	}
	t.census = topology.NewCensus(q.Book, domains)
	if len(q.Book.Groups) == 0 {
		return t
	}
	t.domains, t.there = make([][]bool, len(q.Book.Groups)), make([][]bool, len(q.Book.Groups))
	t.counted = t.countable(st, r, q, buyable)
	for i, n := range r.nodes {
		t.settle(q, n, i, &r.hosts[i])
	}
	for i := range nodes {
		if nodes[i].Leaving { // who stays there still counts in its zone
			t.settle(q, &nodes[i], -1, nil)
			t.keep(q, &nodes[i])
		}
	}
	t.findFewest(r, q.Book, t.counted)
	return t
}

// valuesOf returns the values of a label that nodes have on which pods stay though they take no more.
func valuesOf(key string, nodes []cluster.Node) []string {
	var out []string
	for i := range nodes {
		if value, ok := nodes[i].Labels[key]; ok && nodes[i].Leaving && len(nodes[i].Residents) > 0 {
			out = append(out, value)
		}
	}
	return out
}

func newField(bought, nodes *bitmap.Column, more []string, sizeOffers, sizeNodes int) *field {
	f := &field{at: make([]int, sizeNodes), offerAt: make([]int, sizeOffers)}
	f.values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(bought.Values, nodes.Values, more))))
	for i := range f.at {
		f.at[i] = len(f.values)
	}
	for i := range f.offerAt {
		f.offerAt[i] = len(f.values)
	}
	pick := func(k *bitmap.Column, value string, size int) bitmap.Set {
		if i, ok := slices.BinarySearch(k.Values, value); ok {
			return k.Sets[i]
		}
		return bitmap.New(size)
	}
	for d, value := range f.values {
		f.offers = append(f.offers, pick(bought, value, sizeOffers))
		f.nodes = append(f.nodes, pick(nodes, value, sizeNodes))
		f.nodes[d].Each(func(i int) { f.at[i] = d })
		f.offers[d].Each(func(o int) { f.offerAt[o] = d })
	}
	f.offers, f.nodes = append(f.offers, bought.Absent), append(f.nodes, nodes.Absent)
	return f
}

// countable returns, for each group of a spread, the nodes whose pods count (nil:
// all), and tells the census which domains do: those with such a node,
// and those where a machine for the owner can be bought.
func (t *terrain) countable(st *offers.Stock, r *rooms, q *queue, buyable func(sig int, among bitmap.Set) bool) []bitmap.Set {
	out := make([]bitmap.Set, len(q.Book.Groups))
	for n := range q.Book.Groups {
		g := &q.Book.Groups[n]
		if g.Form != topology.Spread {
			continue
		}
		s := &q.Signatures[g.Nodes]
		if !g.AnyNode && len(s.Required) > 0 {
			out[n] = r.labels.SatisfyingOne(s.Required)
		}
		if g.HonorTaints {
			tolerated, _ := r.tolerated(s)
			if out[n] != nil {
				tolerated.And(out[n])
			}
			out[n] = tolerated
		}
		for _, key := range g.Keys {
			if out[n] == nil {
				out[n] = r.labels.Satisfying(nil)
			}
			out[n].AndNot(r.labels.Of(key).Absent)
		}
		if g.Key == topology.Hostname {
			continue
		}
		f := t.keys[g.Key]
		counted, there := make([]bool, len(f.values)), make([]bool, len(f.values))
		for d := range f.values {
			there[d] = f.nodes[d].Meets(out[n])
			counted[d] = there[d] || buyable(g.Nodes, st.Having(f.offers[d], g.Keys))
		}
		t.domains[n], t.there[n] = counted, there
		t.census.Count(n, counted)
	}
	return out
}

// settle notes the residents of a node: in the census by domain, in the tally
// by host. number is -1 for a node that takes no pods.
func (t *terrain) settle(q *queue, n *cluster.Node, number int, tally *topology.Tally) {
	b := q.Book
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

// keep lets the domains of a node that takes no pods count for the spreads that count pods which stay there. Where
// nobody stays, the node is thought to be gone before it matters: or nobody could be moved off the last of a zone.
func (t *terrain) keep(q *queue, n *cluster.Node) {
	for _, resident := range n.Residents {
		if resident.Ending || resident.Count <= 0 {
			continue
		}
		for _, g := range q.Book.Standing(resident.Kind).In {
			counted := t.domains[g]
			if counted == nil || !t.counts(q, g, n, -1) {
				continue
			}
			if d := t.domain(q.Book.Groups[g].Key, n, -1); d < len(counted) && !t.there[g][d] {
				counted[d], t.there[g][d] = true, true
				t.census.Count(g, counted)
			}
		}
	}
}

// counts reports whether the pods of a node count for the group of a spread.
func (t *terrain) counts(q *queue, group int, n *cluster.Node, number int) bool {
	if number >= 0 {
		return t.counted[group] == nil || t.counted[group].Has(number)
	}
	g := &q.Book.Groups[group]
	if g.HonorTaints {
		return false // a node that takes no pods has a taint that says so
	}
	if slices.ContainsFunc(g.Keys, func(key string) bool { _, ok := n.Labels[key]; return !ok }) {
		return false
	}
	required := q.Signatures[g.Nodes].Required
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
func (t *terrain) findFewest(r *rooms, b *topology.Book, counted []bitmap.Set) {
	for g := range b.Groups {
		if b.Groups[g].Form != topology.Spread || b.Groups[g].Key != topology.Hostname {
			continue
		}
		among := counted[g]
		if among == nil {
			among = bitmap.New(len(r.nodes))
			among.AddRange(0, len(r.nodes))
		}
		f := scarcity{pods: -1, nodes: among.Count()}
		for i := among.Next(0); i >= 0 && f.pods != 0; i = among.Next(i + 1) {
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

package fairness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// nextSlice returns the kinds of the next slice, and the namespace that is served last in it. Namespaces take turns,
// starting with the one after last, and each turn adds one gang. The slice costs at most limit, unless its first gang
// costs more.
func nextSlice(kinds []kind, last string, limit int) ([]kind, string) {
	queues := map[string][]gang{}
	for _, g := range gangsOf(kinds, limit) {
		queues[g.kinds[0].namespace()] = append(queues[g.kinds[0].namespace()], g)
	}
	var out []kind
	spent := 0
	for len(queues) > 0 {
		for _, namespace := range rotated(slices.Sorted(maps.Keys(queues)), last) {
			g := queues[namespace][0]
			if len(out) > 0 && spent+g.cost > limit {
				delete(queues, namespace) // until the next slice
				continue
			}
			out, spent, last = append(out, g.kinds...), spent+g.cost, namespace
			if queues[namespace] = queues[namespace][1:]; len(queues[namespace]) == 0 {
				delete(queues, namespace)
			}
		}
	}
	return out, last
}

// rotated returns the sorted names, rotated so that they start with the first one after last.
func rotated(names []string, last string) []string {
	at, found := slices.BinarySearch(names, last)
	if found {
		at++
	}
	return slices.Concat(names[at:], names[:at])
}

// gang is a set of kinds that must be planned in the same slice, because their pods have required affinity to each
// other.
type gang struct {
	kinds []kind
	cost  int
}

// maxComparisons is the maximum number of comparisons of an affinity term with a kind in gangsOf. Beyond it, gangsOf
// joins no more kinds, so pods with affinity to each other may be in different slices. The affinity still holds: a
// later slice sees the pods that earlier slices placed.
const maxComparisons = 100_000

// gangsOf joins kinds with required affinity to each other, unless the gang would cost more than limit. It returns
// the gangs in the order in which each namespace's gangs are served: highest priority first, then oldest pod first.
func gangsOf(kinds []kind, limit int) []gang {
	order := slices.Clone(kinds)
	slices.SortStableFunc(order, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.pods[0].Priority, a.pods[0].Priority), oldest(a.pods).Compare(oldest(b.pods)))
	})
	sets := newUnion(order)
	comparisons := 0
	for i := range order {
		p := order[i].pods[0]
		for t := range p.Affinity {
			if p.Affinity[t].Weight != 0 {
				continue
			}
			if comparisons += len(order); comparisons > maxComparisons {
				return sets.gangs(order)
			}
			for j := range order {
				if q := order[j].pods[0]; i != j && p.Affinity[t].Matches(q.Namespace, q.Labels) && sets.cost(i)+sets.cost(j) <= limit {
					sets.join(i, j)
				}
			}
		}
	}
	return sets.gangs(order)
}

// union is a disjoint-set structure (union-find) over indices of kinds.
type union struct {
	parent []int
	costs  []int // by root: cost of the set
}

func newUnion(kinds []kind) *union {
	u := &union{}
	for i := range kinds {
		u.parent, u.costs = append(u.parent, i), append(u.costs, kinds[i].cost)
	}
	return u
}

// root returns the index that identifies the set of i.
func (u *union) root(i int) int {
	for u.parent[i] != i {
		u.parent[i] = u.parent[u.parent[i]]
		i = u.parent[i]
	}
	return i
}

func (u *union) cost(i int) int { return u.costs[u.root(i)] }

// join merges the sets of i and j. The lower of the two roots becomes the common root.
func (u *union) join(i, j int) {
	a, b := u.root(i), u.root(j)
	if a == b {
		return
	}
	a, b = min(a, b), max(a, b)
	u.parent[b] = a
	u.costs[a] += u.costs[b]
}

// gangs returns the sets as gangs, in the order of their first kinds.
func (u *union) gangs(kinds []kind) []gang {
	at := map[int]int{} // index in out, by root
	var out []gang
	for i, k := range kinds {
		root := u.root(i)
		g, ok := at[root]
		if !ok {
			g = len(out)
			at[root] = g
			out = append(out, gang{})
		}
		out[g].kinds = append(out[g].kinds, k)
		out[g].cost += k.cost
	}
	return out
}

func oldest(pods []*cluster.Pod) time.Time {
	at := pods[0].Created
	for _, p := range pods[1:] {
		if p.Created.Before(at) {
			at = p.Created
		}
	}
	return at
}

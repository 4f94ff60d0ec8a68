package fairness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// next returns the kinds of the next slice, and the namespace that is served last in it. Namespaces take turns, beginning with the
// one after last. A turn is one gang.
func next(kinds []kind, last string, most int) ([]kind, string) {
	queues := map[string][]gang{}
	for _, g := range gangsOf(kinds, most) {
		queues[g.kinds[0].namespace()] = append(queues[g.kinds[0].namespace()], g)
	}
	var out []kind
	spent := 0
	for len(queues) > 0 {
		for _, namespace := range after(slices.Sorted(maps.Keys(queues)), last) {
			g := queues[namespace][0]
			if len(out) > 0 && spent+g.cost > most {
				delete(queues, namespace)
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

// after rotates the sorted names so that they start with the first one after last.
func after(names []string, last string) []string {
	at, found := slices.BinarySearch(names, last)
	if found {
		at++
	}
	return slices.Concat(names[at:], names[:at])
}

// gang is a set of kinds that are planned in one slice.
type gang struct {
	kinds []kind
	cost  int
}

// mostMatches bounds how often a term is matched with a kind to find gangs. Beyond it pods wait for each other from slice to slice:
// a later slice counts what earlier ones placed.
const mostMatches = 100_000

// gangsOf joins kinds with required affinity to each other, as far as a slice can hold them. Gangs are in the order in which their
// namespaces want them served: the highest priority first, then the oldest pod.
func gangsOf(kinds []kind, most int) []gang {
	order := slices.Clone(kinds)
	slices.SortStableFunc(order, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.pods[0].Priority, a.pods[0].Priority), oldest(a.pods).Compare(oldest(b.pods)))
	})
	u := newUnion(order)
	matches := 0
	for i := range order {
		p := order[i].pods[0]
		for t := range p.Affinity {
			if p.Affinity[t].Weight != 0 {
				continue
			}
			if matches += len(order); matches > mostMatches {
				return u.gangs(order)
			}
			for j := range order {
				if q := order[j].pods[0]; i != j && p.Affinity[t].Matches(q.Namespace, q.Labels) && u.cost(i)+u.cost(j) <= most {
					u.join(i, j)
				}
			}
		}
	}
	return u.gangs(order)
}

// union is sets of numbers that are joined one by one.
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

func (u *union) root(i int) int {
	for u.parent[i] != i {
		u.parent[i] = u.parent[u.parent[i]]
		i = u.parent[i]
	}
	return i
}

func (u *union) cost(i int) int { return u.costs[u.root(i)] }

// join makes one set of the sets of i and j; the lower root stays.
func (u *union) join(i, j int) {
	a, b := u.root(i), u.root(j)
	if a == b {
		return
	}
	a, b = min(a, b), max(a, b)
	u.parent[b] = a
	u.costs[a] += u.costs[b]
}

func (u *union) gangs(kinds []kind) []gang {
	at := map[int]int{} // by root
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

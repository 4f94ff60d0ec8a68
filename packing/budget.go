package packing

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
)

// budget is what a pool may still buy under its limits.
type budget struct {
	names []string // of the limited resources, sorted
	left  []int64  // by name, in the units of capacity.Amounts; may be negative
	nodes int      // how many more nodes, math.MaxInt if not limited
}

// limitNodes is the name of the limit on the number of nodes.
const limitNodes = "nodes"

func newBudget(p *cluster.Pool) budget {
	b := budget{nodes: math.MaxInt, names: slices.Sorted(maps.Keys(p.Limits.Ceiling))}
	for _, name := range b.names {
		b.left = append(b.left, p.Limits.Ceiling[name]-p.Usage.Of(name))
	}
	if p.Limits.Nodes != nil {
		b.nodes = max(*p.Limits.Nodes-p.Nodes, 0)
	}
	return b
}

func (b budget) clone() budget {
	b.left = slices.Clone(b.left)
	return b
}

// unlimited reports whether the pool has no limits at all.
func (b *budget) unlimited() bool { return len(b.names) == 0 && b.nodes == math.MaxInt }

// times returns how many machines of that capacity may be bought, at most limit.
func (b *budget) times(c capacity.Amounts, limit int) int {
	n := min(limit, b.nodes)
	for i, name := range b.names {
		if each := c.Of(name); each > 0 {
			n = int(min(int64(n), max(b.left[i]/each, 0)))
		}
	}
	return n
}

// spend notes that n machines of that capacity are bought.
func (b *budget) spend(c capacity.Amounts, n int) {
	if b.nodes != math.MaxInt {
		b.nodes -= n
	}
	for i, name := range b.names {
		b.left[i] -= c.Of(name) * int64(n)
	}
}

// share returns the largest share of what is left that one machine of that
// capacity uses up; 0 without limits.
func (b *budget) share(c capacity.Amounts) float64 {
	most := 0.0
	if b.nodes != math.MaxInt {
		most = 1 / float64(max(b.nodes, 1))
	}
	for i, name := range b.names {
		most = max(most, float64(c.Of(name))/float64(max(b.left[i], 1)))
	}
	return most
}

// tightest returns the name of the limit that keeps a machine of that capacity
// from being bought, or "".
func (b *budget) tightest(c capacity.Amounts) string {
	if b.nodes < 1 {
		return limitNodes
	}
	for i, name := range b.names {
		if each := c.Of(name); each > 0 && each > b.left[i] {
			return name
		}
	}
	return ""
}

// cloneBudgets returns budgets that can be spent by themselves.
func cloneBudgets(all []budget) []budget {
	out := make([]budget, len(all))
	for i := range all {
		out[i] = all[i].clone()
	}
	return out
}

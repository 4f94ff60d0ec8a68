package offering

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// RemainingLimits has the amounts that the limits of a NodePool still allow.
type RemainingLimits struct {
	names []string // names of the limited resources, sorted
	left  []int64  // as in names: the amount left, in the units of resources.Amounts; may be negative
	nodes int      // number of further nodes allowed; math.MaxInt if unlimited
}

// limitNodes is the name of the limit on the number of nodes.
const limitNodes = "nodes"

// newRemainingLimits subtracts the usage of the pool in the snapshot from its limits.
func newRemainingLimits(p *cluster.Pool) RemainingLimits {
	b := RemainingLimits{nodes: math.MaxInt, names: slices.Sorted(maps.Keys(p.Limits.Ceiling))}
	for _, name := range b.names {
		b.left = append(b.left, p.Limits.Ceiling[name]-p.Usage.Of(name))
	}
	if p.Limits.Nodes != nil {
		b.nodes = max(*p.Limits.Nodes-p.Nodes, 0)
	}
	return b
}

// Clone returns a copy that can be changed independently.
func (b RemainingLimits) Clone() RemainingLimits {
	b.left = slices.Clone(b.left)
	return b
}

// Unlimited reports whether the pool has no limits at all.
func (b *RemainingLimits) Unlimited() bool { return len(b.names) == 0 && b.nodes == math.MaxInt }

// Times returns how many nodes of that capacity the limits allow, at most limit.
func (b *RemainingLimits) Times(c resources.Amounts, limit int) int {
	n := min(limit, b.nodes)
	for i, name := range b.names {
		if each := c.Of(name); each > 0 {
			n = int(min(int64(n), max(b.left[i]/each, 0)))
		}
	}
	return n
}

// Spend subtracts n nodes of that capacity.
func (b *RemainingLimits) Spend(c resources.Amounts, n int) {
	if b.nodes != math.MaxInt {
		b.nodes -= n
	}
	for i, name := range b.names {
		b.left[i] -= c.Of(name) * int64(n)
	}
}

// Share returns the largest share of the remaining limits that one node of that capacity uses; above 1 if the node
// exceeds a limit, 0 without limits.
func (b *RemainingLimits) Share(c resources.Amounts) float64 {
	most := 0.0
	if b.nodes != math.MaxInt {
		most = 1 / float64(max(b.nodes, 1))
	}
	for i, name := range b.names {
		most = max(most, float64(c.Of(name))/float64(max(b.left[i], 1)))
	}
	return most
}

// Overrun reports whether some limit on a resource is exceeded. It ignores the limit on the number of nodes.
func (b *RemainingLimits) Overrun() bool {
	return slices.ContainsFunc(b.left, func(n int64) bool { return n < 0 })
}

// Left returns how much the limit with that name still allows, in the units of resources.Amounts; negative if it is exceeded. Without
// such a limit it is math.MaxInt64.
func (b *RemainingLimits) Left(name string) int64 {
	if name == limitNodes {
		return int64(b.nodes)
	}
	if i, ok := slices.BinarySearch(b.names, name); ok {
		return b.left[i]
	}
	return math.MaxInt64
}

// Tightest returns the name of the first limit that does not allow another node of that capacity, or "". The limit on
// the number of nodes comes first, then the others by name.
func (b *RemainingLimits) Tightest(c resources.Amounts) string {
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

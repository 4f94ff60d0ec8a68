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
	left  []int64  // the amount left, by index in names, in the units of resources.Amounts; may be negative
	nodes int      // number of further nodes allowed; math.MaxInt if unlimited
}

const limitNodes = "nodes"

// newRemainingLimits subtracts the usage of the pool in the snapshot from its limits.
func newRemainingLimits(p *cluster.Pool) RemainingLimits {
	r := RemainingLimits{nodes: math.MaxInt, names: slices.Sorted(maps.Keys(p.Limits.Ceiling))}
	for _, name := range r.names {
		r.left = append(r.left, p.Limits.Ceiling[name]-p.Usage.Of(name))
	}
	if p.Limits.Nodes != nil {
		r.nodes = max(*p.Limits.Nodes-p.Nodes, 0)
	}
	return r
}

// Clone returns a copy that can be changed independently.
func (r RemainingLimits) Clone() RemainingLimits {
	r.left = slices.Clone(r.left)
	return r
}

// Unlimited reports whether the pool has no limits at all.
func (r *RemainingLimits) Unlimited() bool { return len(r.names) == 0 && r.nodes == math.MaxInt }

// MaxNodes returns how many nodes of that capacity the limits allow, at most wanted.
func (r *RemainingLimits) MaxNodes(c resources.Amounts, wanted int) int {
	n := min(wanted, r.nodes)
	for i, name := range r.names {
		if each := c.Of(name); each > 0 {
			n = int(min(int64(n), max(r.left[i]/each, 0)))
		}
	}
	return n
}

// Subtract subtracts n nodes of that capacity from what the limits still allow.
func (r *RemainingLimits) Subtract(c resources.Amounts, n int) {
	if r.nodes != math.MaxInt {
		r.nodes -= n
	}
	for i, name := range r.names {
		r.left[i] -= c.Of(name) * int64(n)
	}
}

// Share returns the largest share of the remaining limits that one node of that capacity uses; above 1 if the node
// exceeds a limit, 0 without limits.
func (r *RemainingLimits) Share(c resources.Amounts) float64 {
	most := 0.0
	if r.nodes != math.MaxInt {
		most = 1 / float64(max(r.nodes, 1))
	}
	for i, name := range r.names {
		most = max(most, float64(c.Of(name))/float64(max(r.left[i], 1)))
	}
	return most
}

// IsExceeded reports whether some limit on a resource is exceeded. It ignores the limit on the number of nodes.
func (r *RemainingLimits) IsExceeded() bool {
	return slices.ContainsFunc(r.left, func(n int64) bool { return n < 0 })
}

// Left returns how much the limit with that name still allows, in the units of resources.Amounts; negative if it is
// exceeded. Without such a limit it is math.MaxInt64.
func (r *RemainingLimits) Left(name string) int64 {
	if name == limitNodes {
		return int64(r.nodes)
	}
	if i, ok := slices.BinarySearch(r.names, name); ok {
		return r.left[i]
	}
	return math.MaxInt64
}

// FirstBlocking returns the name of the first limit that does not allow another node of that capacity, or "". The
// limit on the number of nodes comes first, then the others by name.
func (r *RemainingLimits) FirstBlocking(c resources.Amounts) string {
	if r.nodes < 1 {
		return limitNodes
	}
	for i, name := range r.names {
		if each := c.Of(name); each > 0 && each > r.left[i] {
			return name
		}
	}
	return ""
}

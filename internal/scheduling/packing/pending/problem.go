package pending

import (
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// Problem is the input of one call of packing.Solve. Nothing in it changes while a solution is computed, except that
// further accept sets are added to Accepts on demand.
type Problem struct {
	Stock   *offering.Stock      // the offerings
	Accepts *offering.Acceptance // which offerings the pods accept
	Queue   *Queue               // the pending pods, none of them placed
	Rooms   *existing.Rooms      // the existing nodes, without pods of the solution
	Effort  int                  // the limit for the work, in steps
	Weight  []float64            // by resource: its weight in the bulk of an amount
}

// BulkOf returns the bulk of an amount of resources: its weighted size, for comparisons. Pods never have more bulk than
// a room into which they fit. Negative amounts are ignored.
func (pr *Problem) BulkOf(v resources.Vector) float64 {
	sum := 0.0
	for i, x := range v {
		sum += float64(max(x, 0)) * pr.Weight[i]
	}
	return sum
}

// BulkWeights returns the weight of each resource in the bulk of an amount. A core and 4 GiB of memory weigh 1 each,
// other resources 0.
func BulkWeights(dims resources.Dimensions) []float64 {
	out := make([]float64, len(dims))
	for i, name := range dims {
		switch name {
		case resources.CPU:
			out[i] = 1e-3
		case resources.Memory:
			out[i] = 1.0 / (4 << 30)
		}
	}
	return out
}

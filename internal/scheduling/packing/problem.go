package packing

import (
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// problem is the input of one call of Solve. Nothing in it changes while a solution is computed,
// except that accepts numbers further sets on demand.
type problem struct {
	stock   *offering.Stock      // the offerings
	accepts *offering.Acceptance // which offerings the pods accept
	queue   *queue               // the pending pods, none of them placed
	rooms   *existing.Rooms      // the existing nodes, without pods of the solution
	effort  int                  // the limit for the work, in steps
	weight  []float64            // by resource: its weight in the bulk of an amount
}

// bulkOf returns the weighted size of an amount, for comparisons. What fits into a room has no more
// bulk than the room.
func (pr *problem) bulkOf(v resources.Vector) float64 {
	sum := 0.0
	for i, x := range v {
		sum += float64(max(x, 0)) * pr.weight[i]
	}
	return sum
}

// bulkWeights returns the weight of each resource in the bulk of an amount. One core weighs as much
// as 4 GiB of memory, other resources nothing.
func bulkWeights(dims resources.Dimensions) []float64 {
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

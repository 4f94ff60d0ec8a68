package lowerbound

import (
	"math"
	"slices"
)

// table has upper bounds of the worth that the classes from a position of the order to its end can add, by the free
// room of an instance. It solves the integer knapsack, relaxed to one resource, by dynamic programming. This is valid
// because pods that fit the room of every resource also fit the room of one resource. The resource is divided into
// cells.
//
// If only one resource has a price, and its room has at most maxCells units, the table uses this resource. Otherwise
// it uses the payment of pods for all resources as if it were a resource. The payment of pods is rounded down to
// cells, and the free room is rounded up.
type table struct {
	rows     [][]float64 // by position in the order and by number of free cells
	cells    int         // number of cells of an empty instance
	resource int         // the resource; -1: the payment
	unit     float64     // size of a cell: an amount of the resource, or a price
	steps    int         // numbers read or written
}

const (
	maxCells     = 4096    // maximum number of cells
	maxEntries   = 1 << 20 // maximum number of entries of a table for payments
	cellsPerPod  = 2000    // number of cells for each pod on the node; rounding a pod down loses less than one cell
	maxTablePods = 40      // maximum number of pods on a node; with more, fractional pods prove nearly as much as whole pods
)

// tabulate returns the table for the order; pods is the number of pods that fill a node.
func (m *knapsack) tabulate(pods int) *table {
	t := &table{resource: -1}
	total := 0.0
	for _, rate := range m.relaxed.rates {
		total += rate
	}
	for r, rate := range m.relaxed.rates {
		if rate > 0 && rate > total*(1-1e-9) {
			t.resource, t.unit = r, m.unit(r)
			t.cells = int(m.kind.room[r] / t.unit)
		}
	}
	if t.resource < 0 || t.cells > maxCells {
		t.resource, t.cells = -1, min(cellsPerPod*pods, maxEntries/(len(m.order)+1), maxCells)
		t.unit = total / float64(t.cells)
	}
	t.rows = m.scratch(len(m.order)+1, t.cells+1)
	for at := len(m.order) - 1; at >= 0; at-- {
		i := m.order[at]
		c := &m.classes[m.kind.classes[i]]
		size := 0
		if t.resource >= 0 {
			size = int(c.ask[t.resource] / t.unit)
		} else if t.unit > 0 {
			size = int((m.dualPrice[m.kind.classes[i]] - m.relaxed.profits[i]) / t.unit * (1 - 1e-12))
		}
		t.add(at, size, m.kind.maxPods(c), m.dualPrice[m.kind.classes[i]])
	}
	return t
}

// scratch returns memory for a table: rows of n numbers, of which only the last row is cleared. It is valid until the
// next call.
func (p *part) scratch(rows, n int) [][]float64 {
	p.scratchMemory = slices.Grow(p.scratchMemory[:0], rows*n)[:rows*n]
	out := make([][]float64, rows)
	for i := range out {
		out[i] = p.scratchMemory[i*n : (i+1)*n]
	}
	clear(out[rows-1])
	return out
}

// unit returns the greatest common divisor of the requests of the classes in the order for resource r; 1 if no class
// requests the resource.
func (m *knapsack) unit(r int) float64 {
	unit := int64(0)
	for _, i := range m.order {
		for a := int64(m.classes[m.kind.classes[i]].ask[r]); a != 0; {
			unit, a = a, unit%a
		}
	}
	return math.Max(float64(unit), 1)
}

// add fills the row at a position in the order. Its class has up to n pods of that size, in cells, and that dual price.
func (t *table) add(at, size, n int, dualPrice float64) {
	now, next := t.rows[at], t.rows[at+1]
	copy(now, next)
	switch {
	case size == 0:
		for c := range now {
			now[c] += float64(n) * dualPrice
		}
	case n >= t.cells/size: // n does not limit the number of pods
		for c := size; c <= t.cells; c++ {
			now[c] = max(next[c], now[c-size]+dualPrice)
		}
	default:
		for chunk := 1; n > 0; chunk *= 2 { // any number up to n is a sum of some chunks
			x := min(chunk, n)
			n -= x
			for c := t.cells; c >= x*size; c-- {
				now[c] = max(now[c], now[c-x*size]+float64(x)*dualPrice)
			}
			t.steps += len(now)
		}
	}
	t.steps += len(now)
}

// most returns an upper bound of the worth that the classes from position at to the end of the order can add. left is
// the free room by resource, and price is the price of the free room at the rates.
func (t *table) most(at int, left []float64, price float64) float64 {
	if t.resource >= 0 {
		return t.rows[at][int(left[t.resource]/t.unit)]
	}
	if t.unit <= 0 {
		return math.Inf(1)
	}
	return t.rows[at][min(int(price/t.unit*(1+1e-12))+1, t.cells)]
}

package lowerbound

import "math"

// simplex is a linear program whose dual prices are limited to a box:
//
//	minimize   Σ cost·amount + Σ high·short − Σ low·over
//	subject to Σ value·amount + short − over = 1     for every row
//	           amount, short, over ≥ 0
//
// A unit of the slack variable short costs the row's high price, and a unit of over yields the row's low price.
// So the dual price of a row stays between low and high, and the program always has a feasible
// solution. It is solved by the revised simplex method. Columns may be
// added, and the box may change, between two calls of solve.
type simplex struct {
	low, high []float64 // by row: the box of its dual price
	columns   []column

	basis   []int     // by row: a column, or ^(2·row) for short and ^(2·row+1) for over
	inverse []float64 // inverse of the basis, row by row
	amount  []float64 // by row: amount of its basis variable
	price   []float64 // by row: dual price
	scratch []float64 // result of direction
	steps   int       // numbers read or written, as a measure of time
}

// column is a sparse column: rows has the numbers of the rows with a value.
type column struct {
	cost   float64
	rows   []int32
	values []float64
}

// newSimplex returns a program with the given number of rows, without columns, whose box is the point 0. Its basis is
// the short variables.
func newSimplex(rows int) *simplex {
	s := &simplex{
		low: make([]float64, rows), high: make([]float64, rows), basis: make([]int, rows),
		inverse: make([]float64, rows*rows), amount: make([]float64, rows),
		price: make([]float64, rows), scratch: make([]float64, rows),
	}
	for i := range rows {
		s.basis[i] = ^(2 * i)
		s.inverse[i*rows+i] = 1
		s.amount[i] = 1
	}
	return s
}

// cost returns the cost of a column, or of a slack variable, numbered as in basis.
func (s *simplex) cost(j int) float64 {
	switch {
	case j >= 0:
		return s.columns[j].cost
	case ^j%2 == 0:
		return s.high[^j/2]
	}
	return -s.low[^j/2]
}

// reprice recomputes the dual prices. Call it after each change of the box.
func (s *simplex) reprice() {
	n := len(s.price)
	clear(s.price)
	for i, j := range s.basis {
		if c := s.cost(j); c != 0 {
			for k, v := range s.inverse[i*n : (i+1)*n] {
				s.price[k] += c * v
			}
		}
	}
	s.steps += n * n
}

// value returns the objective of the current solution.
func (s *simplex) value() float64 {
	sum := 0.0
	for i, j := range s.basis {
		sum += s.cost(j) * s.amount[i]
	}
	return sum
}

// tolerance is the minimum gain of a column that enters the basis, relative to its cost.
const tolerance = 1e-9

// solve pivots until no column is worth more than it costs. The number of pivots is
// limited, because rounding could make them cycle; prices that are not optimal are still valid.
func (s *simplex) solve() {
	for range 50 * (len(s.price) + 10) {
		j, gain := s.enter()
		if gain == 0 || !s.pivot(j, gain) {
			return
		}
	}
}

// enter returns the column or slack variable with the largest gain, and the gain: what it is worth at the dual prices
// minus what it costs. The gain is 0 if the solution is optimal.
func (s *simplex) enter() (int, float64) {
	best, most := 0, 0.0
	for i, y := range s.price {
		if gain := y - s.high[i]; gain > most && gain > tolerance*math.Abs(s.high[i]) {
			best, most = ^(2 * i), gain
		}
		if gain := s.low[i] - y; gain > most && gain > tolerance*math.Abs(s.low[i]) {
			best, most = ^(2*i + 1), gain
		}
	}
	for j := range s.columns {
		c := &s.columns[j]
		gain := -c.cost
		for k, i := range c.rows {
			gain += s.price[i] * c.values[k]
		}
		s.steps += len(c.rows)
		if gain > most && gain > tolerance*math.Abs(c.cost) {
			best, most = j, gain
		}
	}
	return best, most
}

// pivot brings the column or slack variable j into the basis; gain is as returned by enter. pivot reports false if no
// variable can leave the basis.
func (s *simplex) pivot(j int, gain float64) bool {
	n := len(s.price)
	in := s.direction(j)
	leave, least := -1, math.Inf(1)
	for i, d := range in {
		if d <= 1e-9 {
			continue
		}
		if t := s.amount[i] / d; t < least || t == least && d > in[leave] {
			leave, least = i, t
		}
	}
	if leave < 0 {
		return false
	}
	row := s.inverse[leave*n : (leave+1)*n]
	scale := 1 / in[leave]
	for k := range row {
		row[k] *= scale
	}
	for i, d := range in {
		if i == leave || d == 0 {
			continue
		}
		other := s.inverse[i*n : (i+1)*n]
		for k, v := range row {
			other[k] -= d * v
		}
		s.amount[i] = max(s.amount[i]-d*least, 0)
		s.steps += n
	}
	s.amount[leave], s.basis[leave] = least, j
	for k, v := range row {
		s.price[k] -= gain * v
	}
	return true
}

// direction returns, by row, by how much the amount of the basis variable decreases for one unit of the column or slack
// variable j. The result is valid until the next call.
func (s *simplex) direction(j int) []float64 {
	n := len(s.price)
	rows, values := []int32{int32(^j / 2)}, []float64{1}
	switch {
	case j >= 0:
		rows, values = s.columns[j].rows, s.columns[j].values
	case ^j%2 == 1:
		values[0] = -1
	}
	for i := range n {
		sum := 0.0
		for k, r := range rows {
			sum += s.inverse[i*n+int(r)] * values[k]
		}
		s.scratch[i] = sum
	}
	s.steps += n * len(rows)
	return s.scratch
}

package lowerbound_test

import (
	"math"

	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
)

// relaxation returns the optimum of the linear relaxation of the problem. It runs a
// textbook dense simplex on its dual:
//
//	maximize   Σ count·worth                                  over the demands
//	subject to worth ≤ Σ rate·ask + Σ fee                     for every demand and offer that may hold it
//	           Σ rate·room + Σ fee·cap ≤ price                for every offer
//
// with a rate for every offer and resource, and a fee for every offer and group. The variables are rate·room and
// fee·cap, so their coefficients are 1 in the row of the price.
func relaxation(p lowerbound.Problem) float64 {
	var t tableau
	dualPrice := make([]int, len(p.Demands))
	for i, d := range p.Demands {
		dualPrice[i] = -1
		for _, o := range p.Sets[d.Set] {
			if holds(p, d, o) {
				dualPrice[i] = t.variable(float64(d.Count))
				break
			}
		}
	}
	for o, offer := range p.Offers {
		priceRow := t.row(float64(offer.Price) / 1e9)
		rates := make([]int, len(offer.Room))
		for r := range offer.Room {
			rates[r] = t.variable(0)
			t.set(priceRow, rates[r], 1)
		}
		fees := map[int]int{}
		for i, d := range p.Demands {
			if !contains(p.Sets[d.Set], o) || !holds(p, d, o) {
				continue
			}
			row := t.row(0)
			t.set(row, dualPrice[i], 1)
			for r, ask := range d.Ask {
				if ask > 0 {
					t.set(row, rates[r], -float64(ask)/float64(offer.Room[r]))
				}
			}
			for _, g := range d.Groups {
				if _, ok := fees[g]; !ok {
					fees[g] = t.variable(0)
					t.set(priceRow, fees[g], 1)
				}
				t.set(row, fees[g], -1/float64(p.Caps[g]))
			}
		}
	}
	return t.maximize() * 1e9
}

// holds reports whether an empty instance of the offer has room for a pod of the demand.
func holds(p lowerbound.Problem, d lowerbound.Demand, o int) bool {
	for r, ask := range d.Ask {
		if ask > p.Offers[o].Room[r] {
			return false
		}
	}
	for _, g := range d.Groups {
		if p.Caps[g] < 1 {
			return false
		}
	}
	return true
}

func contains(set []int, o int) bool {
	for _, x := range set {
		if x == o {
			return true
		}
	}
	return false
}

// tableau is a linear program: maximize gain·x where rows·x ≤ limit, limit ≥ 0 and x ≥ 0.
type tableau struct {
	gain  []float64
	rows  []map[int]float64
	limit []float64
}

func (t *tableau) variable(gain float64) int {
	t.gain = append(t.gain, gain)
	return len(t.gain) - 1
}

func (t *tableau) row(limit float64) int {
	t.rows, t.limit = append(t.rows, map[int]float64{}), append(t.limit, limit)
	return len(t.rows) - 1
}

func (t *tableau) set(row, variable int, v float64) { t.rows[row][variable] = v }

// maximize pivots by the largest gain. It raises each limit by a different tiny
// amount, so that no pivot is degenerate.
func (t *tableau) maximize() float64 {
	n, m := len(t.gain), len(t.rows)
	a := make([][]float64, m+1)
	for i := range a {
		a[i] = make([]float64, n+m+1)
	}
	for i, row := range t.rows {
		for j, v := range row {
			a[i][j] = v
		}
		a[i][n+i] = 1
		a[i][n+m] = t.limit[i] + 1e-9*(1+float64(i*7919%997)/997)
	}
	for j, g := range t.gain {
		a[m][j] = -g
	}
	for {
		enter := 0
		for j := range n + m {
			if a[m][j] < a[m][enter] {
				enter = j
			}
		}
		if a[m][enter] > -1e-9 {
			return a[m][n+m]
		}
		leave, least := -1, math.Inf(1)
		for i := range m {
			if a[i][enter] > 1e-9 && a[i][n+m]/a[i][enter] < least {
				leave, least = i, a[i][n+m]/a[i][enter]
			}
		}
		if leave < 0 {
			return math.Inf(1)
		}
		pivot(a, leave, enter)
	}
}

func pivot(a [][]float64, leave, enter int) {
	by := a[leave][enter]
	for j := range a[leave] {
		a[leave][j] /= by
	}
	for i := range a {
		f := a[i][enter]
		if i == leave || f == 0 {
			continue
		}
		for j, v := range a[leave] {
			a[i][j] -= f * v
		}
	}
}

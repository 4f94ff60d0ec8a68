package lowerbound

import (
	"cmp"
	"math"
	"slices"
)

// relaxation is an upper bound on the worth of the pods on one instance of a kind, when pods may be fractional. The
// worth of a pod is its dual price.
//
// It is a Lagrangian relaxation of the room. A rate is the price of all of an instance's room for one resource. A pod
// pays, for each resource, the rate times the part of the room that it requests. Its profit is its worth minus what it
// pays. At any non-negative rates, pods that fit are worth at most the sum of the rates plus the profits of the pods.
// The profits of each class with a positive profit are included, for as many pods as k.maxPods and the shared caps
// allow. Cutting planes find the rates that minimize the upper bound.
type relaxation struct {
	kind    *kind
	most    float64   // upper bound on the worth
	rates   []float64 // by resource: the rates at which the upper bound is most
	profits []float64 // by position in kind.classes: profit of a pod at the rates
	pods    []float64 // by position in kind.classes: the best fractional pods found
	steps   int       // numbers read or written
}

// gain has the pods of a class that are worth more than they pay.
type gain struct {
	at     int // position in kind.classes
	shared int // class.shared: index in Problem.Caps of a group with further classes; -1: none
	profit float64
	n      int // number of pods
}

// planesTolerance is the accepted distance of the bound from its optimum, as a part of the instance's price.
const planesTolerance = 1e-4

// relax returns the relaxation for the dual prices. It stops when the upper bound is at most threshold, or
// after the given number of cutting planes. It starts at k.rates, and sets them to the best rates.
func (p *part) relax(k *kind, dualPrice []float64, threshold float64, planes int) relaxation {
	out := relaxation{kind: k, most: math.Inf(1)}
	n := len(k.room)
	s := newSimplex(n + 1)
	for r := range n {
		s.low[r], s.high[r] = -2*k.price, 0 // a rate is −price of its row; any limit above 0 keeps the bound valid
	}
	s.low[n], s.high[n] = -1e6*k.price, 1e6*k.price // the row that makes the weights of the vertices add up to 1
	s.columns = append(s.columns, column{rows: []int32{int32(n)}, values: []float64{1}})
	s.reprice()
	vertices := [][]gain{nil} // by column: its pods, a vertex; the first has none
	rates := slices.Clone(k.rates)
	for range planes {
		profits, gains := p.gains(k, dualPrice, rates)
		out.steps += len(profits) * n
		most := 0.0
		for _, rate := range rates {
			most += rate
		}
		for _, x := range gains {
			most += x.profit * float64(x.n)
		}
		if most < out.most {
			out.most, out.rates, out.profits = most, slices.Clone(rates), profits
		}
		if out.most <= threshold {
			break
		}
		s.columns, vertices = append(s.columns, p.columnOf(k, dualPrice, gains)), append(vertices, gains)
		s.solve()
		if out.most+s.value() < planesTolerance*k.price { // no rates prove less than −value
			break
		}
		for r := range rates {
			rates[r] = max(-s.price[r], 0)
		}
	}
	out.steps += s.steps
	k.rates = out.rates
	out.pods = p.mix(k, s, vertices)
	return out
}

// mix returns the pods of the vertices, weighted as in the solution of the program and scaled down to fit the room.
func (p *part) mix(k *kind, s *simplex, vertices [][]gain) []float64 {
	pods, used := make([]float64, len(k.classes)), make([]float64, len(k.room))
	for i, j := range s.basis {
		if j < 0 {
			continue
		}
		for _, x := range vertices[j] {
			n := s.amount[i] * float64(x.n)
			pods[x.at] += n
			for r, a := range p.classes[k.classes[x.at]].ask {
				used[r] += a * n
			}
		}
	}
	over := 1.0
	for r, u := range used {
		if u > 0 {
			over = max(over, u/k.room[r])
		}
	}
	for i := range pods {
		pods[i] /= over
	}
	return pods
}

// columnOf returns the column of these pods, which is a cutting plane for the rates: their worth as a negative cost
// and, by resource, the part of the room that they request.
func (p *part) columnOf(k *kind, dualPrice []float64, pods []gain) column {
	n := len(k.room)
	c := column{rows: make([]int32, n+1), values: make([]float64, n+1)}
	for r := range c.rows {
		c.rows[r] = int32(r)
	}
	c.values[n] = 1
	for _, x := range pods {
		number := k.classes[x.at]
		c.cost -= dualPrice[number] * float64(x.n)
		for r, a := range p.classes[number].ask {
			if a > 0 {
				c.values[r] += a * float64(x.n) / k.room[r]
			}
		}
	}
	return c
}

// gains returns the profit of a pod of each class at these rates. For the classes with a positive profit, it also
// returns how many pods one instance could hold if it had only pods of the class. The classes of a shared group divide
// the cap of the group, highest profit first.
func (p *part) gains(k *kind, dualPrice, rates []float64) ([]float64, []gain) {
	perUnit := make([]float64, len(rates)) // by resource: price of one unit
	for r, rate := range rates {
		if k.room[r] > 0 {
			perUnit[r] = rate / k.room[r]
		}
	}
	profits, shared := make([]float64, len(k.classes)), false
	var gains []gain
	for i, number := range k.classes {
		c := &p.classes[number]
		profit := dualPrice[number]
		for r, a := range c.ask {
			profit -= a * perUnit[r]
		}
		profits[i] = profit
		if profit > 0 {
			gains = append(gains, gain{at: i, shared: c.shared, profit: profit, n: k.maxPods(c)})
			shared = shared || c.shared >= 0
		}
	}
	if !shared {
		return profits, gains
	}
	slices.SortFunc(gains, func(a, b gain) int {
		return cmp.Or(cmp.Compare(a.shared, b.shared), cmp.Compare(b.profit, a.profit), cmp.Compare(a.at, b.at))
	})
	left := 0
	for i := range gains {
		x := &gains[i]
		if x.shared < 0 {
			continue
		}
		if i == 0 || gains[i-1].shared != x.shared {
			left = p.problem.Caps[x.shared]
		}
		x.n = min(x.n, left)
		left -= x.n
	}
	return profits, slices.DeleteFunc(gains, func(x gain) bool { return x.n == 0 })
}

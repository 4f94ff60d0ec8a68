package lowerbound

import (
	"math"
	"slices"
)

// generation improves dual prices by column generation.
//
// It maximizes the sum of all dual prices under the constraint that the pods on an instance are never worth more than
// its price. The worth of a pod is its dual price. There are too many combinations of pods on an instance to list
// them. So a linear program (the master) has some of these combinations as columns, and finds the best dual prices
// for these columns. The pricing problem (knapsack) then finds, for each kind, the pods on one instance that are
// worth most. If they are worth at most the price of the kind, the dual prices are proved for it. Otherwise the pods
// become a column of the master, and the dual prices of pods that the kind may hold are scaled down by the excess.
//
// The solutions of the master alone would oscillate between corners. So the dual prices of the master stay in a box
// around the best proved dual prices. The box grows when the master was right, shrinks when it was wrong, and moves
// with the proved dual prices.
type generation struct {
	*part
	used      []int       // by group: pods on a node; 0 between uses
	dualPrice []float64   // the best proved dual prices, by class
	value     float64     // sum of dualPrice over all pods
	alone     []float64   // by class: lowest price per pod of nodes with only this class; limits its dual price
	columns   []column    // nodes; a value is the part of a class's pods that the node holds
	proofs    []proof     // by kind: the last proof
	proved    [][]float64 // by call of prove: the dual prices that it returned
	nodeLimit int         // maximum number of search nodes of a knapsack: maxSearchNodes, except in tests
	steps     int         // numbers read or written, as a measure of time
}

type podCount struct {
	class int
	n     float64 // number of pods; an integer, except in relaxations
}

// proof is an upper limit of the worth of the pods on an instance of a kind, at the dual prices that one call of prove
// returned.
type proof struct {
	most float64
	call int // index of these dual prices in generation.proved; -1: no proof yet
}

const (
	maxGeneratedClasses = 160  // maximum number of classes; with more, whole pods fill nodes nearly as well as fractions
	maxMasterSolutions  = 200  // maximum number of solutions of the master
	firstSpan           = 0.1  // box.span at the start
	aloneSpan           = 0.1  // minimum size of the box for a dual price, as a part of alone
	sumTolerance        = 2e-4 // accepted distance of the proved sum from the optimum, as a part of the proved sum
)

// generate improves the given dual prices, which must be proved, and returns the result.
func (p *part) generate(dualPrice []float64, effort int) *generation {
	g := &generation{
		part: p, used: make([]int, len(p.problem.Caps)), dualPrice: dualPrice, value: p.total(dualPrice),
		alone: make([]float64, len(p.classes)), proofs: make([]proof, len(p.kinds)), nodeLimit: maxSearchNodes,
	}
	for i := range g.proofs {
		g.proofs[i].call = -1
	}
	for c := range p.classes {
		g.addSingleClassNode(c)
	}
	b := newBox(g)
	for range maxMasterSolutions {
		b.fetch()
		b.master.solve()
		wanted, before := b.dualPrices(), len(g.columns)
		proved := g.prove(wanted)
		if value := g.total(proved); value > g.value {
			g.value, g.dualPrice = value, proved
		}
		if !b.move(proved, len(g.columns) == before) || g.steps+b.master.steps > effort {
			break
		}
	}
	g.steps += b.master.steps
	return g
}

// addSingleClassNode adds a column for class c: of the nodes that are full of its pods, the one with the lowest price
// per pod. It sets alone of the class.
func (g *generation) addSingleClassNode(c int) {
	g.alone[c] = math.Inf(1)
	var best *kind
	for _, i := range g.holders[c] {
		k := &g.kinds[i]
		if each := k.price / float64(k.maxPods(&g.classes[c])); each < g.alone[c] {
			best, g.alone[c] = k, each
		}
	}
	g.add(best, []podCount{{class: c, n: float64(best.maxPods(&g.classes[c]))}})
}

// add adds a node of the kind with these pods as a column.
func (g *generation) add(k *kind, pods []podCount) {
	c := column{cost: k.price}
	for _, t := range pods {
		c.rows = append(c.rows, int32(t.class))
		c.values = append(c.values, t.n/float64(g.classes[t.class].count))
	}
	g.columns = append(g.columns, c)
}

// prove returns the dual prices, lowered until it is proved that no node holds pods worth more than its price. It adds
// as columns the nodes whose pods were worth more.
func (g *generation) prove(dualPrice []float64) []float64 {
	proved := slices.Clone(dualPrice)
	growth := make([]float64, len(g.proved)) // by index of g.proved: result of maxGrowth; 0: not computed yet
	for i := range g.kinds {
		k, last := &g.kinds[i], &g.proofs[i]
		// Since the last proof, the worth of the pods on an instance grew at most by the factor growth[last.call].
		if at := last.call; at >= 0 {
			if growth[at] == 0 {
				growth[at] = maxGrowth(g.proved[at], dualPrice)
				g.steps += len(dualPrice)
			}
			if last.most*growth[at] <= k.price {
				continue
			}
		}
		last.most, last.call = g.cut(k, proved), len(g.proved)
	}
	g.proved = append(g.proved, proved) // later kinds may scale these dual prices down further, which keeps the proofs valid
	return proved
}

// maxCuts is the maximum number of times that cut lowers only the dual prices of the pods on one node.
const maxCuts = 2

// cut lowers the dual prices until it is proved that the pods on a node of the kind are worth at most its price. It
// returns the proved limit of their worth. It first lowers the dual prices of the pods on the most valuable node
// found, at most maxCuts times. If that is not enough, it lowers the dual prices of all classes of the kind by the
// same factor.
func (g *generation) cut(k *kind, dualPrice []float64) float64 {
	for cuts := 0; ; cuts++ {
		most, found := g.maxWorth(k, dualPrice, k.price)
		if most <= k.price {
			return most
		}
		worth, worst := 0.0, -1 // worth of the most valuable node, and its index in found
		for i, pods := range found {
			g.add(k, pods)
			value := 0.0
			for _, t := range pods {
				value += dualPrice[t.class] * t.n
			}
			if value > worth {
				worth, worst = value, i
			}
		}
		if cuts < maxCuts && worth > k.price*(1+wholeTolerance) {
			for _, t := range found[worst] {
				dualPrice[t.class] *= k.price / worth
			}
			continue
		}
		for _, c := range k.classes {
			dualPrice[c] *= k.price / most
		}
		return k.price
	}
}

// maxGrowth returns the largest factor by which a dual price has grown; less than 1 if all are lower.
func maxGrowth(from, to []float64) float64 {
	most := 0.0
	for i, w := range to {
		if w > 0 {
			most = max(most, w/max(from[i], 1e-300))
		}
	}
	return most
}

// box is the master program and the bounds on its dual prices.
type box struct {
	g      *generation
	master *simplex
	center []float64 // by class: dual price at the center of the box
	value  float64   // sum of the dual prices of the center over all pods
	span   float64   // maximum distance of a dual price from the center, as a part of the dual price
	misses int       // rounds without improvement after the last change of center or span; the fourth shrinks the box
}

func newBox(g *generation) *box {
	b := &box{g: g, master: newSimplex(len(g.classes)), center: g.dualPrice, value: g.value, span: firstSpan}
	b.resize()
	return b
}

// fetch adds the new columns to the master.
func (b *box) fetch() { b.master.columns = b.g.columns }

// resize sets the bounds of the master from the center and the span. The prices of the master are dual prices of all
// pods of a class.
func (b *box) resize() {
	for i := range b.center {
		count := float64(b.g.classes[i].count)
		reach := b.span * (b.center[i] + aloneSpan*b.g.alone[i])
		b.master.low[i], b.master.high[i] = max(b.center[i]-reach, 0)*count, (b.center[i]+reach)*count
	}
	b.master.reprice()
}

// dualPrices returns the dual prices of one pod by class, from the solution of the master.
func (b *box) dualPrices() []float64 {
	out := make([]float64, len(b.center))
	for i, price := range b.master.price {
		out[i] = max(price, 0) / float64(b.g.classes[i].count)
	}
	return out
}

// move adapts the box to the dual prices that were proved. exact means that prove found no new column. move reports
// whether more rounds can improve the dual prices. Once the master was right, move reports false in two cases: the
// optimum of the master is not at the edge of the box, or the proved sum is clearly below the best.
func (b *box) move(proved []float64, exact bool) bool {
	value, promise := b.g.total(proved), b.master.value()
	promisedGain := promise - b.value
	switch {
	case exact || promise-max(b.value, value) < sumTolerance*b.value:
		// The master is right so far, and its optimum may be outside of the box.
		if !b.isAtEdge() || value < b.value*(1-10*sumTolerance) { // clearly below the best
			return false
		}
		b.span = min(3*b.span, 10)
	case value > b.value+0.1*promisedGain:
		if value > b.value+0.5*promisedGain {
			b.span *= 1.5
		}
	default:
		if b.misses++; b.misses < 4 {
			return true
		}
		b.misses = 0
		b.span *= 0.6
		b.resize()
		return true
	}
	if exact || value > b.value {
		b.center, b.value = proved, value
	}
	b.misses = 0
	b.resize()
	return true
}

// isAtEdge reports whether some dual price is at the edge of the box, other than at 0.
func (b *box) isAtEdge() bool {
	for i, price := range b.master.price {
		if price >= b.master.high[i]*(1-1e-6) || price <= b.master.low[i]*(1+1e-6) && b.master.low[i] > 0 {
			return true
		}
	}
	return false
}

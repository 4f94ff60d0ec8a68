package packing

import (
	"math/bits"
	"slices"
)

// acceptance holds the sets of offers that classes accept, each once: classes
// with the same demands share them, whatever they ask of room.
type acceptance struct {
	st      *stock
	sets    []bitset
	numbers map[string]int
	weights []bitset // the offers of the pools of one weight, heaviest first
	hard    []int    // by signature: the set that no preference narrows, of what can be had now
}

// accept works out what the classes of the queue accept, and sets their stages.
func (st *stock) accept(q *queue) *acceptance {
	a := &acceptance{st: st, numbers: map[string]int{}}
	for i, p := range st.pools {
		if i == 0 || st.pools[i-1].Weight != p.Weight {
			a.weights = append(a.weights, newBitset(len(st.offers)))
		}
		a.weights[len(a.weights)-1].setRange(p.from, p.to)
	}
	have := st.withinLimits()
	have.and(st.available)
	plain := make([][]int, len(q.signatures)) // stages of signatures without preferences: all their classes have the same
	for _, s := range q.signatures {
		hard := st.labels.satisfyingOne(s.required)
		hard.and(st.tolerated(s.tolerations))
		hard.and(have)
		a.hard = append(a.hard, a.number(hard))
	}
	for i := range q.classes {
		c := &q.classes[i]
		sig := &q.signatures[c.sig]
		sets := plain[c.sig]
		if sets == nil {
			levels := a.levels(sig, a.sets[a.hard[c.sig]], c)
			sets = a.byWeight(levels)
			if len(levels) == 1 && len(sig.preferred) == 0 && a.unavoided(sig) {
				plain[c.sig] = sets
			}
		}
		c.hard, c.first = a.hard[c.sig], -1
		c.stages = slices.DeleteFunc(slices.Clone(sets), func(set int) bool { return !a.anyHosts(a.sets[set], c) })
		if len(c.stages) > 0 {
			c.first = c.stages[0]
		}
	}
	return a
}

// withinLimits returns the offers of which at least one more machine may be bought.
func (st *stock) withinLimits() bitset {
	out := newBitset(len(st.offers))
	for _, p := range st.pools {
		for o := p.from; o < p.to; o++ {
			if p.budget.tightest(st.typeOf(o).Capacity) == "" {
				out.set(o)
			}
		}
	}
	return out
}

// buyable returns a function that tells whether a machine for some pod with the signature
// can be bought among the offers.
func (a *acceptance) buyable(q *queue) func(sig int, offers bitset) bool {
	classes := make([][]int, len(q.signatures))
	for c := range q.classes {
		classes[q.classes[c].sig] = append(classes[q.classes[c].sig], c)
	}
	return func(sig int, offers bitset) bool {
		among := a.sets[a.hard[sig]].both(offers)
		return slices.ContainsFunc(classes[sig], func(c int) bool { return a.anyHosts(among, &q.classes[c]) })
	}
}

// levels returns the offers that satisfy hard and all preferences which can be
// met together, then those with the lightest preference given up, and so on
// down to hard itself. A heavier preference is never given up for a lighter one.
func (a *acceptance) levels(s *signature, hard bitset, c *class) []bitset {
	wishes := []bitset{a.st.unavoided(s.tolerations)}
	for _, p := range s.preferred {
		wishes = append(wishes, a.st.labels.satisfying(p.Requirements))
	}
	out := []bitset{hard}
	for _, wish := range wishes {
		last := out[len(out)-1]
		narrowed := last.both(wish)
		if slices.Equal(narrowed, last) || !a.anyHosts(narrowed, c) {
			continue
		}
		out = append(out, narrowed)
	}
	slices.Reverse(out)
	return out
}

// unavoided reports whether no soft taint stands between the signature and what it accepts.
func (a *acceptance) unavoided(s *signature) bool {
	tolerated := a.st.tolerated(s.tolerations)
	tolerated.andNot(a.st.unavoided(s.tolerations))
	return !tolerated.any()
}

// byWeight splits each level by the weight of the pools.
func (a *acceptance) byWeight(levels []bitset) []int {
	out := []int{}
	for _, level := range levels {
		for _, w := range a.weights {
			set := level.both(w)
			if n := a.number(set); set.any() && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

func (a *acceptance) number(set bitset) int {
	key := set.key()
	n, ok := a.numbers[key]
	if !ok {
		n = len(a.sets)
		a.numbers[key] = n
		a.sets = append(a.sets, set)
	}
	return n
}

// anyHosts reports whether a machine for one pod of the class could be bought
// from the set.
func (a *acceptance) anyHosts(set bitset, c *class) bool {
	demanding := -1 // the last variant with minValues that was looked at
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			o := i<<6 | bits.TrailingZeros64(w)
			if !a.st.hosts(o, c) {
				continue
			}
			v := a.st.models[a.st.offers[o].model].variant
			if !a.st.asksVariety(o) || a.st.poolOf(o).Relaxable {
				return true
			}
			if v != demanding && a.diverse(set, v, c) {
				return true
			}
			demanding = v
		}
	}
	return false
}

// diverse reports whether the offers of the variant that would take a pod of
// the class have as many values as the pool's minValues ask for.
func (a *acceptance) diverse(set bitset, variant int, c *class) bool {
	v := &a.st.variants[variant]
	hosting := newBitset(len(a.st.offers))
	for _, o := range v.byPrice {
		if set.has(o) && a.st.hosts(o, c) {
			hosting.set(o)
		}
	}
	return a.st.pools[v.pool].missing(hosting) == ""
}

package offering

import (
	"math/bits"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Acceptance holds the accept sets: the sets of offers that pods accept, each once. Pods with the same signature share
// their accept sets, whatever resources they request.
type Acceptance struct {
	Stock *Stock       // the numbered offers
	Sets  []bitset.Set // the accept sets, by number
	Hard  []int        // by signature: number of the set of launchable offers that it accepts, ignoring preferences

	q       *podgroup.Queue
	numbers map[string]int // index into Sets, by key of the set
	weights []bitset.Set   // the offers of pools with the same weight; heaviest pools first
	plain   [][]int        // by signature without preferences: cache of its stages, before Stages drops sets without room
	classes [][]int        // by signature: its classes
}

// Accept finds the launchable offers that the signatures of the queue accept: available offers for which the limits of
// the NodePool allow at least one more node.
func (st *Stock) Accept(q *podgroup.Queue) *Acceptance {
	n := len(q.Signatures)
	a := &Acceptance{Stock: st, q: q, numbers: map[string]int{}, plain: make([][]int, n), classes: make([][]int, n)}
	for c := range q.Classes {
		sig := q.Classes[c].Sig
		a.classes[sig] = append(a.classes[sig], c)
	}
	for i, p := range st.Pools {
		if i == 0 || st.Pools[i-1].Weight != p.Weight {
			a.weights = append(a.weights, bitset.New(len(st.Offers)))
		}
		a.weights[len(a.weights)-1].AddRange(p.from, p.to)
	}
	launchable := st.withinLimits()
	launchable.And(st.available)
	for _, s := range q.Signatures {
		hard := st.Labels.SatisfyingOne(s.Required)
		hard.And(st.Tolerated(s.Tolerations))
		hard.And(launchable)
		a.Hard = append(a.Hard, a.Number(hard))
	}
	return a
}

// Stages returns the accept sets in the order to try them: the lightest preferences are dropped first; with the same
// preferences, the heaviest NodePools come first. Each set has an offer with room for a pod of the class.
func (a *Acceptance) Stages(c *podgroup.Class) []int {
	sets := a.plain[c.Sig]
	if sets == nil {
		s := &a.q.Signatures[c.Sig]
		levels := a.levels(s, a.Sets[a.Hard[c.Sig]], c)
		sets = a.byWeight(levels)
		if len(levels) == 1 && len(s.Preferred) == 0 && a.avoidsNoPool(s) {
			a.plain[c.Sig] = sets
		}
	}
	return slices.DeleteFunc(slices.Clone(sets), func(set int) bool { return !a.AnyHasRoom(a.Sets[set], c) })
}

// CanLaunch reports whether among has an offer that pods with the signature accept, ignoring preferences, and that has
// room for one of these pods.
func (a *Acceptance) CanLaunch(signature int, among bitset.Set) bool {
	among = a.Sets[a.Hard[signature]].Intersection(among)
	return slices.ContainsFunc(a.classes[signature], func(c int) bool { return a.AnyHasRoom(among, &a.q.Classes[c]) })
}

func (st *Stock) withinLimits() bitset.Set {
	out := bitset.New(len(st.Offers))
	for _, p := range st.Pools {
		for o := p.from; o < p.to; o++ {
			if p.Remaining.FirstBlocking(st.TypeOf(o).Capacity) == "" {
				out.Add(o)
			}
		}
	}
	return out
}

// levels returns sets of offers in the order to try them. The first set satisfies all preferences that can be satisfied
// together. Each following set drops the lightest remaining preference, or several of the lightest to keep at most
// maxLevels sets. The last set is hard itself. A heavier preference is never dropped before a lighter one.
// PreferNoSchedule taints are avoided longest.
func (a *Acceptance) levels(s *podgroup.Signature, hard bitset.Set, c *podgroup.Class) []bitset.Set {
	preferences := []bitset.Set{a.Stock.unavoided(s.Tolerations)}
	for _, p := range s.Preferred {
		preferences = append(preferences, a.Stock.Labels.Satisfying(p.Requirements))
	}
	out := []bitset.Set{hard}
	for _, preference := range preferences {
		last := out[len(out)-1]
		narrowed := last.Intersection(preference)
		if slices.Equal(narrowed, last) || !a.AnyHasRoom(narrowed, c) {
			continue
		}
		out = append(out, narrowed)
	}
	out = stepsOf(out)
	slices.Reverse(out)
	return out
}

// maxLevels is the maximum number of sets that levels returns.
const maxLevels = 12

// stepsOf returns at most maxLevels of the levels, including the first and the last.
func stepsOf(levels []bitset.Set) []bitset.Set {
	if len(levels) <= maxLevels {
		return levels
	}
	out := make([]bitset.Set, maxLevels)
	for i := range out {
		out[i] = levels[i*(len(levels)-1)/(maxLevels-1)]
	}
	return out
}

// avoidsNoPool reports whether the signature tolerates the PreferNoSchedule taints of all pools whose other taints it
// tolerates.
func (a *Acceptance) avoidsNoPool(s *podgroup.Signature) bool {
	avoided := a.Stock.Tolerated(s.Tolerations)
	avoided.AndNot(a.Stock.unavoided(s.Tolerations))
	return !avoided.Any()
}

// byWeight splits each level by the weight of the pools, heaviest first, and returns the numbers of the sets that are
// not empty, each once.
func (a *Acceptance) byWeight(levels []bitset.Set) []int {
	out := []int{}
	for _, level := range levels {
		for _, w := range a.weights {
			set := level.Intersection(w)
			if n := a.Number(set); set.Any() && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Number returns the index of the set in Sets. It adds the set if it is new.
func (a *Acceptance) Number(set bitset.Set) int {
	key := set.Key()
	n, ok := a.numbers[key]
	if !ok {
		n = len(a.Sets)
		a.numbers[key] = n
		a.Sets = append(a.Sets, set)
	}
	return n
}

// AnyHasRoom reports whether the set has an offer with room for one pod of the class. If the pool has minValues that it
// may not relax, the offers of one variant that have room must together also meet the minValues.
func (a *Acceptance) AnyHasRoom(set bitset.Set, c *podgroup.Class) bool {
	if a.q.FirstUnoffered(c.Amounts) != "" {
		return false
	}
	unmet := -1 // the last variant whose minValues were not met
	for i, w := range set {
		for ; w != 0; w &= w - 1 {
			o := i<<6 | bits.TrailingZeros64(w) // a word of the set has 64 offers
			if !a.Stock.hasRoom(a.Stock.ShapeOf(o), c.Ask, c.PortLists) {
				continue
			}
			v := a.Stock.Models[a.Stock.Offers[o].Model].Variant
			if !a.Stock.HasMinValues(o) || a.Stock.PoolOf(o).RelaxesMinValues {
				return true
			}
			if v != unmet && a.meetsMinValues(set, v, c) {
				return true
			}
			unmet = v
		}
	}
	return false
}

// meetsMinValues reports whether the offers of the variant that are in the set and have room for a pod of the class
// meet the pool's minValues.
func (a *Acceptance) meetsMinValues(set bitset.Set, variant int, c *podgroup.Class) bool {
	v := &a.Stock.Variants[variant]
	withRoom := bitset.New(len(a.Stock.Offers))
	for _, o := range v.ByPrice {
		if set.Has(o) && a.Stock.hasRoom(a.Stock.ShapeOf(o), c.Ask, c.PortLists) {
			withRoom.Add(o)
		}
	}
	return a.Stock.Pools[v.Pool].unmetKey(withRoom) == ""
}

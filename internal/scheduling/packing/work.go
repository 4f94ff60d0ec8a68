package packing

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// work is a plan in the making.
type work struct {
	// What may be bought, who is pending, and which offers they accept.
	st      *offering.Stock
	q       *queue
	accepts *offering.Acceptance
	whole   int       // classes before parts and bundles were made of them
	weight  []float64 // by resource: its part in the bulk of an amount

	// What the plan stands on, as it fills.
	rooms  *existing.Rooms
	ground *existing.Ground // as pods are sent to domains
	// level is, by group of a spread over host names, the fewest of its pods on any node or machine of the plan,
	// while no more machines are bought; nil: there can always be one without any.
	level map[int]existing.Scarcity

	// How far each class has come.
	order     []int        // the classes by priority, then the larger first
	left      []int        // by class: units that have no place yet
	stage     []int        // by class: which of its stages is tried
	light     []int        // by class: its wishes about hosts up to this weight are given up
	lightHere int          // the same for all, while nodes that are there are filled
	sent      map[int]int  // by part: how many units were sent there
	clumped   map[int]bool // groups over host names whose pods have their one machine

	// What an attempt before has found out.
	caps  map[string]int // by part: how many pods it can have
	eased map[int]bool   // by whole class: some found no place with their wishes about hosts

	// The plan.
	placed   []placed
	machines []machine
	budgets  []offering.Budget // by pool: what is left of its limits

	// What the pods are worth.
	worth  []float64 // by class: what one unit is reckoned to cost, in billionths of a dollar per hour
	prices *pricing  // the last

	// What has been worked out once.
	facts    facts
	fits     []bitset.Set      // by class; see fitting
	narrowed map[string]int    // accept sets of parts, by that of the whole
	rates    []float64         // by accept set: price per size, -1 if not known yet
	alone    map[lone][]int    // what varietyAlone has found
	examined map[string]*trial // what explained has found

	steps, effort int // work done, and allowed
}

// placed is a number of pods of a class on a node that is there.
type placed struct {
	node     int // in rooms
	class, n int
}

// newWork begins a plan. What it alters of its arguments it copies first.
func newWork(st *offering.Stock, q *queue, a *offering.Acceptance, r *existing.Rooms, g *existing.Ground, effort int) *work {
	w := &work{
		st: st, accepts: a, effort: effort, rooms: r.Clone(), ground: g.Fork(),
		sent: map[int]int{}, clumped: map[int]bool{}, caps: map[string]int{}, eased: map[int]bool{},
		narrowed: map[string]int{}, alone: map[lone][]int{},
	}
	own := *q
	own.classes = slices.Clone(q.classes)
	w.q, w.whole = &own, len(q.classes)
	w.weight = weightsOf(st.Dims)
	for i := range own.classes {
		own.classes[i].bulk = w.bulk(own.classes[i].Ask)
		w.left = append(w.left, own.classes[i].units())
	}
	for _, p := range st.Pools {
		w.budgets = append(w.budgets, p.Budget.Clone())
	}
	return w
}

// set returns the accept set that the class is trying, or -1 when it has tried all.
func (w *work) set(c int) int {
	stages := w.q.classes[c].stages
	if w.stage[c] >= len(stages) {
		return -1
	}
	return stages[w.stage[c]]
}

// giveUp takes the class to the next of what it can try: the next stage, then
// all stages again without the lightest of its wishes about hosts.
func (w *work) giveUp(c int) {
	w.stage[c]++
	class := &w.q.classes[c]
	if w.stage[c] < len(class.stages) {
		return
	}
	if weight := w.lightest(c, w.light[c]); weight > 0 {
		w.light[c], w.stage[c] = weight, 0
	}
}

// lightest returns the weight of the lightest wish of the class about hosts that weighs more than that; 0 if there is none.
func (w *work) lightest(c int, above int) int {
	least := 0
	w.eachMember(c, func(p *topology.Profile) {
		for _, r := range p.Host {
			if r.Weight > above && (least == 0 || r.Weight < least) {
				least = r.Weight
			}
		}
	})
	return least
}

// lights returns the weights up to which the classes give up their wishes about hosts, one after the other: none, then
// all that there are but the heaviest.
func (w *work) lights(classes []int) []int {
	seen := map[int]bool{0: true}
	for _, c := range classes {
		w.eachMember(c, func(p *topology.Profile) {
			for _, r := range p.Host {
				seen[r.Weight] = true
			}
		})
	}
	out := slices.Sorted(maps.Keys(seen))
	out = out[:max(len(out)-1, 1)]
	if len(out) <= mostLights {
		return out
	}
	steps := make([]int, mostLights) // several weights at once, none of them and all but the heaviest among them
	for i := range steps {
		steps[i] = out[i*(len(out)-1)/(mostLights-1)]
	}
	return steps
}

// mostLights is in how many steps preferences about hosts are given up at most, while nodes that are there are filled.
const mostLights = 12

// giveUpAll takes the class to the last of what it can try: no preference is left.
func (w *work) giveUpAll(c int) {
	last := len(w.q.classes[c].stages) - 1
	if w.light[c] == math.MaxInt && w.stage[c] >= last {
		w.stage[c] = last + 1
		return
	}
	w.light[c], w.stage[c] = math.MaxInt, last
}

// easedTo returns the weight up to which a whole class begins with its wishes about hosts given up.
func (w *work) easedTo(c int) int {
	if w.eased[c] {
		return math.MaxInt
	}
	return 0
}

// wishes reports whether the class would rather not be on some hosts.
func (w *work) wishes(c *class) bool {
	return slices.ContainsFunc(w.q.profile(c).Host, func(r topology.Rule) bool { return r.Weight > 0 })
}

// tiersOf splits classes, which are in order, by priority.
func (w *work) tiersOf(classes []int) [][]int {
	var out [][]int
	for _, c := range classes {
		last := len(out) - 1
		if last < 0 || w.q.classes[out[last][0]].Priority != w.q.classes[c].Priority {
			out = append(out, nil)
			last++
		}
		out[last] = append(out[last], c)
	}
	return out
}

// active returns the classes with pods left that still have something to try.
func (w *work) active() []int {
	var out []int
	for _, c := range w.order {
		if w.left[c] > 0 && w.set(c) >= 0 {
			out = append(out, c)
		}
	}
	return out
}

// weightsOf returns how much of each resource makes as much bulk as others: a
// core is as bulky as 4 GiB, whatever else is asked for has none.
func weightsOf(dims resources.Dimensions) []float64 {
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

// cloneBudgets returns budgets that can be spent by themselves.
func cloneBudgets(all []offering.Budget) []offering.Budget {
	out := make([]offering.Budget, len(all))
	for i := range all {
		out[i] = all[i].Clone()
	}
	return out
}

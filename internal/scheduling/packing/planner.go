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

// planner is the state of one planning attempt.
type planner struct {
	// Input: offerings, pending pods, and which offerings they accept.
	stock        *offering.Stock
	q            *queue
	accepts      *offering.Acceptance
	wholeClasses int       // number of classes before parts and bundles were added
	weight       []float64 // by resource: its weight in the bulk of an amount

	// Existing nodes and topology domains, updated with every placement.
	rooms  *existing.Rooms
	ground *existing.Ground // updated as pods are assigned to domains
	// planFewest is, by group of a host spread, the fewest of its pods on any existing or planned
	// node, while no more nodes are launched. Nil means that a node without any can always be
	// launched.
	planFewest map[int]existing.Scarcity

	// Progress of each class.
	order                   []int        // the classes by priority, then the larger first
	left                    []int        // by class: units that are not placed
	stage                   []int        // by class: index of the stage to try
	droppedWeight           []int        // by class: its preferences about hosts up to this weight are dropped
	droppedWeightOnExisting int          // the same for all classes while existing nodes are filled
	assigned                map[int]int  // by part: units assigned to its domains
	hostAssigned            map[int]bool // groups over host names whose pods are bundled for one node

	// What earlier attempts found out.
	domainCaps             map[string]int // by part: how many units it can take
	withoutHostPreferences map[int]bool   // by whole class: drop all preferences about hosts

	// The plan.
	placements []existingPlacement
	planned    []plannedNode
	budgets    []offering.Budget // by NodePool: what is left of its limits

	// Dual prices.
	dualPrice []float64 // by class: the marginal price of one unit, in billionths of a dollar per hour
	pricing   *pricing  // the last one computed

	// Caches.
	facts        classFacts
	roomCache    []bitset.Set            // by class; see nodesWithRoom
	narrowedSets map[string]int          // accept sets of parts, by that of the whole class
	sizePrices   []float64               // by accept set: price per size, -1 if not known yet
	aloneValues  map[aloneKey][]int      // of distinctValuesAlone
	explanations map[string]*explanation // of explain

	steps, effort int // work done, and the limit
}

// existingPlacement is a number of units of one class on one existing node.
type existingPlacement struct {
	node     int // index in rooms
	class, n int
}

// newPlanner starts a plan. It copies the arguments that it changes.
func newPlanner(st *offering.Stock, q *queue, a *offering.Acceptance, r *existing.Rooms, g *existing.Ground, effort int) *planner {
	pl := &planner{
		stock: st, accepts: a, effort: effort, rooms: r.Clone(), ground: g.Fork(),
		assigned: map[int]int{}, hostAssigned: map[int]bool{}, domainCaps: map[string]int{}, withoutHostPreferences: map[int]bool{},
		narrowedSets: map[string]int{}, aloneValues: map[aloneKey][]int{},
	}
	own := *q
	own.classes = slices.Clone(q.classes)
	pl.q, pl.wholeClasses = &own, len(q.classes)
	pl.weight = bulkWeights(st.Dims)
	for i := range own.classes {
		own.classes[i].bulk = pl.bulkOf(own.classes[i].Ask)
		pl.left = append(pl.left, own.classes[i].units())
	}
	for _, p := range st.Pools {
		pl.budgets = append(pl.budgets, p.Budget.Clone())
	}
	return pl
}

// currentSet returns the accept set that the class tries now, or -1 after the last one.
func (pl *planner) currentSet(c int) int {
	stages := pl.q.classes[c].stages
	if pl.stage[c] >= len(stages) {
		return -1
	}
	return stages[pl.stage[c]]
}

// dropPreference advances the class to its next option: the next stage, or all stages again without
// its lightest preference about hosts.
func (pl *planner) dropPreference(c int) {
	pl.stage[c]++
	class := &pl.q.classes[c]
	if pl.stage[c] < len(class.stages) {
		return
	}
	if weight := pl.nextPreferenceWeight(c, pl.droppedWeight[c]); weight > 0 {
		pl.droppedWeight[c], pl.stage[c] = weight, 0
	}
}

// nextPreferenceWeight returns the lowest weight above the given one among the class's preferences
// about hosts; 0 if there is none.
func (pl *planner) nextPreferenceWeight(c int, above int) int {
	least := 0
	pl.eachProfile(c, func(p *topology.Profile) {
		for _, r := range p.Host {
			if r.Weight > above && (least == 0 || r.Weight < least) {
				least = r.Weight
			}
		}
	})
	return least
}

// preferenceWeights returns the weights up to which the classes' preferences about hosts are
// dropped, in order: 0 for none, then all weights but the highest.
func (pl *planner) preferenceWeights(classes []int) []int {
	seen := map[int]bool{0: true}
	for _, c := range classes {
		pl.eachProfile(c, func(p *topology.Profile) {
			for _, r := range p.Host {
				seen[r.Weight] = true
			}
		})
	}
	out := slices.Sorted(maps.Keys(seen))
	out = out[:max(len(out)-1, 1)]
	if len(out) <= maxPreferenceSteps {
		return out
	}
	steps := make([]int, maxPreferenceSteps) // several weights per step; includes none, and all but the highest
	for i := range steps {
		steps[i] = out[i*(len(out)-1)/(maxPreferenceSteps-1)]
	}
	return steps
}

// maxPreferenceSteps bounds in how many steps preferences about hosts are dropped while existing
// nodes are filled.
const maxPreferenceSteps = 12

// dropAllPreferences advances the class to its last option, without preferences. If that was tried,
// no option is left.
func (pl *planner) dropAllPreferences(c int) {
	last := len(pl.q.classes[c].stages) - 1
	if pl.droppedWeight[c] == math.MaxInt && pl.stage[c] >= last {
		pl.stage[c] = last + 1
		return
	}
	pl.droppedWeight[c], pl.stage[c] = math.MaxInt, last
}

// initialDroppedWeight returns the weight up to which a whole class starts with its preferences
// about hosts dropped.
func (pl *planner) initialDroppedWeight(c int) int {
	if pl.withoutHostPreferences[c] {
		return math.MaxInt
	}
	return 0
}

// hasHostPreferences reports whether the class has preferences about hosts.
func (pl *planner) hasHostPreferences(c *class) bool {
	return slices.ContainsFunc(pl.q.profile(c).Host, func(r topology.Rule) bool { return r.Weight > 0 })
}

// tiersOf splits classes, which are in order, by priority.
func (pl *planner) tiersOf(classes []int) [][]int {
	var out [][]int
	for _, c := range classes {
		last := len(out) - 1
		if last < 0 || pl.q.classes[out[last][0]].Priority != pl.q.classes[c].Priority {
			out = append(out, nil)
			last++
		}
		out[last] = append(out[last], c)
	}
	return out
}

// active returns the classes with unplaced pods and an accept set left to try.
func (pl *planner) active() []int {
	var out []int
	for _, c := range pl.order {
		if pl.left[c] > 0 && pl.currentSet(c) >= 0 {
			out = append(out, c)
		}
	}
	return out
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

// cloneBudgets returns copies of the budgets.
func cloneBudgets(all []offering.Budget) []offering.Budget {
	out := make([]offering.Budget, len(all))
	for i := range all {
		out[i] = all[i].Clone()
	}
	return out
}

package packing

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// currentSet returns the accept set that the class tries now, or -1 after the last one.
func (q *queue) currentSet(c int) int {
	stages := q.classes[c].stages
	if q.stage[c] >= len(stages) {
		return -1
	}
	return stages[q.stage[c]]
}

// dropPreference advances the class to its next option: the next stage, or all stages again without
// its lightest preference about hosts.
func (q *queue) dropPreference(c int) {
	q.stage[c]++
	class := &q.classes[c]
	if q.stage[c] < len(class.stages) {
		return
	}
	if weight := q.nextPreferenceWeight(c, q.droppedWeight[c]); weight > 0 {
		q.droppedWeight[c], q.stage[c] = weight, 0
	}
}

// nextPreferenceWeight returns the lowest weight above the given one among the class's preferences
// about hosts; 0 if there is none.
func (q *queue) nextPreferenceWeight(c int, above int) int {
	least := 0
	q.eachProfile(c, func(p *topology.Profile) {
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
func (q *queue) preferenceWeights(classes []int) []int {
	seen := map[int]bool{0: true}
	for _, c := range classes {
		q.eachProfile(c, func(p *topology.Profile) {
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
func (q *queue) dropAllPreferences(c int) {
	last := len(q.classes[c].stages) - 1
	if q.droppedWeight[c] == math.MaxInt && q.stage[c] >= last {
		q.stage[c] = last + 1
		return
	}
	q.droppedWeight[c], q.stage[c] = math.MaxInt, last
}

// initialDroppedWeight returns the weight up to which a whole class starts with its preferences
// about hosts dropped.
func (q *queue) initialDroppedWeight(c int) int {
	if q.withoutHostPreferences[c] {
		return math.MaxInt
	}
	return 0
}

// hasHostPreferences reports whether the class has preferences about hosts.
func (q *queue) hasHostPreferences(c *class) bool {
	return slices.ContainsFunc(q.profile(c).Host, func(r topology.Rule) bool { return r.Weight > 0 })
}

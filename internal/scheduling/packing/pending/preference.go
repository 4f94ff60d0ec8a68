package pending

import (
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// CurrentSet returns the number of the accept set of the class's current stage; -1 after the last stage.
func (q *Queue) CurrentSet(c int) int {
	stages := q.Classes[c].Stages
	if q.Stage[c] >= len(stages) {
		return -1
	}
	return stages[q.Stage[c]]
}

// DropPreference advances the class to its next option: the next stage. After the last stage, it starts all stages
// again, without the class's preferences about hosts of the lowest remaining weight. After the last option, CurrentSet
// is -1.
func (q *Queue) DropPreference(c int) {
	q.Stage[c]++
	class := &q.Classes[c]
	if q.Stage[c] < len(class.Stages) {
		return
	}
	if weight := q.nextPreferenceWeight(c, q.DroppedWeight[c]); weight > 0 {
		q.DroppedWeight[c], q.Stage[c] = weight, 0
	}
}

// nextPreferenceWeight returns the lowest weight over above of the class's preferences about hosts; 0 if there is none.
func (q *Queue) nextPreferenceWeight(c, above int) int {
	least := 0
	q.EachProfile(c, func(p *topology.Profile) {
		for _, r := range p.Host {
			if r.Weight > above && (least == 0 || r.Weight < least) {
				least = r.Weight
			}
		}
	})
	return least
}

// PreferenceWeights returns the weights up to which the classes' preferences about hosts are dropped, ascending: 0 for
// none, then all weights but the highest (dropping that too leaves no preferences). Of more than maxPreferenceSteps
// weights, some between the first and the last are left out.
func (q *Queue) PreferenceWeights(classes []int) []int {
	seen := map[int]bool{0: true}
	for _, c := range classes {
		q.EachProfile(c, func(p *topology.Profile) {
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
	steps := make([]int, maxPreferenceSteps) // evenly spaced in out, from its first to its last weight
	for i := range steps {
		steps[i] = out[i*(len(out)-1)/(maxPreferenceSteps-1)]
	}
	return steps
}

// maxPreferenceSteps is the maximum number of steps in which preferences about hosts are dropped while existing
// nodes are filled.
const maxPreferenceSteps = 12

// DropAllPreferences advances the class to its last option, without preferences. If that was its option already,
// none is left: CurrentSet is -1.
func (q *Queue) DropAllPreferences(c int) {
	last := len(q.Classes[c].Stages) - 1
	if q.DroppedWeight[c] == math.MaxInt && q.Stage[c] >= last {
		q.Stage[c] = last + 1
		return
	}
	q.DroppedWeight[c], q.Stage[c] = math.MaxInt, last
}

// InitialDroppedWeight returns the initial DroppedWeight of a whole class: 0, or math.MaxInt (drops all) if
// WithoutHostPreferences has the class.
func (q *Queue) InitialDroppedWeight(c int) int {
	if q.WithoutHostPreferences[c] {
		return math.MaxInt
	}
	return 0
}

// HasHostPreferences reports whether the class has preferences about hosts.
func (q *Queue) HasHostPreferences(c *Class) bool {
	return slices.ContainsFunc(q.Profile(c).Host, func(r topology.Rule) bool { return r.Weight > 0 })
}

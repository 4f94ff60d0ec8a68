package collector

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// countTypesPerRequirement counts how many instance types of a region remain after each requirement of a pool, by
// architecture, for an AMI family. A requirement on a label that no instance type has (user-defined labels, zones,
// capacity types) is skipped. If all are skipped, there is one step with all types. The result is nil if the
// region is not known.
func countTypesPerRequirement(p diagnosis.Pool, family, region string) []diagnosis.Step {
	types, keys := offeredTypes(family, region)
	if types == nil {
		return nil
	}
	var out []diagnosis.Step
	for _, r := range p.Requirements {
		if !keys[r.Key] {
			continue
		}
		accepted, invalid := requirements.All(requirements.Requirement{Key: r.Key, Operator: requirements.Operator(r.Operator), Values: r.Values})
		if invalid != nil {
			continue // the API server rejects such a pool
		}
		var kept []catalog.Type
		step := diagnosis.Step{Name: r.String(), Left: map[string]int{}}
		for _, t := range types {
			if accepted.Accepts(t.Labels) {
				kept = append(kept, t)
				step.Left[t.Labels[catalog.LabelArch]]++
			}
		}
		types, out = kept, append(out, step)
	}
	if len(out) == 0 {
		step := diagnosis.Step{Name: "no requirement on types", Left: map[string]int{}}
		for _, t := range types {
			step.Left[t.Labels[catalog.LabelArch]]++
		}
		out = append(out, step)
	}
	return out
}

// offeredTypes returns the instance types of a region on which an AMI family runs, and the keys of their labels; nil if
// the region is not known.
func offeredTypes(family, region string) ([]catalog.Type, map[string]bool) {
	table, err := catalog.Embedded()
	if err != nil {
		return nil, nil
	}
	all, err := table.Catalog(region, catalog.Settings{Family: family})
	if err != nil {
		return nil, nil
	}
	keys := map[string]bool{}
	for _, t := range all.Types {
		for k := range t.Labels {
			keys[k] = true
		}
	}
	return all.Types, keys
}

func hasNoTypes(steps []diagnosis.Step) bool {
	return len(steps) > 0 && len(steps[len(steps)-1].Left) == 0
}

// mostOptions is the maximum number of values from which loosening chooses the first. With more values, the user must
// choose.
const mostOptions = 3

// loosening returns the smallest change after which a pool without instance types has some: one more value for the
// requirement for which the fewest values would help. It is nil if more than mostOptions values would help, or if
// adding one value is not enough.
func loosening(p diagnosis.Pool, family, region string) *diagnosis.Loosening {
	types, keys := offeredTypes(family, region)
	var best *diagnosis.Loosening
	fewest := mostOptions + 1
	for i, r := range p.Requirements {
		if r.Operator != "In" || !keys[r.Key] {
			continue
		}
		values := optionsOf(p, i, types, keys)
		if len(values) > 0 && len(values) < fewest {
			fewest, best = len(values), &diagnosis.Loosening{Index: i, Key: r.Key, Value: values[0]}
		}
	}
	return best
}

// optionsOf returns, sorted, the values that the label of p.Requirements[except] has on the types that the pool's other
// requirements allow.
func optionsOf(p diagnosis.Pool, except int, types []catalog.Type, keys map[string]bool) []string {
	values := map[string]bool{}
next:
	for _, t := range types {
		for i, r := range p.Requirements {
			if i == except || !keys[r.Key] {
				continue
			}
			accepted, invalid := requirements.All(
				requirements.Requirement{Key: r.Key, Operator: requirements.Operator(r.Operator), Values: r.Values})
			if invalid == nil && !accepted.Accepts(t.Labels) {
				continue next
			}
		}
		if v := t.Labels[p.Requirements[except].Key]; v != "" {
			values[v] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}

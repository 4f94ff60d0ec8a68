package evidence

import (
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/diagnosis"
)

// steps counts how many instance types of a region are left after each requirement of a pool, by architecture. Requirements on
// labels that no instance type has, such as the user's own, zones and ways of paying, leave all. Nil where the region is not known.
func steps(p diagnosis.Pool, region string) []diagnosis.Step {
	table, err := catalog.Embedded()
	if err != nil {
		return nil
	}
	all, err := table.Catalog(region, catalog.Settings{})
	if err != nil {
		return nil
	}
	keys := map[string]bool{}
	for _, t := range all.Types {
		for k := range t.Labels {
			keys[k] = true
		}
	}
	left := all.Types
	var out []diagnosis.Step
	for _, r := range p.Requirements {
		if !keys[r.Key] {
			continue
		}
		needs, wrong := constraint.All(constraint.Requirement{Key: r.Key, Operator: constraint.Operator(r.Operator), Values: r.Values})
		if wrong != nil {
			continue // the API server refuses such a pool
		}
		var kept []catalog.Type
		step := diagnosis.Step{Name: r.String(), Left: map[string]int{}}
		for _, t := range left {
			if needs.Accepts(t.Labels) {
				kept = append(kept, t)
				step.Left[t.Labels[catalog.LabelArch]]++
			}
		}
		left, out = kept, append(out, step)
	}
	if len(out) == 0 {
		step := diagnosis.Step{Name: "no requirement on types", Left: map[string]int{}}
		for _, t := range left {
			step.Left[t.Labels[catalog.LabelArch]]++
		}
		out = append(out, step)
	}
	return out
}

package kube

import (
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/constraint"
)

// requirementsOf returns requirements as the engine has them, keys by their present names.
func requirementsOf(reqs karpv1.Requirements) []constraint.Requirement {
	out := make([]constraint.Requirement, 0, len(reqs))
	for _, r := range reqs {
		c := constraint.Requirement{
			Key: stableKey(r.Key), Operator: constraint.Operator(r.Operator), Values: r.Values,
		}
		if r.MinValues != nil {
			c.MinValues = *r.MinValues
		}
		out = append(out, c)
	}
	return out
}

// requirementValues returns what all of reqs accept together, by key.
func requirementValues(reqs karpv1.Requirements) constraint.Requirements {
	out, _ := constraint.All(requirementsOf(reqs)...)
	return out
}

func classNameOf(ref *karpv1.NodeClassReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

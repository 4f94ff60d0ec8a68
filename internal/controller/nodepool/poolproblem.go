package nodepool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
)

// PoolProblem returns the problems of a pool's spec that the schema cannot find; empty if there are none.
func PoolProblem(pool *karpv1.NodePool) string {
	var problems []string
	template := pool.Spec.Template
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		problems = append(problems, labelProblems("spec.template.metadata.labels", key, template.Labels[key])...)
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field  string
		taints []corev1.Taint
	}{{"taints", template.Spec.Taints}, {"startupTaints", template.Spec.StartupTaints}} {
		for _, t := range list.taints {
			problems = append(problems, taintProblems("spec.template.spec."+list.field, t, seen)...)
		}
	}
	for i, r := range template.Spec.Requirements {
		problems = append(problems, poolhealth.RequirementProblems(fmt.Sprintf("spec.template.spec.requirements[%d]", i), r)...)
	}
	return strings.Join(problems, "; ")
}

func labelProblems(field, key, value string) []string {
	var problems []string
	if text := poolhealth.WhyRestricted(key); text != "" {
		problems = append(problems, field+": "+text)
	}
	for _, text := range validation.IsQualifiedName(key) {
		problems = append(problems, fmt.Sprintf("%s: key %q: %s", field, key, text))
	}
	for _, text := range validation.IsValidLabelValue(value) {
		problems = append(problems, fmt.Sprintf("%s: value %q of %s: %s", field, value, key, text))
	}
	return problems
}

// taintProblems returns the problems of one taint. seen has the earlier taints of the pool as "key:effect";
// taintProblems adds this one.
func taintProblems(field string, t corev1.Taint, seen map[string]bool) []string {
	var problems []string
	for _, text := range validation.IsQualifiedName(t.Key) {
		problems = append(problems, fmt.Sprintf("%s: key %q: %s", field, t.Key, text))
	}
	if t.Value != "" {
		for _, text := range validation.IsValidLabelValue(t.Value) {
			problems = append(problems, fmt.Sprintf("%s: value %q of %s: %s", field, t.Value, t.Key, text))
		}
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, ""}
	if !slices.Contains(effects, t.Effect) {
		problems = append(problems, fmt.Sprintf("%s: effect %q of %s is not NoSchedule, PreferNoSchedule or NoExecute",
			field, t.Effect, t.Key))
	}
	id := t.Key + ":" + string(t.Effect)
	if seen[id] {
		problems = append(problems, field+": "+id+" is listed twice")
	}
	seen[id] = true
	return problems
}

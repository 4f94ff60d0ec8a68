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
	var wrong []string
	template := pool.Spec.Template
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		wrong = append(wrong, labelProblems("spec.template.metadata.labels", key, template.Labels[key])...)
	}
	seen := map[string]bool{}
	for _, list := range []struct {
		field  string
		taints []corev1.Taint
	}{{"taints", template.Spec.Taints}, {"startupTaints", template.Spec.StartupTaints}} {
		for _, t := range list.taints {
			wrong = append(wrong, taintProblems("spec.template.spec."+list.field, t, seen)...)
		}
	}
	for i, r := range template.Spec.Requirements {
		wrong = append(wrong, poolhealth.RequirementProblems(fmt.Sprintf("spec.template.spec.requirements[%d]", i), r)...)
	}
	return strings.Join(wrong, "; ")
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

// taintProblems returns the problems of one taint, one sentence per problem. seen has the earlier taints of the pool as
// "key:effect"; taintProblems adds this one.
func taintProblems(field string, t corev1.Taint, seen map[string]bool) []string {
	var wrong []string
	for _, text := range validation.IsQualifiedName(t.Key) {
		wrong = append(wrong, fmt.Sprintf("%s: key %q: %s", field, t.Key, text))
	}
	if t.Value != "" {
		for _, text := range validation.IsValidLabelValue(t.Value) {
			wrong = append(wrong, fmt.Sprintf("%s: value %q of %s: %s", field, t.Value, t.Key, text))
		}
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, ""}
	if !slices.Contains(effects, t.Effect) {
		wrong = append(wrong, fmt.Sprintf("%s: effect %q of %s is not NoSchedule, PreferNoSchedule or NoExecute", field, t.Effect, t.Key))
	}
	id := t.Key + ":" + string(t.Effect)
	if seen[id] {
		wrong = append(wrong, field+": "+id+" is listed twice")
	}
	seen[id] = true
	return wrong
}

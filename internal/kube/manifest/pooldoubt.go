package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/suggest"
)

// poolMistakes returns notes about values of a NodePool that an API server accepts and that have no effect.
func poolMistakes(p *karpv1.NodePool) []problem {
	var out []problem
	for i, r := range p.Spec.Template.Spec.Requirements {
		at := fmt.Sprintf("spec.template.spec.requirements[%d]", i)
		if meant := meantInstanceLabel(r.Key, r.Values); meant != "" {
			text := fmt.Sprintf("%s: %s does not select instances; nodes get the label unchanged: did you mean %s?", at, r.Key, meant)
			out = append(out, problem{text, "key", r.Key})
		}
		for _, value := range r.Values {
			if meant := catalog.SuggestedValue(r.Key, value); meant != "" &&
				(r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn) {
				text := fmt.Sprintf("%s (%s): no instance has the value %s: did you mean %s?", at, r.Key, value, meant)
				out = append(out, problem{text, "values", value})
			}
		}
		if n := len(r.Values); n > 0 && (r.Operator == corev1.NodeSelectorOpExists || r.Operator == corev1.NodeSelectorOpDoesNotExist) {
			use := map[corev1.NodeSelectorOperator]string{corev1.NodeSelectorOpExists: "In", corev1.NodeSelectorOpDoesNotExist: "NotIn"}[r.Operator]
			text := fmt.Sprintf("%s (%s): operator %s ignores values: did you mean operator %s?", at, r.Key, r.Operator, use)
			out = append(out, problem{text, "operator", string(r.Operator)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
		if strings.Contains(string(name), "/") || slices.Contains(limitResources, string(name)) ||
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		text := fmt.Sprintf("spec.limits.%s: no node has such a resource, so it limits nothing", name)
		meant := resourceWords[strings.ToLower(string(name))]
		if meant == "" {
			meant = suggest.Nearest(string(name), limitResources)
		}
		if meant != "" {
			text += ": did you mean " + meant + "?"
		}
		out = append(out, problem{text, string(name), ""})
	}
	return out
}

// limitResources are the resources without a domain that a NodePool may limit.
var limitResources = []string{"cpu", "memory", "ephemeral-storage", "pods", "nodes"}

// meantInstanceLabel returns the label that key probably means, of the labels that select instances; empty if key
// itself selects instances, or if no such label is similar.
func meantInstanceLabel(key string, values []string) string {
	known := awsv1.WellKnownLabels()
	if slices.Contains(known, conversion.StableKey(key)) {
		return ""
	}
	value := "" // the only value; empty if there are several
	if len(values) == 1 {
		value = values[0]
	}
	if foreign, ok := catalog.ForeignLabelOf(key, value); ok && foreign.Key != key && slices.Contains(known, foreign.Key) {
		return foreign.Key
	}
	if strings.HasSuffix(key, "/zone-id") {
		return catalog.LabelZoneID
	}
	return meantLabel(key)
}

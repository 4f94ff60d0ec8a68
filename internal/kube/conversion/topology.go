package conversion

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// topology holds the constraints of a pod on the location of other pods.
type topology struct {
	spread      []cluster.Spread
	near, apart []cluster.Term // pod affinity and anti-affinity: required terms as written, then preferred ones, highest weight first
	wrong       string         // why kube-scheduler would reject the pod; the other fields hold the readable part
}

// topologyOf reads the pod's spread constraints, pod affinity and anti-affinity.
func topologyOf(pod *corev1.Pod, around References) topology {
	var out topology
	out.spread, out.wrong = spreads(pod)
	if len(pod.Spec.TopologySpreadConstraints) == 0 && around.Groups != nil {
		out.spread = around.Usual.of(pod, around.Groups)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		var wrong string
		out.near, wrong = podTerms("podAffinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, pod, around.Namespaces)
		out.wrong = cmp.Or(out.wrong, wrong)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		var wrong string
		out.apart, wrong = podTerms("podAntiAffinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, pod, around.Namespaces)
		out.wrong = cmp.Or(out.wrong, wrong)
	}
	if around.IgnorePreferences {
		out.spread = slices.DeleteFunc(out.spread, func(s cluster.Spread) bool { return s.Soft })
		out.near, out.apart = RequiredPodTerms(out.near), RequiredPodTerms(out.apart)
	}
	return out
}

// MaxTerms is the maximum number of spread constraints of a pod, and of terms of an affinity. Real pods have a handful.
const MaxTerms = 64

// spreads reads the pod's own spread constraints.
func spreads(pod *corev1.Pod) ([]cluster.Spread, string) {
	if n := len(pod.Spec.TopologySpreadConstraints); n > MaxTerms {
		return nil, fmt.Sprintf("its topologySpreadConstraints are %d, more than %d", n, MaxTerms)
	}
	var out []cluster.Spread
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		spread, wrong := spreadOf(c, pod.Labels)
		if wrong != "" {
			return out, fmt.Sprintf("its topologySpreadConstraints[%d]%s", i, wrong)
		}
		out = append(out, spread)
	}
	return out, ""
}

// spreadOf reads a spread constraint of a pod with these labels. The text is empty, or the rest of a sentence that
// begins with the constraint's path.
func spreadOf(c *corev1.TopologySpreadConstraint, labels requirements.Labels) (cluster.Spread, string) {
	out := cluster.Spread{
		Key:     StableKey(c.TopologyKey),
		MaxSkew: int(c.MaxSkew),
		Soft:    c.WhenUnsatisfiable == corev1.ScheduleAnyway,
	}
	var wrong string
	switch {
	case !isLabelKey(c.TopologyKey):
		return out, fmt.Sprintf(".topologyKey is %.100q, which is no label", c.TopologyKey)
	case c.MaxSkew < 1:
		return out, fmt.Sprintf(".maxSkew is %d, less than 1", c.MaxSkew)
	case !out.Soft && c.WhenUnsatisfiable != corev1.DoNotSchedule:
		return out, fmt.Sprintf(".whenUnsatisfiable is %.100q, neither DoNotSchedule nor ScheduleAnyway", c.WhenUnsatisfiable)
	case c.MinDomains != nil && *c.MinDomains < 1:
		return out, fmt.Sprintf(".minDomains is %d, less than 1", *c.MinDomains)
	}
	if c.MinDomains != nil && *c.MinDomains > 1 && !out.Soft { // a soft constraint cannot have minDomains
		out.MinDomains = int(*c.MinDomains)
	}
	if out.AnyNode, wrong = policy(".nodeAffinityPolicy", c.NodeAffinityPolicy, corev1.NodeInclusionPolicyIgnore); wrong != "" {
		return out, wrong
	}
	if out.HonorTaints, wrong = policy(".nodeTaintsPolicy", c.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor); wrong != "" {
		return out, wrong
	}
	if out.Selector, wrong = selectorOf(c.LabelSelector); wrong != "" {
		return out, ".labelSelector" + wrong
	}
	narrowSelector(&out.Selector, c.MatchLabelKeys, labels, true)
	if len(out.Selector.Labels) == 0 {
		// An empty selector would match every pod, but kube-scheduler counts no pods for it.
		out.Selector = cluster.Selector{Nothing: true}
	}
	return out, ""
}

// policy reports whether a node inclusion policy has the value other, which is not the default. The text says why the
// policy is invalid.
func policy(field string, value *corev1.NodeInclusionPolicy, other corev1.NodeInclusionPolicy) (bool, string) {
	if value == nil || *value == corev1.NodeInclusionPolicyHonor || *value == corev1.NodeInclusionPolicyIgnore {
		return value != nil && *value == other, ""
	}
	return false, fmt.Sprintf("%s is %.100q, neither Honor nor Ignore", field, *value)
}

// podTerms reads the terms of a pod affinity or anti-affinity (kind). The text says why a term is invalid. As in
// kube-scheduler, an invalid required term discards all terms.
func podTerms(kind string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm,
	pod *corev1.Pod, spaces *Namespaces) ([]cluster.Term, string) {
	if n := len(required) + len(preferred); n > MaxTerms {
		return nil, fmt.Sprintf("its %s has %d terms, more than %d", kind, n, MaxTerms)
	}
	var out, soft []cluster.Term
	for i := range required {
		term, wrong := podTerm(&required[i], pod, spaces)
		if wrong != "" {
			return nil, fmt.Sprintf("its %s.requiredDuringSchedulingIgnoredDuringExecution[%d]%s", kind, i, wrong)
		}
		out = append(out, term)
	}
	for i := range preferred {
		weight := preferred[i].Weight
		term, wrong := podTerm(&preferred[i].PodAffinityTerm, pod, spaces)
		switch {
		case weight < 1 || weight > 100:
			wrong = fmt.Sprintf(".weight is %d, not between 1 and 100", weight)
		case wrong != "":
			wrong = ".podAffinityTerm" + wrong
		}
		if wrong != "" {
			return out, fmt.Sprintf("its %s.preferredDuringSchedulingIgnoredDuringExecution[%d]%s", kind, i, wrong)
		}
		term.Weight = int(weight)
		soft = append(soft, term)
	}
	slices.SortStableFunc(soft, func(a, b cluster.Term) int { return cmp.Compare(b.Weight, a.Weight) })
	return append(out, soft...), ""
}

// podTerm reads one term of the pod. The text is empty, or the rest of a sentence that begins with the term's path.
func podTerm(t *corev1.PodAffinityTerm, pod *corev1.Pod, spaces *Namespaces) (cluster.Term, string) {
	out := cluster.Term{Key: StableKey(t.TopologyKey)}
	if !isLabelKey(t.TopologyKey) {
		return out, fmt.Sprintf(".topologyKey is %.100q, which is no label", t.TopologyKey)
	}
	var wrong string
	if out.Selector, wrong = selectorOf(t.LabelSelector); wrong != "" {
		return out, ".labelSelector" + wrong
	}
	// The API server merges these keys into the selector of a created pod; a template still has them.
	narrowSelector(&out.Selector, t.MatchLabelKeys, pod.Labels, true)
	narrowSelector(&out.Selector, t.MismatchLabelKeys, pod.Labels, false)
	switch {
	case len(t.Namespaces) == 0 && t.NamespaceSelector == nil:
		out.Namespaces = spaces.alone(pod.Namespace)
	case t.NamespaceSelector == nil:
		out.Namespaces = sortedNames(t.Namespaces)
	default:
		selector, wrong := selectorOf(t.NamespaceSelector)
		if wrong != "" {
			return out, ".namespaceSelector" + wrong
		}
		if out.AllNamespaces = len(selector.Labels) == 0; !out.AllNamespaces {
			found, ok := spaces.selected(selector, pod.Namespace)
			if !ok {
				return out, ".namespaceSelector is one of too many: pods of namespace " + pod.Namespace +
					" have more different ones than are planned for"
			}
			if out.Namespaces = found; len(t.Namespaces) > 0 {
				out.Namespaces = sortedNames(slices.Concat(t.Namespaces, found))
			}
		}
	}
	return out, ""
}

// RequiredAntiAffinity returns the required anti-affinity terms of the pod, without an error if they are invalid.
func RequiredAntiAffinity(pod *corev1.Pod, around References) []cluster.Term {
	a := pod.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	terms, _ := podTerms("podAntiAffinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, nil, pod, around.Namespaces)
	return terms
}

// RequiredPodTerms returns the required ones of the terms.
func RequiredPodTerms(terms []cluster.Term) []cluster.Term {
	var out []cluster.Term
	for _, t := range terms {
		if t.Weight == 0 {
			out = append(out, t)
		}
	}
	return out
}

package conversion

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// topology holds the constraints of a pod that depend on the location of other pods.
type topology struct {
	spread                 []cluster.Spread
	affinity, antiAffinity []cluster.Term // required terms in the order of the pod, then preferred ones, highest weight first
	problem                string         // why kube-scheduler would reject the pod; the other fields then lack the invalid constraints
}

// topologyOf reads the pod's spread constraints, pod affinity and anti-affinity.
func topologyOf(pod *corev1.Pod, refs References) topology {
	var out topology
	out.spread, out.problem = spreads(pod)
	if len(pod.Spec.TopologySpreadConstraints) == 0 && refs.Groups != nil {
		out.spread = refs.DefaultSpread.constraintsOf(pod, refs.Groups)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		var problem string
		out.affinity, problem = podTerms("podAffinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, pod, refs.Namespaces)
		out.problem = cmp.Or(out.problem, problem)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		var problem string
		out.antiAffinity, problem = podTerms("podAntiAffinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, pod, refs.Namespaces)
		out.problem = cmp.Or(out.problem, problem)
	}
	if refs.IgnorePreferences {
		out.spread = slices.DeleteFunc(out.spread, func(s cluster.Spread) bool { return s.Soft })
		out.affinity, out.antiAffinity = RequiredPodTerms(out.affinity), RequiredPodTerms(out.antiAffinity)
	}
	return out
}

// MaxTerms is the maximum number of a pod's spread constraints, and of terms in its pod affinity and in its pod
// anti-affinity. Real pods have a handful.
const MaxTerms = 64

// spreads reads the pod's own spread constraints, up to the first invalid one. The text says why that one is invalid.
func spreads(pod *corev1.Pod) ([]cluster.Spread, string) {
	if n := len(pod.Spec.TopologySpreadConstraints); n > MaxTerms {
		return nil, fmt.Sprintf("its topologySpreadConstraints are %d, more than %d", n, MaxTerms)
	}
	var out []cluster.Spread
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		spread, problem := spreadOf(c, pod.Labels)
		if problem != "" {
			return out, fmt.Sprintf("its topologySpreadConstraints[%d]%s", i, problem)
		}
		out = append(out, spread)
	}
	return out, ""
}

// spreadOf reads a spread constraint of a pod with these labels. The text says why kube-scheduler would reject the
// constraint; empty if it would not. The caller puts the constraint's path before the text.
func spreadOf(c *corev1.TopologySpreadConstraint, labels requirements.Labels) (cluster.Spread, string) {
	out := cluster.Spread{
		Key:     StableKey(c.TopologyKey),
		MaxSkew: int(c.MaxSkew),
		Soft:    c.WhenUnsatisfiable == corev1.ScheduleAnyway,
	}
	var problem string
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
	if c.MinDomains != nil && *c.MinDomains > 1 && !out.Soft { // the API server rejects minDomains with ScheduleAnyway
		out.MinDomains = int(*c.MinDomains)
	}
	if out.IgnoresNodeAffinity, problem = policyIs(".nodeAffinityPolicy", c.NodeAffinityPolicy, corev1.NodeInclusionPolicyIgnore); problem != "" {
		return out, problem
	}
	if out.HonorTaints, problem = policyIs(".nodeTaintsPolicy", c.NodeTaintsPolicy, corev1.NodeInclusionPolicyHonor); problem != "" {
		return out, problem
	}
	if out.Selector, problem = selectorOf(c.LabelSelector); problem != "" {
		return out, ".labelSelector" + problem
	}
	narrowSelector(&out.Selector, c.MatchLabelKeys, labels, true)
	if len(out.Selector.Labels) == 0 {
		// An empty selector would match every pod, but kube-scheduler counts no pods for it.
		out.Selector = cluster.Selector{MatchesNothing: true}
	}
	return out, ""
}

// policyIs reports whether value, which is set in field, is the given policy. policy must not be the default, which a
// nil value means. The text says why value is invalid.
func policyIs(field string, value *corev1.NodeInclusionPolicy, policy corev1.NodeInclusionPolicy) (bool, string) {
	if value == nil || *value == corev1.NodeInclusionPolicyHonor || *value == corev1.NodeInclusionPolicyIgnore {
		return value != nil && *value == policy, ""
	}
	return false, fmt.Sprintf("%s is %.100q, neither Honor nor Ignore", field, *value)
}

// podTerms reads the terms of kind, "podAffinity" or "podAntiAffinity". The text says why a term is invalid. As in
// kube-scheduler, an invalid required term discards all terms.
func podTerms(kind string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm,
	pod *corev1.Pod, namespaces *Namespaces) ([]cluster.Term, string) {
	if n := len(required) + len(preferred); n > MaxTerms {
		return nil, fmt.Sprintf("its %s has %d terms, more than %d", kind, n, MaxTerms)
	}
	var out, weighted []cluster.Term
	for i := range required {
		term, problem := podTerm(&required[i], pod, namespaces)
		if problem != "" {
			return nil, fmt.Sprintf("its %s.requiredDuringSchedulingIgnoredDuringExecution[%d]%s", kind, i, problem)
		}
		out = append(out, term)
	}
	for i := range preferred {
		weight := preferred[i].Weight
		term, problem := podTerm(&preferred[i].PodAffinityTerm, pod, namespaces)
		switch {
		case weight < 1 || weight > 100:
			problem = fmt.Sprintf(".weight is %d, not between 1 and 100", weight)
		case problem != "":
			problem = ".podAffinityTerm" + problem
		}
		if problem != "" {
			return out, fmt.Sprintf("its %s.preferredDuringSchedulingIgnoredDuringExecution[%d]%s", kind, i, problem)
		}
		term.Weight = int(weight)
		weighted = append(weighted, term)
	}
	slices.SortStableFunc(weighted, func(a, b cluster.Term) int { return cmp.Compare(b.Weight, a.Weight) })
	return append(out, weighted...), ""
}

// podTerm reads one term of the pod. The text says why the term is invalid; empty if it is valid. The caller puts the
// term's path before the text.
func podTerm(t *corev1.PodAffinityTerm, pod *corev1.Pod, namespaces *Namespaces) (cluster.Term, string) {
	out := cluster.Term{Key: StableKey(t.TopologyKey)}
	if !isLabelKey(t.TopologyKey) {
		return out, fmt.Sprintf(".topologyKey is %.100q, which is no label", t.TopologyKey)
	}
	var problem string
	if out.Selector, problem = selectorOf(t.LabelSelector); problem != "" {
		return out, ".labelSelector" + problem
	}
	// The API server merges these keys into the selector when it creates a pod; in a template they are still separate.
	narrowSelector(&out.Selector, t.MatchLabelKeys, pod.Labels, true)
	narrowSelector(&out.Selector, t.MismatchLabelKeys, pod.Labels, false)
	switch {
	case len(t.Namespaces) == 0 && t.NamespaceSelector == nil:
		out.Namespaces = namespaces.listOf(pod.Namespace)
	case t.NamespaceSelector == nil:
		out.Namespaces = sortedNames(t.Namespaces)
	default:
		selector, problem := selectorOf(t.NamespaceSelector)
		if problem != "" {
			return out, ".namespaceSelector" + problem
		}
		if out.AllNamespaces = len(selector.Labels) == 0; !out.AllNamespaces {
			found, ok := namespaces.matching(selector, pod.Namespace)
			if !ok {
				return out, ".namespaceSelector is one of too many: pods of namespace " + pod.Namespace +
					" have more different namespaceSelectors than Joiner evaluates"
			}
			if out.Namespaces = found; len(t.Namespaces) > 0 {
				out.Namespaces = sortedNames(slices.Concat(t.Namespaces, found))
			}
		}
	}
	return out, ""
}

// RequiredAntiAffinity returns the required anti-affinity terms of the pod; nil if there are none, or if one is
// invalid.
func RequiredAntiAffinity(pod *corev1.Pod, refs References) []cluster.Term {
	a := pod.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	terms, _ := podTerms("podAntiAffinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, nil, pod, refs.Namespaces)
	return terms
}

// RequiredPodTerms returns the required terms, which have no weight.
func RequiredPodTerms(terms []cluster.Term) []cluster.Term {
	var out []cluster.Term
	for _, t := range terms {
		if t.Weight == 0 {
			out = append(out, t)
		}
	}
	return out
}

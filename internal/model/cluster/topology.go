package cluster

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Spread is a topology spread constraint: the pods that Selector matches, in the pod's own namespace, must be spread
// evenly over the domains of Key. A domain is the set of nodes with the same value of the label Key.
//
// The pod can run only on a node that has the label. Counting the pod itself, the node's domain must have at most
// MaxSkew more matching pods than the domain with the fewest.
type Spread struct {
	Key     string // a node label: topology.kubernetes.io/zone, kubernetes.io/hostname, …
	MaxSkew int    // 1 or more
	// MinDomains is the minimum number of domains: with fewer domains, the smallest number of matching pods in a domain
	// is taken as 0. 0 and 1 have no effect.
	MinDomains int
	Soft       bool // ScheduleAnyway: a preference, not a requirement

	// Selector is the constraint's selector, including its matchLabelKeys.
	Selector Selector

	// IgnoresNodeAffinity means that the domains include nodes that the pod's node selector or node affinity rejects
	// (nodeAffinityPolicy Ignore; the default is Honor).
	IgnoresNodeAffinity bool
	// HonorTaints means that the domains do not include nodes with a taint that the pod does not tolerate
	// (nodeTaintsPolicy Honor; the default is Ignore).
	HonorTaints bool
}

// Term is a pod affinity or anti-affinity term. With affinity, the pod's node must be in a domain of Key that has a pod
// that the term matches. With anti-affinity, the node must not be in such a domain.
type Term struct {
	Key    string // a node label
	Weight int    // 1..100 for a preference, 0 for a requirement

	// Namespaces are the namespaces whose pods the term can match, sorted, including those that namespaceSelector
	// selects. With AllNamespaces, it can match pods of every namespace.
	Namespaces    []string
	AllNamespaces bool

	// Selector is the term's selector, including its matchLabelKeys and mismatchLabelKeys.
	Selector Selector
}

// Matches reports whether the term matches a pod with these labels in that namespace.
func (t *Term) Matches(namespace string, labels requirements.Labels) bool {
	if !t.AllNamespaces {
		if _, found := slices.BinarySearch(t.Namespaces, namespace); !found {
			return false
		}
	}
	return t.Selector.Matches(labels)
}

// Selector selects pods by their labels. The zero value matches every pod, as an empty selector does in Kubernetes.
type Selector struct {
	MatchesNothing bool                      // there is no selector, so no pod matches
	Labels         requirements.Requirements // requirements on the labels of the pods
}

// Matches reports whether the selector matches a pod with these labels.
func (s Selector) Matches(labels requirements.Labels) bool {
	return !s.MatchesNothing && s.Labels.Accepts(labels)
}

// PodKind has the fields of a pod that affect the placement of other pods. Pods that are equal in them share one
// PodKind, which is never changed.
type PodKind struct {
	Namespace string              // namespace of the pods
	Labels    requirements.Labels // labels of the pods
	// RequiredAntiAffinity are the required anti-affinity terms of the pods. No other pod that a term matches may be
	// scheduled to a node of the same domain.
	RequiredAntiAffinity []Term
	// Terminating means that the pods are being deleted. Spread constraints ignore them. Affinity and anti-affinity
	// terms match them until they no longer exist.
	Terminating bool
}

// Resident is a number of pods of one kind on a node.
type Resident struct {
	*PodKind
	Count int // number of pods
}

package cluster

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Spread is a topology spread constraint: the pods that Selector matches, in the pod's own namespace, must be spread
// evenly over the domains of Key. A domain is the nodes with one value of the label.
//
// A node accepts the pod only if it has the label, and if its domain would then have at most MaxSkew more matching pods
// than the domain with the fewest.
type Spread struct {
	Key     string // a node label: topology.kubernetes.io/zone, kubernetes.io/hostname, …
	MaxSkew int    // 1 or more
	// MinDomains is the minimum number of domains: with fewer domains, the smallest count is taken as 0. 0 and 1 have
	// no effect.
	MinDomains int
	Soft       bool // ScheduleAnyway: a preference, not a requirement

	// Selector is the constraint's selector, including its matchLabelKeys.
	Selector Selector

	// AnyNode means that nodes that the pod's node selector and affinity reject also count (nodeAffinityPolicy Ignore;
	// the default is Honor).
	AnyNode bool
	// HonorTaints means that nodes with a taint that the pod does not tolerate do not count (nodeTaintsPolicy Honor;
	// the default is Ignore).
	HonorTaints bool
}

// Term is a pod affinity or anti-affinity term. It refers to the domains of Key that have a pod which the term matches.
type Term struct {
	Key    string // a node label
	Weight int    // 1..100 for a preference, 0 for a requirement

	// Namespaces are the namespaces whose pods count, sorted, including those that namespaceSelector selects. With
	// AllNamespaces, the pods of every namespace count.
	Namespaces    []string
	AllNamespaces bool

	// Selector is the term's selector, including its matchLabelKeys and mismatchLabelKeys.
	Selector Selector
}

// Matches reports whether the term counts a pod with these labels in that namespace.
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
	Nothing bool                      // there is no selector, so no pod matches
	Labels  requirements.Requirements // of the pods
}

// Matches reports whether the selector matches a pod with these labels.
func (s Selector) Matches(labels requirements.Labels) bool {
	return !s.Nothing && s.Labels.Accepts(labels)
}

// Kind has the fields of a pod that affect the placement of other pods. Equal pods share one Kind; it is never changed.
type Kind struct {
	Namespace string              // of the pods
	Labels    requirements.Labels // of the pods
	// Avoids are the pod's required anti-affinity terms: a pod that one of them matches must not be in its domain.
	Avoids []Term
	// Ending means that the pod is being deleted. Spread constraints do not count it; affinity and anti-affinity count
	// it until it is gone.
	Ending bool
}

// Resident is a number of pods of one kind on a node.
type Resident struct {
	*Kind
	Count int // number of pods
}

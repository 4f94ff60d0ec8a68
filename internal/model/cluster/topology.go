package cluster

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Spread says that the pods which Selector matches, in the pod's own namespace,
// lie evenly over the domains of Key: over its values, each with the nodes that have it.
//
// A node takes the pod only if it has the label, and if the pods there would
// then be no more than MaxSkew above the domain that has the fewest.
type Spread struct {
	Key     string // a node label: topology.kubernetes.io/zone, kubernetes.io/hostname, …
	MaxSkew int    // 1 or more
	// MinDomains is how many domains there should be: with fewer, the fewest
	// pods count as none. 0 and 1 ask for nothing.
	MinDomains int
	Soft       bool // ScheduleAnyway: a preference, not a requirement

	// Selector is the constraint's, with what its matchLabelKeys come to.
	Selector Selector

	// AnyNode: nodes that the pod's node selector and affinity refuse count
	// too (nodeAffinityPolicy Ignore; the default is Honor).
	AnyNode bool
	// HonorTaints: nodes with a taint that the pod does not tolerate do not
	// count (nodeTaintsPolicy Honor; the default is Ignore).
	HonorTaints bool
}

// Term is a pod affinity or anti-affinity term: a domain of Key that has, or
// has not, a pod which the term matches.
type Term struct {
	Key    string // a node label
	Weight int    // 1..100 for a preference, 0 for a requirement

	// Namespaces are those whose pods count, sorted; what namespaceSelector
	// selects is among them. AllNamespaces: every pod's, whatever Namespaces says.
	Namespaces    []string
	AllNamespaces bool

	// Selector is the term's, with what matchLabelKeys and mismatchLabelKeys come to.
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

// Selector chooses pods by their labels. The zero value matches every pod, as
// an empty selector does in Kubernetes.
type Selector struct {
	Nothing bool                      // no selector at all: it matches no pod
	Labels  requirements.Requirements // of the pods
}

// Matches reports whether the selector matches a pod with these labels.
func (s Selector) Matches(labels requirements.Labels) bool {
	return !s.Nothing && s.Labels.Accepts(labels)
}

// Kind is what matters of a pod to the places of others. Pods that are alike
// in it share one Kind; it is never altered.
type Kind struct {
	Namespace string              // of the pods
	Labels    requirements.Labels // of the pods
	// Avoids are the pod's required anti-affinity terms: no pod that one of
	// them matches may be in its domain.
	Avoids []Term
	// Ending: the pod is being deleted. Spread constraints do not count it;
	// affinity and anti-affinity do until it is gone.
	Ending bool
}

// Resident is a number of pods of one kind on a node.
type Resident struct {
	*Kind
	Count int // number of pods
}

package conversion

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Namespaces finds those that a selector selects. It remembers what it found, so
// it is not for use at the same time.
type Namespaces struct {
	labels map[string]requirements.Labels // by name
	found  map[string][]string            // by the selector's text
	single map[string][]string            // a namespace by itself, made once
	spent  map[string]int                 // by the namespace of the pods: how many namespaces its selectors were held against
}

// MaxNamespaceSelections is how many namespaces the selectors of one namespace's pods are held against, each different
// selector once: 1,000 selectors where there are 1,000 namespaces. Ordinary pods have the same few.
const MaxNamespaceSelections = 1_000_000

// NewNamespaces returns the namespaces. Every one has the label that the API
// server puts on it, its name. Manifests often come without the Namespaces they
// are for: those that their pods live in are there nevertheless, with that label
// and no other.
func NewNamespaces(spaces []*corev1.Namespace, pods []*corev1.Pod, live bool) *Namespaces {
	out := &Namespaces{
		labels: map[string]requirements.Labels{},
		found:  map[string][]string{},
		single: map[string][]string{},
		spent:  map[string]int{},
	}
	for _, n := range spaces {
		labels := n.Labels
		if labels[corev1.LabelMetadataName] != n.Name {
			labels = maps.Clone(labels)
			if labels == nil {
				labels = requirements.Labels{}
			}
			labels[corev1.LabelMetadataName] = n.Name
		}
		out.labels[n.Name] = labels
	}
	if live {
		return out
	}
	for _, pod := range pods {
		if _, ok := out.labels[pod.Namespace]; !ok {
			out.labels[pod.Namespace] = requirements.Labels{corev1.LabelMetadataName: pod.Namespace}
		}
	}
	return out
}

// selected returns the names of the namespaces that the selector of a pod in namespace of selects, sorted; always the
// same list. ok is false if the pods there have more different selectors than are read.
func (n *Namespaces) selected(selector cluster.Selector, of string) (names []string, ok bool) {
	text := selector.Labels.String()
	if found, ok := n.found[text]; ok {
		return found, true
	}
	if n.spent[of]+len(n.labels) > MaxNamespaceSelections {
		return nil, false
	}
	n.spent[of] += len(n.labels)
	var found []string
	for name, labels := range n.labels {
		if selector.Matches(labels) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	n.found[text] = found
	return found, true
}

// alone returns the one namespace, always the same list.
func (n *Namespaces) alone(name string) []string {
	if list, ok := n.single[name]; ok {
		return list
	}
	list := []string{name}
	n.single[name] = list
	return list
}

// sortedNames returns the names sorted, each once.
func sortedNames(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

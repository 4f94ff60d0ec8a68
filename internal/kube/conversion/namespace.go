package conversion

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Namespaces finds the namespaces that a selector selects. It caches results, so it must not be used concurrently.
type Namespaces struct {
	labels map[string]requirements.Labels // by name
	found  map[string][]string            // names of the selected namespaces, by the text of the selector
	single map[string][]string            // by name: a list with only that name, allocated once
	spent  map[string]int                 // by namespace: how often selectors of its pods were compared with a namespace
}

// MaxNamespaceSelections is the maximum number of comparisons of a selector with a namespace, for all pods of one
// namespace. Equal selectors are compared only once. With 1,000 namespaces it allows 1,000 different selectors.
// Ordinary pods of a namespace have a few.
const MaxNamespaceSelections = 1_000_000

// NewNamespaces returns the namespaces with their labels, including kubernetes.io/metadata.name, which the API server
// sets. live is false for manifests, which often omit Namespaces. NewNamespaces then adds the pods' namespaces that are
// missing in list, with only the label kubernetes.io/metadata.name.
func NewNamespaces(list []*corev1.Namespace, pods []*corev1.Pod, live bool) *Namespaces {
	out := &Namespaces{
		labels: map[string]requirements.Labels{},
		found:  map[string][]string{},
		single: map[string][]string{},
		spent:  map[string]int{},
	}
	for _, n := range list {
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

// matching returns the names of the namespaces that the selector selects, sorted; the same slice for equal selectors.
// podNamespace is the namespace of the pod with the selector. ok is false if the pods of that namespace exceed
// MaxNamespaceSelections.
func (n *Namespaces) matching(selector cluster.Selector, podNamespace string) (names []string, ok bool) {
	text := selector.Labels.String()
	if found, ok := n.found[text]; ok {
		return found, true
	}
	if n.spent[podNamespace]+len(n.labels) > MaxNamespaceSelections {
		return nil, false
	}
	n.spent[podNamespace] += len(n.labels)
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

// listOf returns a list with only this name; the same slice in each call.
func (n *Namespaces) listOf(name string) []string {
	if list, ok := n.single[name]; ok {
		return list
	}
	list := []string{name}
	n.single[name] = list
	return list
}

// sortedNames returns the names sorted and without duplicates.
func sortedNames(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

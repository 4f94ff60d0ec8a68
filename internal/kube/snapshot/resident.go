package snapshot

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// podKinds stores each cluster.PodKind once. Equal pods share one pointer, within a snapshot and across snapshots. A
// lookup of a known kind allocates nothing, however many labels the pod has.
//
// The zero value has no kinds.
type podKinds struct {
	seed   maphash.Seed
	byHash map[uint64][]*podKind
}

// podKind is a cluster.PodKind with a text, which identifies the kind and is its sort key.
type podKind struct {
	cluster.PodKind
	termText string // RequiredAntiAffinity as text, made by termsText
	text     string // different for each kind, made by kindText
	uses     int    // number of pods of this kind; at 0, drop deletes the kind
}

// of returns the kind with these fields, and counts one more pod of that kind.
func (k *podKinds) of(namespace string, labels requirements.Labels, antiAffinity []cluster.Term, isTerminating bool) *podKind {
	if k.byHash == nil {
		k.seed, k.byHash = maphash.MakeSeed(), map[uint64][]*podKind{}
	}
	termText := termsText(antiAffinity)
	hash := k.hash(namespace, labels, termText)
	for _, known := range k.byHash[hash] {
		if known.Namespace == namespace && known.Terminating == isTerminating && known.termText == termText &&
			maps.Equal(known.Labels, labels) {
			known.uses++
			return known
		}
	}
	added := &podKind{
		PodKind:  cluster.PodKind{Namespace: namespace, Labels: labels, RequiredAntiAffinity: antiAffinity, Terminating: isTerminating},
		termText: termText,
		uses:     1,
	}
	added.text = kindText(added)
	k.byHash[hash] = append(k.byHash[hash], added)
	return added
}

// drop counts one pod fewer of the kind. A kind without pods is deleted: otherwise labels that are unique for each pod
// would fill the memory.
func (k *podKinds) drop(kind *podKind) {
	if kind.uses--; kind.uses > 0 {
		return
	}
	hash := k.hash(kind.Namespace, kind.Labels, kind.termText)
	left := slices.DeleteFunc(k.byHash[hash], func(x *podKind) bool { return x == kind })
	if len(left) == 0 {
		delete(k.byHash, hash)
		return
	}
	k.byHash[hash] = left
}

// dropAll calls drop for each of the pods that stayed on a node.
func (k *podKinds) dropAll(stayed residents) {
	for kind, count := range stayed {
		for range count {
			k.drop(kind)
		}
	}
}

// hash returns a hash of a kind with these fields. It does not depend on the order of the labels.
func (k *podKinds) hash(namespace string, labels requirements.Labels, termText string) uint64 {
	sum := maphash.String(k.seed, namespace) + 31*maphash.String(k.seed, termText)
	for key, value := range labels {
		sum += maphash.String(k.seed, key) ^ 31*maphash.String(k.seed, value)
	}
	return sum
}

// residents counts the pods that stay on one node, by kind.
type residents map[*podKind]int

func (r *residents) add(kind *podKind) {
	if *r == nil {
		*r = residents{}
	}
	(*r)[kind]++
}

// values returns the residents as the solver sees them, sorted by podKind.text.
func (r residents) values() []cluster.Resident {
	if len(r) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(maps.Keys(r), func(a, b *podKind) int { return strings.Compare(a.text, b.text) })
	out := make([]cluster.Resident, len(sorted))
	for i, kind := range sorted {
		out[i] = cluster.Resident{PodKind: &kind.PodKind, Count: r[kind]}
	}
	return out
}

func (n *nodeView) countResident(kind *podKind) { n.residents.add(kind) }

// kindOfBound returns the kind of a bound pod that has not been converted to a cluster.Pod.
func (b *builder) kindOfBound(pod *corev1.Pod) *podKind {
	return b.kinds.of(pod.Namespace, pod.Labels, conversion.RequiredAntiAffinity(pod, b.references), pod.DeletionTimestamp != nil)
}

// kindOf returns the kind of a converted pod. isTerminating means that the pod is terminating on the counted node.
func (b *builder) kindOf(pod *cluster.Pod, isTerminating bool) *podKind {
	return b.kinds.of(pod.Namespace, pod.Labels, conversion.RequiredPodTerms(pod.AntiAffinity), isTerminating)
}

// kindText returns a text that is different for each kind.
func kindText(k *podKind) string {
	parts := []string{k.Namespace}
	for _, key := range slices.SortedFunc(maps.Keys(k.Labels), cmp.Compare[string]) {
		parts = append(parts, key, k.Labels[key])
	}
	if k.Terminating {
		parts = append(parts, "", "ending")
	}
	return strings.Join(append(parts, "", k.termText), "\x00")
}

// termsText returns a text that is different for each list of terms; empty for an empty list.
func termsText(terms []cluster.Term) string {
	if len(terms) == 0 {
		return ""
	}
	var b strings.Builder
	for i := range terms {
		t := &terms[i]
		b.WriteString(t.Key)
		for _, namespace := range t.Namespaces {
			b.WriteString("\x00" + namespace)
		}
		if t.AllNamespaces {
			b.WriteString("\x01*")
		}
		if t.Selector.MatchesNothing {
			b.WriteString("\x01-")
		}
		b.WriteString("\x01" + t.Selector.Labels.String() + "\x02")
	}
	return b.String()
}

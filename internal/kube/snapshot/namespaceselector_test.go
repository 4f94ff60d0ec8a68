package snapshot

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/kube/kubetest"
)

// TestManyNamespaceSelectors: the pods of namespace tenant have 2,000 different namespace selectors.
// conversion.MaxNamespaceSelections allows 998 of them, so only 19 of the 40 pods can be planned. The pods of
// namespace alike have as many selectors, but only 50 different ones: all of them can be planned.
func TestManyNamespaceSelectors(t *testing.T) {
	t.Parallel()
	const spaces, pods, terms = 1_002, 40, 50 // two of the namespaces contain the pods
	var o Objects
	for i := range spaces - 2 {
		o.Namespaces = append(o.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ns", i)}})
	}
	podOf := func(namespace, name string, valueOf func(term int) string) *corev1.Pod {
		pod := kubetest.SmallPod()
		pod.Namespace, pod.Name = namespace, name
		var affinityTerms []corev1.PodAffinityTerm
		for term := range terms {
			affinityTerms = append(affinityTerms,
				corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
					NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier",
						Operator: metav1.LabelSelectorOpNotIn, Values: []string{valueOf(term)}}}}})
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: affinityTerms}}
		return pod
	}
	for i := range pods {
		o.Pods = append(o.Pods, podOf("tenant", fmt.Sprintf("p%02d", i), func(term int) string { return fmt.Sprint("x", i, "-", term) }))
		o.Pods = append(o.Pods, podOf("alike", fmt.Sprintf("p%02d", i), func(term int) string { return fmt.Sprint("y", term) }))
	}
	unplannable, lists := 0, map[*string]bool{} // the lists of namespaces, by the address of their first element
	for _, pod := range o.Snapshot(View{Now: kubetest.BlockingTime}).Pods {
		if strings.Contains(pod.Unplannable, ".namespaceSelector is one of too many") && pod.Namespace == "tenant" {
			unplannable++
			continue
		}
		if pod.Unplannable != "" {
			t.Errorf("%s/%s cannot be planned: %s", pod.Namespace, pod.Name, pod.Unplannable)
		}
		for _, term := range pod.AntiAffinity {
			if len(term.Namespaces) > 0 {
				lists[&term.Namespaces[0]] = true
			}
		}
	}
	// Each term of a pod is compared with each namespace (spaces).
	if want := pods - conversion.MaxNamespaceSelections/spaces/terms; unplannable != want {
		t.Errorf("%d pods of tenant cannot be planned, want %d", unplannable, want)
	}
	// Planned pods of tenant need one list per term, pods of alike one per different term.
	if len(lists) > conversion.MaxNamespaceSelections/spaces+terms {
		t.Errorf("the pods have %d different lists of namespaces, want equal selectors to share one", len(lists))
	}
}

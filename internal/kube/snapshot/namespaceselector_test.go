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

// TestManyNamespaceSelectors: the pods of namespace tenant have thousands of different namespace selectors, each of
// which matches nearly all namespaces. Only some of these pods are planned. The pods of namespace alike have as many
// selectors, but few different ones. All of them are planned.
func TestManyNamespaceSelectors(t *testing.T) {
	t.Parallel()
	const spaces, pods, terms = 1_002, 40, 50 // two of the namespaces contain the pods
	var o Objects
	for i := range spaces - 2 {
		o.Namespaces = append(o.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("ns", i)}})
	}
	selecting := func(namespace, name string, valueOf func(term int) string) *corev1.Pod {
		pod := kubetest.SmallPod()
		pod.Namespace, pod.Name = namespace, name
		apart := &corev1.PodAntiAffinity{}
		for x := range terms {
			apart.RequiredDuringSchedulingIgnoredDuringExecution = append(apart.RequiredDuringSchedulingIgnoredDuringExecution,
				corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
					NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier",
						Operator: metav1.LabelSelectorOpNotIn, Values: []string{valueOf(x)}}}}})
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart}
		return pod
	}
	for i := range pods {
		o.Pods = append(o.Pods, selecting("tenant", fmt.Sprintf("p%02d", i), func(term int) string { return fmt.Sprint("x", i, "-", term) }))
		o.Pods = append(o.Pods, selecting("alike", fmt.Sprintf("p%02d", i), func(term int) string { return fmt.Sprint("y", term) }))
	}
	refused, lists := 0, map[*string]bool{} // the lists of namespaces, by the address of their first element
	for _, pod := range o.Snapshot(View{Now: kubetest.BlockingTime}).Pods {
		if strings.Contains(pod.Unplannable, ".namespaceSelector is one of too many") && pod.Namespace == "tenant" {
			refused++
			continue
		}
		if pod.Unplannable != "" {
			t.Errorf("%s/%s is refused: %s", pod.Namespace, pod.Name, pod.Unplannable)
		}
		for _, term := range pod.AntiAffinity {
			if len(term.Namespaces) > 0 {
				lists[&term.Namespaces[0]] = true
			}
		}
	}
	// Each term of a pod is compared with each namespace.
	if want := pods - conversion.MaxNamespaceSelections/spaces/terms; refused != want {
		t.Errorf("%d of the tenant's pods are refused, want %d", refused, want)
	}
	if len(lists) > conversion.MaxNamespaceSelections/spaces+terms {
		t.Errorf("the pods have %d different lists of namespaces, want equal selectors to share one", len(lists))
	}
}

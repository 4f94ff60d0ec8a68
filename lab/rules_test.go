package lab_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/lab"
)

const (
	zoneLabel = "topology.kubernetes.io/zone"
	hostLabel = "kubernetes.io/hostname"
)

// ruled returns a Deployment whose pods have rules about others, given as lines of YAML in the pod's spec.
func ruled(namespace, name string, replicas int, cpu string, rules ...string) string {
	d := deployment(namespace, name, replicas, cpu, "256Mi", "test: "+namespace)
	return strings.Replace(d, "      containers:\n", "      "+strings.Join(rules, "\n      ")+"\n      containers:\n", 1)
}

// TestRulesAmongPods checks with kube-scheduler the nodes that are launched for pods with rules about one another. If
// the plan were wrong for a pod, it would stay Pending.
func TestRulesAmongPods(t *testing.T) {
	l := shared(t)
	controller(t, l)
	name := namespaced(t, l)
	selects := func(app string) string { return fmt.Sprintf("{labelSelector: {matchLabels: {app: %s}}", app) }
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		// With minDomains the scheduler also requires three zones before nodes in all of them exist.
		ruled(name, "even", 6, "500m", "topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, topologyKey: "+zoneLabel+
			", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: even}}}]"),
		ruled(name, "apart", 3, "200m", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["+
			selects("apart")+", topologyKey: "+hostLabel+"}]}}"),
		ruled(name, "together", 4, "1", "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["+
			selects("together")+", topologyKey: "+zoneLabel+"}]}}"),
		ruled(name, "spaced", 4, "100m", "topologySpreadConstraints: [{maxSkew: 2, topologyKey: "+hostLabel+
			", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spaced}}}]"),
	)
	allRun(t, l, name, 17, 2*time.Minute)

	zones, hosts := whereabouts(t, l, name, zoneLabel), whereabouts(t, l, name, hostLabel)
	if got := slices.Sorted(maps.Values(zones["even"])); !slices.Equal(got, []int{2, 2, 2}) {
		t.Errorf("even runs in zones %v, want 2 in each of three", zones["even"])
	}
	if len(hosts["apart"]) != 3 {
		t.Errorf("apart runs on hosts %v, want 1 on each of three", hosts["apart"])
	}
	if len(zones["together"]) != 1 {
		t.Errorf("together runs in zones %v, want one", zones["together"])
	}
	t.Logf("%d instances; spaced runs on %v", len(instancesOf(l, name)), hosts["spaced"])
	nothingLeft(t, l, name)
}

// whereabouts counts the pods of each app by a label of their nodes.
func whereabouts(t *testing.T, l *lab.Lab, namespace, label string) map[string]map[string]int {
	t.Helper()
	nodes, err := l.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	domain := map[string]string{}
	for i := range nodes.Items {
		domain[nodes.Items[i].Name] = nodes.Items[i].Labels[label]
	}
	pods, err := l.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]int{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning {
			continue
		}
		app := p.Labels["app"]
		if out[app] == nil {
			out[app] = map[string]int{}
		}
		out[app][domain[p.Spec.NodeName]]++
	}
	return out
}

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

// deploymentWithRules returns a Deployment whose pods have rules about other pods. The rules are lines of YAML in the
// pod's spec.
func deploymentWithRules(namespace, name string, replicas int, cpu string, rules ...string) string {
	d := deployment(namespace, name, replicas, cpu, "256Mi", "test: "+namespace)
	return strings.Replace(d, "      containers:\n", "      "+strings.Join(rules, "\n      ")+"\n      containers:\n", 1)
}

// TestRulesAmongPods launches nodes for pods with rules about one another, and checks where kube-scheduler places the
// pods. If the plan were wrong for a pod, that pod would stay Pending.
func TestRulesAmongPods(t *testing.T) {
	l := sharedLab(t)
	ensureController(t, l)
	name := newTestNamespace(t, l)
	// term returns the start of an affinity term. Its topologyKey and the closing brace follow.
	term := func(app string) string { return fmt.Sprintf("{labelSelector: {matchLabels: {app: %s}}", app) }
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}",
			"{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		// With minDomains, kube-scheduler requires three zones even before nodes exist in all three.
		deploymentWithRules(name, "even", 6, "500m", "topologySpreadConstraints: [{maxSkew: 1, minDomains: 3, topologyKey: "+zoneLabel+
			", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: even}}}]"),
		deploymentWithRules(name, "apart", 3, "200m", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["+
			term("apart")+", topologyKey: "+hostLabel+"}]}}"),
		deploymentWithRules(name, "together", 4, "1", "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: ["+
			term("together")+", topologyKey: "+zoneLabel+"}]}}"),
		deploymentWithRules(name, "spaced", 4, "100m", "topologySpreadConstraints: [{maxSkew: 2, topologyKey: "+hostLabel+
			", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: spaced}}}]"),
	)
	awaitRunning(t, l, name, 6+3+4+4, 2*time.Minute)

	zones, hosts := podsByNodeLabel(t, l, name, zoneLabel), podsByNodeLabel(t, l, name, hostLabel)
	if got := slices.Sorted(maps.Values(zones["even"])); !slices.Equal(got, []int{2, 2, 2}) {
		t.Errorf("the pods of app even run in zones %v, want 2 in each of three", zones["even"])
	}
	if len(hosts["apart"]) != 3 {
		t.Errorf("the pods of app apart run on hosts %v, want 1 on each of three", hosts["apart"])
	}
	if len(zones["together"]) != 1 {
		t.Errorf("the pods of app together run in zones %v, want one", zones["together"])
	}
	// For app spaced, several numbers of hosts are valid.
	t.Logf("%d instances; the pods of app spaced run on %v", len(instancesOf(l, name)), hosts["spaced"])
	cleanUp(t, l, name)
}

// podsByNodeLabel counts the running pods of each app by the value of a label of their nodes.
func podsByNodeLabel(t *testing.T, l *lab.Lab, namespace, label string) map[string]map[string]int {
	t.Helper()
	nodes, err := l.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	valueOn := map[string]string{} // value of the label, by node
	for i := range nodes.Items {
		valueOn[nodes.Items[i].Name] = nodes.Items[i].Labels[label]
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
		out[app][valueOn[p.Spec.NodeName]]++
	}
	return out
}

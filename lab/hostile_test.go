package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

const (
	// chartMemoryLimit is the chart's memory limit, in bytes.
	chartMemoryLimit = 1 << 30
	// defaultHostile is the default number of pending pods of the hostile tenant, and defaultOrdinary that of the pods
	// of the other tenant. make soak uses 400 and 20.
	defaultHostile, defaultOrdinary = 40, 3
	// maxPlans is the maximum number of plans from the time when kube-scheduler fails to schedule an ordinary pod until
	// a plan contains the pod. One plan may already be running at that time, and further plans may only re-check the
	// pending pods.
	maxPlans = 5
)

// hostileChanges has functions that make a pod expensive for the solver, by the name of the overused field. i is the
// number of the pod.
var hostileChanges = map[string]func(pod *corev1.Pod, i int){
	"preferred-anti-affinity": func(pod *corev1.Pod, i int) {
		for j, term := range hostileTerms(i) {
			anti := pod.Spec.Affinity.PodAntiAffinity
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: int32(1 + j%100), PodAffinityTerm: term})
		}
	},
	"required-anti-affinity": func(pod *corev1.Pod, i int) {
		pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = hostileTerms(i)
	},
	"host-ports": func(pod *corev1.Pod, i int) {
		for t := range 200 {
			port := int32(1 + (i*37+t*13)%60000) // pods i and i+13 have most of their ports in common
			pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port})
		}
	},
	"own-resources": func(pod *corev1.Pod, i int) {
		name := corev1.ResourceName(fmt.Sprintf("hostile.example/r%d", i))
		pod.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1")
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
	},
	"topology-constraints": func(pod *corev1.Pod, i int) {
		for t := range 1000 {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: fmt.Sprintf("hostile.example/k%d-%d", i, t), WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"k": fmt.Sprint(t)}},
			})
		}
	},
	"long-selectors": func(pod *corev1.Pod, i int) {
		for t := range 10_000 {
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(
				pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms,
				corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "h.example/k", Operator: corev1.NodeSelectorOpNotIn, Values: []string{fmt.Sprintf("v%d-%d", i, t)}}}})
		}
	},
}

// hostileTerms returns 50 affinity terms that only pod number i has.
func hostileTerms(i int) []corev1.PodAffinityTerm {
	var out []corev1.PodAffinityTerm
	for x := range 50 {
		key := corev1.LabelHostname
		if x%2 == 1 {
			key = corev1.LabelTopologyZone
		}
		out = append(out, corev1.PodAffinityTerm{TopologyKey: key,
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: fmt.Sprintf("k%d", x), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprintf("v%d-%d", i, x)}}}}})
	}
	return out
}

// TestHostileTenant checks that the pods of a tenant are not delayed by another tenant, which has many pending pods
// with expensive scheduling rules. The controller must stay within the chart's memory limit. Finally each pod of the
// hostile tenant must be bound, be nominated for a node, or have an event with the reason why it has no node.
func TestHostileTenant(t *testing.T) {
	hostile, ordinary := int(numberFrom(t, "LAB_HOSTILE", defaultHostile)), int(numberFrom(t, "LAB_ORDINARY", defaultOrdinary))
	l := newLab(t, lab.Options{Cluster: "hostile"})
	denyResource(t, l, "system:kube-scheduler", "events")
	c := restartController(t, l)
	for _, kind := range []string{"preferred-anti-affinity", "required-anti-affinity", "host-ports", "own-resources",
		"topology-constraints", "long-selectors"} {
		t.Run(kind, func(t *testing.T) {
			tenant := newTestNamespace(t, l)
			other := tenant + "-other"
			if err := l.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{tenant, other} {
				apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
					pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"))
				awaitServiceAccount(t, l, name)
				within(t, l, time.Minute, "NodePool "+name+" to be ready", func(ctx context.Context) (bool, error) {
					var p karpenterv1.NodePool
					err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &p)
					return err == nil && p.StatusConditions().IsReady(), err
				})
			}
			createHostilePods(t, l, tenant, hostile, hostileChanges[kind])
			var totals, afterFailures []time.Duration
			for i := range ordinary {
				total, afterFailure := createOrdinaryPod(t, l, c, other, i)
				totals = append(totals, total)
				if afterFailure > 0 {
					afterFailures = append(afterFailures, afterFailure)
				}
			}
			slices.Sort(totals)
			slices.Sort(afterFailures)
			t.Logf("%d pods of the other tenant had a NodeClaim or a Node after %.1f s (median), at most %.1f s", len(totals),
				totals[len(totals)/2].Seconds(), totals[len(totals)-1].Seconds())
			if len(afterFailures) > 0 {
				t.Logf("%d of these pods, which kube-scheduler first failed to schedule: %.1f s (median) after that, at most %.1f s",
					len(afterFailures), afterFailures[len(afterFailures)/2].Seconds(), afterFailures[len(afterFailures)-1].Seconds())
			}
			awaitResults(t, l, tenant, hostile)
			peak := peakMemory(t, c.PID())
			t.Logf("peak memory of the controller: %d MiB", peak>>20)
			if peak > chartMemoryLimit {
				t.Errorf("peak memory of the controller: %d MiB, want at most %d", peak>>20, chartMemoryLimit>>20)
			}
			atOnce := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
			for _, name := range []string{tenant, other} {
				if err := l.Kube.CoreV1().Pods(name).DeleteCollection(t.Context(), atOnce, metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func awaitServiceAccount(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	within(t, l, time.Minute, "a service account", func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
}

// labPod returns a pod for the nodes of the NodePool that has the namespace's name.
func labPod(namespace, name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test": namespace},
			Affinity:     &corev1.Affinity{},
			Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("16Mi")}}}},
		},
	}
}

func createHostilePods(t *testing.T, l *lab.Lab, tenant string, n int, change func(*corev1.Pod, int)) {
	t.Helper()
	var creators sync.WaitGroup
	const parallel = 4
	for k := range parallel {
		creators.Go(func() {
			for i := k; i < n; i += parallel {
				pod := labPod(tenant, fmt.Sprintf("h-%04d", i), "10m")
				pod.Labels = map[string]string{}
				for x := range 10 { // labels that hostileTerms of all pods select
					pod.Labels[fmt.Sprintf("k%d", x)] = fmt.Sprintf("w%d", i%7)
				}
				pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
				change(pod, i)
				// The API server rejects a required node affinity without terms.
				if len(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0 {
					pod.Spec.Affinity.NodeAffinity = nil
				}
				if err := l.Client.Create(t.Context(), pod); err != nil {
					t.Errorf("create a hostile pod, want no error: %.500s", err)
				}
			}
		})
	}
	creators.Wait()
}

// createOrdinaryPod creates an ordinary pod that needs its own node, and waits until the pod has a NodeClaim or a Node.
// total is the time from the creation until then. afterFailure is the part of total after kube-scheduler had failed to
// schedule the pod; it is 0 if the first attempt succeeded.
func createOrdinaryPod(t *testing.T, l *lab.Lab, c *lab.Controller, namespace string, i int) (total, afterFailure time.Duration) {
	t.Helper()
	plans := func() float64 {
		return metricSum(t, c.Metrics, "karpenter_scheduler_scheduling_duration_seconds_count", `controller="provisioner"`)
	}
	pod := labPod(namespace, fmt.Sprintf("ordinary-%d", i), "1500m")
	plansBefore, began, failedAt := plans(), time.Now(), time.Time{}
	if err := l.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	within(t, l, 5*time.Minute, "a NodeClaim for "+pod.Name, func(ctx context.Context) (bool, error) {
		var claims karpenterv1.NodeClaimList
		if err := l.Client.List(ctx, &claims, client.MatchingLabels{karpenterv1.LabelNodePool: namespace}); err != nil {
			return false, err
		}
		// kube-scheduler can bind the pod to the node launched for the previous pod, if that pod is still pending.
		current, err := l.Kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || current.Spec.NodeName != "" {
			return err == nil, err
		}
		if failedAt.IsZero() && whyUnschedulable(current) != "" {
			plansBefore, failedAt = plans(), time.Now()
		}
		return slices.ContainsFunc(claims.Items, func(n karpenterv1.NodeClaim) bool {
			return slices.Contains(strings.Split(n.Annotations["joiner.sh/pods"], ","), namespace+"/"+pod.Name)
		}), nil
	})
	total = time.Since(began)
	if failedAt.IsZero() {
		return total, 0 // no plan had to contain the pod: the controller waits for kube-scheduler
	}
	afterFailure = time.Since(failedAt)
	t.Logf("%s had a NodeClaim after %.1f s, %.1f s after kube-scheduler had failed to schedule it",
		pod.Name, total.Seconds(), afterFailure.Seconds())
	if n := plans() - plansBefore; n > maxPlans {
		t.Errorf("%.0f plans until one contained %s, want at most %d", n, pod.Name, maxPlans)
	}
	return total, afterFailure
}

// awaitResults waits until each of the tenant's n pods has a result: the pod is bound, is nominated for a node, or has
// the controller's event with the reason why it has no node.
func awaitResults(t *testing.T, l *lab.Lab, tenant string, n int) {
	t.Helper()
	began := time.Now()
	within(t, l, 10*time.Minute, "a result for each hostile pod", func(ctx context.Context) (bool, error) {
		results := map[string]string{} // by name of the pod
		events, err := l.Kube.EventsV1().Events(tenant).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.ReportingController == "joiner" && (e.Reason == "FailedScheduling" || e.Reason == "Nominated") {
				results[e.Regarding.Name] = e.Reason
			}
		}
		pods, err := l.Kube.CoreV1().Pods(tenant).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		var missing []string
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.Spec.NodeName != "" {
				results[p.Name] = "bound"
			}
			if results[p.Name] == "" {
				missing = append(missing, p.Name)
			}
		}
		if len(missing) > 0 || len(pods.Items) != n {
			return false, fmt.Errorf("%d of %d pods have no result, the first is %s", len(missing), len(pods.Items), missing[:min(1, len(missing))])
		}
		counts := map[string]int{}
		for _, result := range results {
			counts[result]++
		}
		t.Logf("each of the %d hostile pods has a result %.1f s after the last ordinary pod: %v", n, time.Since(began).Seconds(), counts)
		return true, nil
	})
}

package lab_test

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// defaultNodes is the default of LAB_NODES, the number of nodes. make soak sets it to 1000.
const defaultNodes = 100

// TestThousandNodes, with LAB_NODES=1000, starts the controller with ten thousand pending pods, in an account with the
// default limits of API calls. The controller must plan a thousand nodes at once and launch exactly those. All of them
// join, and EC2 throttles almost none of the calls. LAB_BINDINGS=0 takes the permissions for bindings and nominations
// from the controller, to compare the API server's response times.
//
// The pods exist before the controller starts. Otherwise kube-scheduler would limit the speed: a pod must be
// unschedulable before a node is launched for it, and kube-scheduler tries a few hundred pods per second here.
func TestThousandNodes(t *testing.T) {
	nodes := int(numberFrom(t, "LAB_NODES", defaultNodes))
	pods := 10 * nodes
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // etcd and a thousand kubelets run in this process, and memory is cheaper than CPU time
	l := newLab(t, lab.Options{Cluster: "thousand", Throttle: world.EC2Throttle(), TokenCache: 10 * time.Minute})
	// kube-scheduler's events are not needed. The two events per pod would be a fifth of all writes.
	denyResource(t, l, "system:kube-scheduler", "events")
	if numberFrom(t, "LAB_BINDINGS", 1) == 0 {
		denyResource(t, l, lab.ControllerAccount, "pods/binding")
		denyResource(t, l, lab.ControllerAccount, "pods/status") // the controller opens nodes without nominations
	}
	name := newTestNamespace(t, l)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
	)
	within(t, l, time.Minute, "a service account", func(ctx context.Context) (bool, error) {
		_, err := l.Kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	watched := newPodWatch(t, l, name)
	// DaemonSets use 150m of the allocatable 1930m: in any order exactly ten pods fit.
	createPods(t, l, name, pods, "177m", "128Mi")
	watched.wait(t, l, 5*time.Minute, fmt.Sprintf("kube-scheduler to find no node for %d pods", pods),
		func(s podCounts) bool { return s.unschedulable == pods })
	before := readRequestTimes(t, l)
	c := restartController(t, l)
	watched.wait(t, l, 12*time.Minute, fmt.Sprintf("%d pods to run on %d nodes", pods, nodes), func(s podCounts) bool {
		return s == podCounts{pods: pods, running: pods, usedNodes: nodes, nodes: nodes, ready: nodes}
	})
	answered := readRequestTimes(t, l).since(before)
	t.Logf("the API server answered %d requests, half within %.0f ms and 99 %% within %.0f ms", answered.count(),
		1000*answered.quantile(0.5), 1000*answered.quantile(0.99))
	checkWrites(t, l, pods)
	checkThrottling(t, l)
	claims, providerIDs := claimsOf(t, l, name)
	all := instancesOf(l, name)
	for _, i := range all {
		if !providerIDs["aws:///"+i.Zone+"/"+i.ID] {
			t.Errorf("instance %s (%s) belongs to no claim", i.ID, i.State)
		}
	}
	if len(all) != nodes || len(claims) != nodes {
		t.Errorf("%d instances were launched for %d claims, want %d for %d", len(all), len(claims), nodes, nodes)
	}
	t.Logf("the controller took at most %d MiB of memory", peakMemory(t, c.PID())>>20)
}

// maxBindsPerPod is the maximum number of bindings and nominations of the controller, divided by the number of pods.
const maxBindsPerPod = 1.2

// checkWrites counts the controller's writes to the API server in the audit log. Only bindings and nominations have a
// limit.
func checkWrites(t *testing.T, l *lab.Lab, pods int) {
	t.Helper()
	requests, err := l.ServiceAccounts.Requests(metav1.NamespaceSystem, lab.ControllerAccount)
	if err != nil {
		t.Fatal(err)
	}
	total, byKind := 0, map[string]int{}
	for r, n := range requests {
		if slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
			total += n
			byKind[r.Verb+" "+r.Resource] += n
		}
	}
	t.Logf("the controller wrote %d times, %.2f times per pod: %v", total, float64(total)/float64(pods), byKind)
	if n := byKind["create pods/binding"] + byKind["patch pods/status"]; float64(n) > maxBindsPerPod*float64(pods) {
		t.Errorf("the controller bound or nominated %d times for %d pods, want at most %.1f times per pod", n, pods, maxBindsPerPod)
	}
}

// denyResource removes the rules for a resource from a ClusterRole.
func denyResource(t *testing.T, l *lab.Lab, role, resource string) {
	t.Helper()
	roles := l.Kube.RbacV1().ClusterRoles()
	r, err := roles.Get(t.Context(), role, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Rules {
		r.Rules[i].Resources = slices.DeleteFunc(r.Rules[i].Resources, func(s string) bool { return s == resource })
	}
	r.Rules = slices.DeleteFunc(r.Rules, func(p rbacv1.PolicyRule) bool { return len(p.Resources) == 0 && len(p.NonResourceURLs) == 0 })
	if _, err := roles.Update(t.Context(), r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createPods creates n equal pods from many goroutines at once. The pods have no ReplicaSet, whose controller would
// write an event for each pod.
func createPods(t *testing.T, l *lab.Lab, name string, n int, cpu, memory string) {
	t.Helper()
	template := corev1.PodSpec{
		NodeSelector: map[string]string{"test": name},
		Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		}}},
	}
	next, workers := atomic.Int64{}, sync.WaitGroup{}
	for range 32 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%05d", i)}, Spec: template}
				if _, err := l.Kube.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// podWatch watches the pods of a namespace and the nodes of the pool with the same name. Repeated lists of ten thousand
// pods would distort the measured time.
type podWatch struct {
	name  string
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	began time.Time
}

// podCounts counts the pods and nodes of a podWatch.
type podCounts struct {
	pods, running int
	unschedulable int // pods for which kube-scheduler has found no node
	usedNodes     int // nodes with running pods
	nodes, ready  int
}

// newPodWatch starts a watch, and returns once its caches are filled.
func newPodWatch(t *testing.T, l *lab.Lab, name string) *podWatch {
	t.Helper()
	factory := informers.NewSharedInformerFactory(l.Kube, 0)
	c := &podWatch{name: name, pods: factory.Core().V1().Pods().Lister(), nodes: factory.Core().V1().Nodes().Lister(), began: time.Now()}
	factory.Start(t.Context().Done())
	for kind, ok := range factory.WaitForCacheSync(t.Context().Done()) {
		if !ok {
			t.Fatalf("cannot watch %s", kind)
		}
	}
	return c
}

// wait waits until ok returns true, and logs the progress every 30 seconds.
func (c *podWatch) wait(t *testing.T, l *lab.Lab, limit time.Duration, what string, ok func(podCounts) bool) {
	t.Helper()
	loggedAt, countedAt, s := time.Now(), time.Time{}, podCounts{}
	within(t, l, limit, what, func(context.Context) (bool, error) {
		if time.Since(countedAt) > time.Second { // counting takes time
			var err error
			if s, err = c.count(); err != nil {
				return false, err
			}
			countedAt = time.Now()
		}
		if ok(s) {
			return true, nil
		}
		if time.Since(loggedAt) >= 30*time.Second {
			loggedAt = time.Now()
			t.Logf("after %3.0f s: %+v; %d instances launched", time.Since(c.began).Seconds(), s, len(instancesOf(l, c.name)))
		}
		return false, fmt.Errorf("%+v", s)
	})
	t.Logf("%s: after %.1f s", what, time.Since(c.began).Seconds())
}

func (c *podWatch) count() (podCounts, error) {
	pods, err := c.pods.Pods(c.name).List(labels.Everything())
	if err != nil {
		return podCounts{}, err
	}
	nodes, err := c.nodes.List(labels.SelectorFromSet(labels.Set{karpenterv1.LabelNodePool: c.name}))
	s, usedNodes := podCounts{pods: len(pods), nodes: len(nodes)}, map[string]bool{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			s.running++
			usedNodes[p.Spec.NodeName] = true
		}
		if p.Spec.NodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		}) {
			s.unschedulable++
		}
	}
	s.usedNodes = len(usedNodes)
	for _, n := range nodes {
		if isReady(n) {
			s.ready++
		}
	}
	return s, err
}

// isReady reports whether a node accepts pods: it is Ready and has no taints against them.
func isReady(n *corev1.Node) bool {
	return len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// checkThrottling checks for each kind of call to AWS that at most one call in a hundred was throttled.
func checkThrottling(t *testing.T, l *lab.Lab) {
	t.Helper()
	calls, throttled := l.Emulator.Calls(), l.Emulator.Throttled()
	for _, action := range slices.Sorted(maps.Keys(calls)) {
		t.Logf("%-40s %6d calls, %d throttled", action, calls[action], throttled[action])
		if 100*throttled[action] > calls[action] {
			t.Errorf("%s: %d of %d calls were throttled, more than one in a hundred", action, throttled[action], calls[action])
		}
	}
}

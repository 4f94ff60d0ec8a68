package lab_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/lab"
)

const (
	drainedApps  = 40
	replicasEach = 4
	fewDrains    = 80 // default number of drained nodes
)

// TestDrains deletes the NodeClaims of all nodes at once, again and again until LAB_DRAINS nodes have been drained
// (make soak: five hundred), under workloads with PodDisruptionBudgets of maxUnavailable 1. No PodDisruptionBudget may
// be exceeded at any time.
func TestDrains(t *testing.T) {
	drains := int(numberFrom(t, "LAB_DRAINS", fewDrains))
	l := shared(t)
	controller(t, l)
	name := namespaced(t, l)
	manifests := []string{
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
	}
	for i := range drainedApps {
		manifests = append(manifests, guarded(name, fmt.Sprintf("app-%02d", i)))
	}
	apply(t, l, manifests...)
	pods := drainedApps * replicasEach
	watch := guard(t, l, name)
	allRun(t, l, name, pods, 3*time.Minute)
	within(t, l, time.Minute, "all replicas of every app to be ready", func(context.Context) (bool, error) { return watch.areWhole() })
	began, done, rounds := time.Now(), 0, 0
	for done < drains {
		claims := claimNames(t, l, name)
		for _, claim := range claims {
			if err := l.Client.Delete(t.Context(),
				&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		within(t, l, 4*time.Minute, fmt.Sprintf("%d nodes to be drained", len(claims)), func(ctx context.Context) (bool, error) {
			left := 0
			for _, now := range claimNames(t, l, name) {
				if slices.Contains(claims, now) {
					left++
				}
			}
			if left > 0 {
				return false, fmt.Errorf("%d NodeClaims still exist", left)
			}
			return true, nil
		})
		within(t, l, time.Minute, "all replicas of every app to be ready again", func(context.Context) (bool, error) { return watch.areWhole() })
		done, rounds = done+len(claims), rounds+1
		t.Logf("round %d: %d nodes drained after %.0f s", rounds, done, time.Since(began).Seconds())
	}
	broken, seen := watch.verdict()
	for _, b := range broken {
		t.Error(b)
	}
	if most := done * 4; seen < pods*rounds || seen > most {
		t.Errorf("%d pods were deleted in %d drains: not every pod moved in each round, or pods moved too often", seen, done)
	}
	t.Logf("%d nodes drained, %d pods moved, %d budgets broken, in %.0f s", done, seen, len(broken), time.Since(began).Seconds())
	nothingLeft(t, l, name)
}

// guarded returns a Deployment with at most one replica per node, and a PodDisruptionBudget with maxUnavailable 1.
func guarded(namespace, app string) string {
	d := deployment(namespace, app, replicasEach, "800m", "512Mi", "test: "+namespace)
	apart := fmt.Sprintf(`      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}
      containers:
`, app)
	return strings.Replace(d, "      containers:\n", apart, 1) + fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %s, namespace: %s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: %s}}}
---
`, app, namespace, app)
}

// claimNames returns the names of the pool's NodeClaims, including NodeClaims that are being deleted.
func claimNames(t *testing.T, l *lab.Lab, pool string) []string {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := l.Client.List(t.Context(), &list, client.MatchingLabels{karpenterv1.LabelNodePool: pool}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return out
}

// guardian watches the pods of a namespace, and counts the ready pods of each app.
type guardian struct {
	mu      sync.Mutex
	serving map[string]map[string]bool // by app: names of pods that are Ready and not being deleted
	whole   map[string]bool            // apps that have had all their replicas
	gone    int                        // number of deleted pods
	broken  []string
}

func guard(t *testing.T, l *lab.Lab, namespace string) *guardian {
	t.Helper()
	g := &guardian{serving: map[string]map[string]bool{}, whole: map[string]bool{}}
	watchPods(t, l, namespace, func(o any, _, isGone bool) { g.see(o, isGone) })
	return g
}

// watchPods calls see for each change of a pod of the namespace, in order, until the test ends. It starts with the pods that exist.
func watchPods(t *testing.T, l *lab.Lab, namespace string, see func(o any, isFirst, isGone bool)) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(namespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, isFirst bool) { see(o, isFirst, false) },
		UpdateFunc: func(_, o any) { see(o, false, false) },
		DeleteFunc: func(o any) { see(o, false, true) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

// see records a change of a pod, and a violation of an app's PodDisruptionBudget.
func (g *guardian) see(o any, isGone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	app := pod.Labels["app"]
	if g.serving[app] == nil {
		g.serving[app] = map[string]bool{}
	}
	before := len(g.serving[app])
	if isGone {
		g.gone++
	}
	if isReadyPod(pod) && pod.DeletionTimestamp == nil && !isGone {
		g.serving[app][pod.Name] = true
	} else {
		delete(g.serving[app], pod.Name)
	}
	now := len(g.serving[app])
	g.whole[app] = g.whole[app] || now == replicasEach
	if g.whole[app] && now < before && now < replicasEach-1 {
		g.broken = append(g.broken, fmt.Sprintf("%s: only %d pods of %s are ready after pod %s on %s was deleted (%s)",
			time.Now().Format(time.TimeOnly), now, app, pod.Name, pod.Spec.NodeName, pod.Status.Reason))
	}
}

func isReadyPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// areWhole reports whether all replicas of every app are ready.
func (g *guardian) areWhole() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.serving) < drainedApps {
		return false, fmt.Errorf("%d apps have pods", len(g.serving))
	}
	for _, app := range slices.Sorted(maps.Keys(g.serving)) {
		if n := len(g.serving[app]); n != replicasEach {
			return false, fmt.Errorf("%d replicas of %s are ready", n, app)
		}
	}
	return true, nil
}

// verdict returns the violations of PodDisruptionBudgets, and the number of deleted pods.
func (g *guardian) verdict() (broken []string, gone int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken, g.gone
}

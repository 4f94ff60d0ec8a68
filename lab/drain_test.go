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
	drainedApps         = 40 // number of apps
	replicasEach        = 4  // replicas of each app
	defaultDrainedNodes = 80 // number of drained nodes, unless LAB_DRAINS is set
)

// TestDrains deletes the NodeClaims of all nodes at once, and repeats this until LAB_DRAINS nodes have been drained.
// make soak sets LAB_DRAINS to 500. Each app has a PodDisruptionBudget with maxUnavailable 1, which may not be exceeded
// at any time.
func TestDrains(t *testing.T) {
	drains := int(numberFrom(t, "LAB_DRAINS", defaultDrainedNodes))
	l := sharedLab(t)
	ensureController(t, l)
	name := newTestNamespace(t, l)
	manifests := []string{
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
	}
	for i := range drainedApps {
		manifests = append(manifests, spreadAppWithPDB(name, fmt.Sprintf("app-%02d", i)))
	}
	apply(t, l, manifests...)
	pods := drainedApps * replicasEach
	watch := watchBudgets(t, l, name)
	awaitRunning(t, l, name, pods, 3*time.Minute)
	within(t, l, time.Minute, "all replicas of every app to be ready", func(context.Context) (bool, error) { return watch.isComplete() })
	began, drained, rounds := time.Now(), 0, 0
	for drained < drains {
		claims := claimNames(t, l, name)
		for _, claim := range claims {
			if err := l.Client.Delete(t.Context(),
				&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}}); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		within(t, l, 4*time.Minute, fmt.Sprintf("%d nodes to be drained", len(claims)), func(ctx context.Context) (bool, error) {
			left := 0
			for _, claim := range claimNames(t, l, name) {
				if slices.Contains(claims, claim) {
					left++
				}
			}
			if left > 0 {
				return false, fmt.Errorf("%d NodeClaims still exist", left)
			}
			return true, nil
		})
		within(t, l, time.Minute, "all replicas of every app to be ready again",
			func(context.Context) (bool, error) { return watch.isComplete() })
		drained, rounds = drained+len(claims), rounds+1
		t.Logf("round %d: %d nodes drained after %.0f s", rounds, drained, time.Since(began).Seconds())
	}
	violations, deleted := watch.results()
	for _, v := range violations {
		t.Error(v)
	}
	// Two pods of 800m fit on a node, so drained*4 allows two deletions of each pod in a round.
	if least, most := pods*rounds, drained*4; deleted < least || deleted > most {
		t.Errorf("%d pods were deleted in %d drains, want %d (each pod once per round) to %d", deleted, drained, least, most)
	}
	t.Logf("%d nodes drained, %d pods deleted, %d violations of budgets, in %.0f s",
		drained, deleted, len(violations), time.Since(began).Seconds())
	cleanUp(t, l, name)
}

// spreadAppWithPDB returns the manifests of a Deployment with at most one replica per node, and of its
// PodDisruptionBudget with maxUnavailable 1.
func spreadAppWithPDB(namespace, app string) string {
	d := deployment(namespace, app, replicasEach, "800m", "512Mi", "test: "+namespace)
	antiAffinity := fmt.Sprintf(`      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}
      containers:
`, app)
	return strings.Replace(d, "      containers:\n", antiAffinity, 1) + fmt.Sprintf(`
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

// budgetWatch watches the pods of a namespace, and records violations of PodDisruptionBudgets.
type budgetWatch struct {
	mu          sync.Mutex
	serving     map[string]map[string]bool // by app: names of pods that are Ready and not being deleted
	wasComplete map[string]bool            // apps that have had all their replicas
	deleted     int                        // number of deleted pods
	violations  []string
}

func watchBudgets(t *testing.T, l *lab.Lab, namespace string) *budgetWatch {
	t.Helper()
	w := &budgetWatch{serving: map[string]map[string]bool{}, wasComplete: map[string]bool{}}
	watchPods(t, l, namespace, func(o any, _, isGone bool) { w.record(o, isGone) })
	return w
}

// watchPods calls onChange with isInInitialList for each existing pod of the namespace. Then it calls onChange for each
// change of a pod, in order, until the test ends. isGone is true for a deleted pod.
func watchPods(t *testing.T, l *lab.Lab, namespace string, onChange func(pod any, isInInitialList, isGone bool)) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(l.Kube, 0, informers.WithNamespace(namespace))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(pod any, isInInitialList bool) { onChange(pod, isInInitialList, false) },
		UpdateFunc: func(_, pod any) { onChange(pod, false, false) },
		DeleteFunc: func(pod any) { onChange(pod, false, true) },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

// record records a change of a pod, and whether the change exceeds the PodDisruptionBudget of its app.
func (w *budgetWatch) record(o any, isGone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	app := pod.Labels["app"]
	if w.serving[app] == nil {
		w.serving[app] = map[string]bool{}
	}
	before := len(w.serving[app])
	if isGone {
		w.deleted++
	}
	if isReadyPod(pod) && pod.DeletionTimestamp == nil && !isGone {
		w.serving[app][pod.Name] = true
	} else {
		delete(w.serving[app], pod.Name)
	}
	after := len(w.serving[app])
	w.wasComplete[app] = w.wasComplete[app] || after == replicasEach
	if w.wasComplete[app] && after < before && after < replicasEach-1 {
		w.violations = append(w.violations, fmt.Sprintf("%s: only %d pods of %s are ready without pod %s on %s (%s), want all but one",
			time.Now().Format(time.TimeOnly), after, app, pod.Name, pod.Spec.NodeName, pod.Status.Reason))
	}
}

func isReadyPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (w *budgetWatch) isComplete() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.serving) < drainedApps {
		return false, fmt.Errorf("%d apps have pods, want %d", len(w.serving), drainedApps)
	}
	for _, app := range slices.Sorted(maps.Keys(w.serving)) {
		if n := len(w.serving[app]); n != replicasEach {
			return false, fmt.Errorf("%d replicas of %s are ready, want %d", n, app, replicasEach)
		}
	}
	return true, nil
}

func (w *budgetWatch) results() (violations []string, deleted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violations, w.deleted
}

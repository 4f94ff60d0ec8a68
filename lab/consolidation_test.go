package lab_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/lowerbound"
	"github.com/joiner-sh/joiner/lab"
)

const (
	defaultConsolidationNodes = 20               // initial number of nodes; LAB_LOOSE sets another number, make soak 200
	budgetShare               = 0.2              // share of the nodes that the disruption budget allows to be disrupted at once
	maxPending                = 10 * time.Second // maximum time for which a pod may be pending
	maxMovesPerPod            = 2                // per hour, the controller's default
)

// TestConsolidation halves the replicas of all apps in a cluster with the real kube-scheduler, which leaves nodes half
// empty. Consolidation must move the pods to at most 5 % more nodes than they need. No PodDisruptionBudget and no
// disruption budget may be exceeded at any time, and no pod may be pending for longer than maxPending. Afterwards no
// node may change.
func TestConsolidation(t *testing.T) {
	nodes := int(numberFrom(t, "LAB_LOOSE", defaultConsolidationNodes))
	l := parallelLab(t, lab.Options{Cluster: "loose"})
	ensureController(t, l)
	name := newTestNamespace(t, l)
	p := pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}")
	manifests := []string{
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		strings.Replace(p, "consolidationPolicy: WhenEmpty, consolidateAfter: 1s, budgets: [{nodes: 100%}]",
			fmt.Sprintf("consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 20s, budgets: [{nodes: %.0f%%}]", budgetShare*100), 1),
	}
	for i := range nodes {
		manifests = append(manifests, appWithPDB(name, fmt.Sprintf("app-%03d", i)))
	}
	apply(t, l, manifests...)
	pods := nodes * replicasEach
	awaitRunning(t, l, name, pods, 5*time.Minute)
	// Of 1930m CPU, DaemonSet pods request 150m and each pod 400m: four pods fit on a node.
	before := len(claimNames(t, l, name))
	if before != nodes {
		t.Fatalf("%d nodes for %d pods, want %d", before, pods, nodes)
	}

	scaleAll(t, l, name, replicasEach/2)
	within(t, l, time.Minute, "half of the pods to be deleted", func(ctx context.Context) (bool, error) {
		list, err := l.Kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == pods/2, err
	})
	o := observe(t, l, name, replicasEach/2)
	began := time.Now()
	needed := before / 2
	maxNodes := int(math.Floor(float64(needed) * 1.05))
	within(t, l, 2*time.Minute+time.Duration(nodes)*3*time.Second,
		fmt.Sprintf("the pods, which need %d nodes, to be on at most %d", needed, maxNodes), func(context.Context) (bool, error) {
			if left := len(claimNames(t, l, name)); left > maxNodes || !o.isIdle() {
				return false, fmt.Errorf("%d nodes; all ready and no pod pending: %t", left, o.isIdle())
			}
			return true, nil
		})
	took := time.Since(began)
	// Consolidation may remove further nodes, which restarts the 30 seconds. Any other change of the nodes is an error.
	remaining := claimNames(t, l, name)
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); <-time.After(time.Second) {
		current := claimNames(t, l, name)
		if len(current) < len(remaining) {
			remaining, until = current, time.Now().Add(30*time.Second)
		}
		if strings.Join(current, " ") != strings.Join(remaining, " ") {
			t.Fatalf("nodes changed after consolidation from %v to %v, want no change", remaining, current)
		}
	}
	o.reportViolations(t)
	paid, bound := priceAndBound(t, l, name)
	if float64(paid) > 1.05*float64(bound) {
		t.Errorf("the remaining nodes cost $%s/h, want at most 1.05 times the lower bound of $%s/h", paid, bound)
	}
	t.Logf("%d nodes became %d in %.0f s, price $%s/h, lower bound $%s/h; %d pods moved, the longest was pending for %.1f s; "+
		"at most %d nodes were disrupted at once, in %d scans",
		before, len(remaining), took.Seconds(), paid, bound, o.moved, o.longestPending.Seconds(), o.mostDisrupted, o.scans)
}

// priceAndBound returns the hourly price of the pool's instances, and a lower bound for it. All instances have the same
// type. No set of instances of this type that has room for the pods of the namespace costs less than the bound.
func priceAndBound(t *testing.T, l *lab.Lab, name string) (paid, bound catalog.Price) {
	t.Helper()
	var each catalog.Price // price of one instance
	for _, i := range instancesOf(l, name) {
		if i.State == world.Running || i.State == world.Pending {
			each = l.Price(i)
			paid += each
		}
	}
	nodes, err := l.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: karpenterv1.LabelNodePool + "=" + name})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("%d nodes, want at least one; error: %v", len(nodes.Items), err)
	}
	pods, err := l.Kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	room, p := sizeOf(nodes.Items[0].Status.Allocatable), lowerbound.Problem{Sets: [][]int{{0}}} // all pods can use the only offering
	for i := range pods.Items {
		pod := &pods.Items[i]
		asks := []int64{0, 0}
		for _, c := range pod.Spec.Containers {
			for r, n := range sizeOf(c.Resources.Requests) {
				asks[r] += n
			}
		}
		switch {
		case pod.Namespace == name:
			p.Demands = append(p.Demands, lowerbound.Demand{Count: 1, Ask: asks})
		case pod.Spec.NodeName == nodes.Items[0].Name: // a DaemonSet pod, which every node has
			room[0], room[1] = room[0]-asks[0], room[1]-asks[1]
		}
	}
	p.Offers = []lowerbound.Offer{{Price: each, Room: room}}
	return paid, lowerbound.Compute(p).Price
}

// sizeOf returns the CPU in millicores and the memory in bytes, in this order.
func sizeOf(l corev1.ResourceList) []int64 { return []int64{l.Cpu().MilliValue(), l.Memory().Value()} }

func appWithPDB(namespace, app string) string {
	return deployment(namespace, app, replicasEach, "400m", "256Mi", "test: "+namespace) + fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %s, namespace: %s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: %s}}}
---
`, app, namespace, app)
}

func scaleAll(t *testing.T, l *lab.Lab, namespace string, replicas int) {
	t.Helper()
	list, err := l.Kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if err := l.Client.Patch(t.Context(), &d, patch); err != nil {
			t.Fatal(err)
		}
	}
}

// observer watches the pods of a namespace, and scans the nodes of the pool with the same name ten times a second.
type observer struct {
	replicas int // number of pods of each app

	mu             sync.Mutex
	serving        map[string]map[string]bool // by app: pods that are Ready and not being deleted
	pendingSince   map[string]time.Time       // by name of a pending pod
	longestPending time.Duration              // longest time for which a pod was pending
	moved          int                        // pods that became pending: each replaces an evicted pod
	movedByApp     map[string]int             // moved, by app
	scans          int                        // number of scans of the nodes
	start          time.Time                  // when the scans started
	disrupted      int                        // nodes that were terminating or not ready at the last scan
	mostDisrupted  int                        // maximum of disrupted
	violations     []string                   // exceeded budgets, as sentences
}

// observe starts an observer that scans until the test ends.
func observe(t *testing.T, l *lab.Lab, name string, replicas int) *observer {
	t.Helper()
	o := &observer{replicas: replicas, serving: map[string]map[string]bool{}, pendingSince: map[string]time.Time{},
		movedByApp: map[string]int{}, start: time.Now()}
	watchPods(t, l, name, o.recordPod)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				o.scan(ctx, l, name)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return o
}

// recordPod records a change of a pod, and whether the change exceeds the PodDisruptionBudget of its app.
func (o *observer) recordPod(object any, isInInitialList, isGone bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	app := pod.Labels["app"]
	if o.serving[app] == nil {
		o.serving[app] = map[string]bool{}
	}
	since, isPending := o.pendingSince[pod.Name]
	switch {
	case pod.Spec.NodeName == "" && !isGone && !isPending:
		o.pendingSince[pod.Name] = time.Now()
		o.moved++
		o.movedByApp[app]++
	case pod.Spec.NodeName != "" && isPending:
		o.longestPending = max(o.longestPending, time.Since(since))
		delete(o.pendingSince, pod.Name)
	}
	before := len(o.serving[app])
	if isReadyPod(pod) && pod.DeletionTimestamp == nil && !isGone {
		o.serving[app][pod.Name] = true
	} else {
		delete(o.serving[app], pod.Name)
	}
	if after := len(o.serving[app]); !isInInitialList && after < before && after < o.replicas-1 {
		o.violations = append(o.violations, fmt.Sprintf("%s: only %d pods of %s are ready without pod %s, want all but one",
			time.Now().Format(time.TimeOnly), after, app, pod.Name))
	}
}

// scan counts the nodes that are terminating or not ready, and records whether they exceed the disruption budget.
func (o *observer) scan(ctx context.Context, l *lab.Lab, name string) {
	var claims karpenterv1.NodeClaimList
	var nodes corev1.NodeList
	pool := client.MatchingLabels{karpenterv1.LabelNodePool: name}
	if l.Client.List(ctx, &claims, pool) != nil || l.Client.List(ctx, &nodes, pool) != nil {
		return
	}
	isDeleting := map[string]bool{} // by provider ID
	for _, c := range claims.Items {
		isDeleting[c.Status.ProviderID] = c.DeletionTimestamp != nil
	}
	total, disrupted := 0, 0
	for _, n := range nodes.Items {
		if n.Labels[karpenterv1.LabelInitialized] != "true" {
			continue
		}
		total++
		isReady, isTainted := false, false
		for _, c := range n.Status.Conditions {
			isReady = isReady || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		for _, taint := range n.Spec.Taints {
			isTainted = isTainted || taint.Key == karpenterv1.TaintDisrupted
		}
		if !isReady || isTainted || isDeleting[n.Spec.ProviderID] {
			disrupted++
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// An excess is a violation only when it grows, so that it is not reported in each scan.
	if allowed := int(math.Ceil(budgetShare * float64(total))); disrupted > o.disrupted && disrupted > allowed {
		o.violations = append(o.violations, fmt.Sprintf("%s: %d of %d nodes are terminating or not ready, at most %d are allowed",
			time.Now().Format(time.TimeOnly), disrupted, total, allowed))
	}
	o.scans, o.disrupted, o.mostDisrupted = o.scans+1, disrupted, max(o.mostDisrupted, disrupted)
}

// isIdle reports whether all nodes are ready, none is terminating, and no pod is pending.
func (o *observer) isIdle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.disrupted == 0 && len(o.pendingSince) == 0
}

// reportViolations fails the test for each recorded violation. It also fails the test if a pod was pending too long,
// too many pods moved, or there were too few scans.
func (o *observer) reportViolations(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.violations {
		t.Error(v)
	}
	if o.longestPending > maxPending {
		t.Errorf("a pod was pending for %s, want at most %s", o.longestPending, maxPending)
	}
	if o.moved >= o.replicas*len(o.serving) {
		t.Errorf("%d pods moved, want fewer than all %d", o.moved, o.replicas*len(o.serving))
	}
	for app, n := range o.movedByApp { // of the whole test, which takes less than the hour of the limit
		if n > maxMovesPerPod*o.replicas {
			t.Errorf("the %d pods of %s moved %d times together, want at most %d times each", o.replicas, app, n, maxMovesPerPod)
		}
	}
	if least := int(2 * time.Since(o.start).Seconds()); o.scans < least { // two per second, a fifth of the scans of observe
		t.Errorf("the nodes were scanned only %d times, want at least %d", o.scans, least)
	}
}

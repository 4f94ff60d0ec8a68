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
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/iampolicy"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab"
)

const tagUID = "joiner.sh/cluster-uid"

// twin is one of two clusters with the same name, watched from its first node on.
type twin struct {
	l    *lab.Lab
	name string // name of its pool, class, namespace and app
	uid  string // UID of the cluster

	mu             sync.Mutex
	mayConsolidate bool              // its nodes may be consolidated now
	hasHeld        bool              // its pool has reported a held mass drift, which waits for the user's decision
	mayEndHold     bool              // its pool may stop reporting a held mass drift
	deleted        map[string]string // reasons of the deleted claims, by the claim's name
	nodes          map[string]bool   // whether a Node exists now, by provider ID, for all Nodes that ever existed
	violations     []string
}

// newTwin watches a cluster until the test ends.
func newTwin(t *testing.T, l *lab.Lab) *twin {
	t.Helper()
	uid, err := l.UID()
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{l: l, name: newTestNamespace(t, l), uid: uid, deleted: map[string]string{}, nodes: map[string]bool{}}
	w.watch(t, &karpenterv1.NodeClaimList{}, w.seeClaim)
	w.watch(t, &karpenterv1.NodePoolList{}, w.seePool)
	w.watch(t, &corev1.NodeList{}, w.seeNode)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.uid + ":\n" + strings.Join(w.violationsSoFar(), "\n") + l.Evidence(context.Background()))
		}
	})
	return w
}

// watch calls see for every change of objects of a kind, with w.mu held, until the test ends.
func (w *twin) watch(t *testing.T, list client.ObjectList, see func(watch.Event)) {
	t.Helper()
	events, err := w.l.Client.Watch(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { events.Stop(); <-done })
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			w.mu.Lock()
			see(e)
			w.mu.Unlock()
		}
	}()
}

func (w *twin) violationsSoFar() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}

// fail records a violation. The caller holds w.mu.
func (w *twin) fail(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// seeClaim records the deletion of a claim, and violations. Only consolidation may delete claims, and only while the
// test allows it.
func (w *twin) seeClaim(e watch.Event) {
	claim, ok := e.Object.(*karpenterv1.NodeClaim)
	if !ok {
		return
	}
	why, _ := claim.StatusConditions().Find(karpenterv1.ConditionDisruptionReason)
	if why.Reason == string(karpenterv1.DisruptionDrifted) {
		w.fail("claim %s is replaced because it drifts, although no user has allowed that", claim.Name)
	}
	if _, known := w.deleted[claim.Name]; known || claim.DeletionTimestamp == nil && e.Type != watch.Deleted {
		return
	}
	w.deleted[claim.Name] = why.Reason
	if !w.mayConsolidate || !slices.Contains(consolidations(), why.Reason) {
		w.fail("claim %s is deleted for the reason %q, which is not allowed now", claim.Name, why.Reason)
	}
}

func consolidations() []string {
	return []string{string(karpenterv1.DisruptionUnderutilized), string(karpenterv1.DisruptionEmpty)}
}

// seePool records a violation if the pool stops reporting a held mass drift before the test allows that.
func (w *twin) seePool(e watch.Event) {
	pool, ok := e.Object.(*karpenterv1.NodePool)
	if !ok {
		return
	}
	_, isHeld := pool.StatusConditions().Find(karpenterv1.ConditionDriftHeld)
	if w.hasHeld && !isHeld && !w.mayEndHold {
		w.fail("the pool no longer reports that a mass drift waits for the user's decision")
	}
	w.hasHeld = w.hasHeld || isHeld
}

func (w *twin) seeNode(e watch.Event) {
	if node, ok := e.Object.(*corev1.Node); ok && node.Spec.ProviderID != "" {
		w.nodes[node.Spec.ProviderID] = e.Type != watch.Deleted
	}
}

// nodesNow returns the number of existing Nodes that have a provider ID.
func (w *twin) nodesNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, exists := range w.nodes {
		if exists {
			n++
		}
	}
	return n
}

// instances returns the number of the cluster's instances that are alive.
func (w *twin) instances() int {
	n := 0
	for _, i := range w.l.Instances() {
		if i.Tags[tagUID] == w.uid && i.Alive() {
			n++
		}
	}
	return n
}

func (w *twin) allowConsolidation(isAllowed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayConsolidate = isAllowed
}

func (w *twin) allowHoldToEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayEndHold = true
}

// check fails the test for each violation, and if the Nodes, claims and instances do not match each other.
func (w *twin) check(t *testing.T) {
	t.Helper()
	for _, v := range w.violationsSoFar() {
		t.Errorf("cluster %s: %s", w.uid, v)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.deleted) != twinNodes/2 || len(w.nodes) != twinNodes {
		t.Errorf("cluster %s: %d claims were deleted, want %d; %d Nodes ever existed, want %d; deleted: %v",
			w.uid, len(w.deleted), twinNodes/2, len(w.nodes), twinNodes, w.deleted)
	}
	for _, i := range w.l.Instances() {
		id := "aws:///" + i.Zone + "/" + i.ID
		if exists, known := w.nodes[id]; i.Tags[tagUID] == w.uid && (!known || exists != i.Alive()) {
			t.Errorf("cluster %s: instance %s is %s; a Node existed for it: %t, exists now: %t; want one if it is alive", w.uid, i.ID, i.State, known, exists)
		}
		if _, known := w.nodes[id]; i.Tags[tagUID] != w.uid && known {
			t.Errorf("cluster %s: instance %s, of cluster %s, has a Node here", w.uid, i.ID, i.Tags[tagUID])
		}
	}
}

// recordedCalls has the calls to AWS of the controllers of both clusters.
type recordedCalls struct {
	mu         sync.Mutex
	uids       map[string]string         // UID of the cluster, by the controller's role
	ownChanges map[string]map[string]int // number of calls that change resources of the role's own cluster, by role and action
	scans      map[string]int            // number of calls that list security groups, by role
	violations []string
}

func recordCalls(l *lab.Lab, twins []*twin) *recordedCalls {
	a := &recordedCalls{uids: map[string]string{}, ownChanges: map[string]map[string]int{}, scans: map[string]int{}}
	for _, w := range twins {
		a.uids[w.l.Role], a.ownChanges[w.l.Role] = w.uid, map[string]int{}
	}
	l.Emulator.Do(func(*world.World, time.Time) { l.Emulator.OnVerdict = a.record })
	return a
}

// record records a call of a controller's role. Resources that the call changes or creates must have the UID of the
// role's cluster in their tags. A launch may also use resources without such a tag.
func (a *recordedCalls) record(caller identity.Identity, r iampolicy.Request, isAllowed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ownUID, isController := a.uids[caller.Role]
	_, action, _ := strings.Cut(r.Action, ":")
	switch {
	case !isController:
		return
	case action == "DescribeSecurityGroups":
		a.scans[caller.Role]++
		return
	case slices.ContainsFunc([]string{"Describe", "Get", "List"}, func(verb string) bool { return strings.HasPrefix(action, verb) }):
		return
	}
	uids := slices.Concat(r.Keys["aws:ResourceTag/"+tagUID], r.Keys["aws:RequestTag/"+tagUID])
	isLaunch := action == "PassRole" || action == "RunInstances" || action == "CreateFleet"
	switch {
	case !isAllowed:
		a.violations = append(a.violations, fmt.Sprintf("IAM denies %s %s of %s", caller.Role, r.Action, r.Resource))
	case slices.ContainsFunc(uids, func(uid string) bool { return uid != ownUID }) || len(uids) == 0 && !isLaunch:
		a.violations = append(a.violations, fmt.Sprintf("%s, of cluster %s, calls %s for %s, which has the cluster UIDs %v",
			caller.Role, ownUID, r.Action, r.Resource, uids))
	case len(uids) > 0:
		a.ownChanges[caller.Role][action]++
	}
}

// scansOf returns the number of a role's calls that list security groups.
func (a *recordedCalls) scansOf(role string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scans[role]
}

// check fails the test for denied calls and for calls that change the other cluster's resources. It also fails the test
// if a role never called an important action, because then the test proves nothing.
func (a *recordedCalls) check(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.violations {
		t.Error(v)
	}
	for _, role := range slices.Sorted(maps.Keys(a.ownChanges)) {
		t.Logf("calls of %s that change its own cluster's resources: %v", role, a.ownChanges[role])
		for _, action := range []string{"CreateFleet", "CreateLaunchTemplate", "CreateInstanceProfile", "TerminateInstances"} {
			if a.ownChanges[role][action] == 0 {
				t.Errorf("%s never called %s, so the test proves nothing", role, action)
			}
		}
	}
}

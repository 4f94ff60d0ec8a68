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

// tagUID is the tag that identifies the cluster of an AWS resource.
const tagUID = "joiner.sh/cluster-uid"

// twin is one of two clusters with one name, watched from its first node on.
type twin struct {
	l    *lab.Lab
	name string // of its pool, class, namespace and app
	uid  string

	mu      sync.Mutex
	isFree  bool              // its nodes may be consolidated now
	isHeld  bool              // its pool has reported that a mass drift waits
	mayStop bool              // its pool may stop reporting that
	gone    map[string]string // deleted claims, with the reason
	nodes   map[string]bool   // whether a Node exists now, by provider id, for all Nodes that ever existed
	broken  []string
}

// newTwin watches a cluster until the test ends.
func newTwin(t *testing.T, l *lab.Lab) *twin {
	t.Helper()
	uid, err := l.UID()
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{l: l, name: namespaced(t, l), uid: uid, gone: map[string]string{}, nodes: map[string]bool{}}
	w.watch(t, &karpenterv1.NodeClaimList{}, w.seeClaim)
	w.watch(t, &karpenterv1.NodePoolList{}, w.seePool)
	w.watch(t, &corev1.NodeList{}, w.seeNode)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.uid + ":\n" + strings.Join(w.seen(), "\n") + l.Evidence(context.Background()))
		}
	})
	return w
}

// watch calls a function for every change of objects of a kind.
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

// seen returns the violations so far.
func (w *twin) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.broken)
}

func (w *twin) fail(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// seeClaim records a claim's deletion. Only consolidation may delete it, and only when there is something to
// consolidate.
func (w *twin) seeClaim(e watch.Event) {
	claim, ok := e.Object.(*karpenterv1.NodeClaim)
	if !ok {
		return
	}
	why, _ := claim.StatusConditions().Find(karpenterv1.ConditionDisruptionReason)
	if why.Reason == string(karpenterv1.DisruptionDrifted) {
		w.fail("%s is replaced because it drifts, and no user has allowed that", claim.Name)
	}
	if _, known := w.gone[claim.Name]; known || claim.DeletionTimestamp == nil && e.Type != watch.Deleted {
		return
	}
	w.gone[claim.Name] = why.Reason
	if !w.isFree || !slices.Contains(consolidations(), why.Reason) {
		w.fail("%s goes for %q, and nothing was to go for that", claim.Name, why.Reason)
	}
}

// consolidations are the reasons of disruptions by consolidation.
func consolidations() []string {
	return []string{string(karpenterv1.DisruptionUnderutilized), string(karpenterv1.DisruptionEmpty)}
}

// seePool records a pool that no longer reports a held mass drift, although no user has allowed it and nothing was undone.
func (w *twin) seePool(e watch.Event) {
	pool, ok := e.Object.(*karpenterv1.NodePool)
	if !ok {
		return
	}
	_, isHeld := pool.StatusConditions().Find(karpenterv1.ConditionDriftHeld)
	if w.isHeld && !isHeld && !w.mayStop {
		w.fail("the pool says no more that it waits for its user's word")
	}
	w.isHeld = w.isHeld || isHeld
}

// seeNode records which Nodes exist.
func (w *twin) seeNode(e watch.Event) {
	if node, ok := e.Object.(*corev1.Node); ok && node.Spec.ProviderID != "" {
		w.nodes[node.Spec.ProviderID] = e.Type != watch.Deleted
	}
}

// nodesNow returns the number of Nodes that have an instance.
func (w *twin) nodesNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, there := range w.nodes {
		if there {
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

// mayGo sets whether nodes of the cluster may be consolidated from now on.
func (w *twin) mayGo(isFree bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isFree = isFree
}

// mayEnd records that the pool has no reason to wait any more.
func (w *twin) mayEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayStop = true
}

// judge fails the test for each violation, and if Nodes and claims were not removed together.
func (w *twin) judge(t *testing.T) {
	t.Helper()
	for _, b := range w.seen() {
		t.Errorf("%s: %s", w.uid, b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.gone) != twinNodes/2 || len(w.nodes) != twinNodes {
		t.Errorf("%s: %d claims were deleted, want %d, of %d nodes, want %d: %v", w.uid, len(w.gone), twinNodes/2, len(w.nodes), twinNodes, w.gone)
	}
	for _, i := range w.l.Instances() {
		id := "aws:///" + i.Zone + "/" + i.ID
		if there, known := w.nodes[id]; i.Tags[tagUID] == w.uid && (!known || there != i.Alive()) {
			t.Errorf("%s: instance %s is %s; it had a Node: %t, and has one: %t", w.uid, i.ID, i.State, known, there)
		}
		if _, known := w.nodes[id]; i.Tags[tagUID] != w.uid && known {
			t.Errorf("%s: instance %s of %s has a Node", w.uid, i.ID, i.Tags[tagUID])
		}
	}
}

// askings has the calls to AWS of both clusters' controllers.
type askings struct {
	mu     sync.Mutex
	uids   map[string]string         // UID of the cluster by role
	made   map[string]map[string]int // number of changes of its own cluster's resources, by role and action
	scans  map[string]int            // number of calls that list security groups, by role
	broken []string
}

// hear starts to record calls.
func hear(l *lab.Lab, twins []*twin) *askings {
	a := &askings{uids: map[string]string{}, made: map[string]map[string]int{}, scans: map[string]int{}}
	for _, w := range twins {
		a.uids[w.l.Role], a.made[w.l.Role] = w.uid, map[string]int{}
	}
	l.Emulator.Do(func(*world.World, time.Time) { l.Emulator.OnAsk = a.hear })
	return a
}

// hear records a call of a role. Resources that the call changes or creates must have the UID of the role's cluster in
// their tags; resources that it only uses may belong to others.
func (a *askings) hear(caller identity.Identity, r iampolicy.Request, isAllowed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, isOurs := a.uids[caller.Role]
	_, action, _ := strings.Cut(r.Action, ":")
	switch {
	case !isOurs:
		return
	case action == "DescribeSecurityGroups":
		a.scans[caller.Role]++
		return
	case slices.ContainsFunc([]string{"Describe", "Get", "List"}, func(verb string) bool { return strings.HasPrefix(action, verb) }):
		return
	}
	uids := slices.Concat(r.Keys["aws:ResourceTag/"+tagUID], r.Keys["aws:RequestTag/"+tagUID])
	isUse := action == "PassRole" || action == "RunInstances" || action == "CreateFleet"
	switch {
	case !isAllowed:
		a.broken = append(a.broken, fmt.Sprintf("%s is refused %s of %s", caller.Role, r.Action, r.Resource))
	case slices.ContainsFunc(uids, func(uid string) bool { return uid != own }) || len(uids) == 0 && !isUse:
		a.broken = append(a.broken, fmt.Sprintf("%s, of cluster %s, asks for %s of %s, which is of %v", caller.Role, own,
			r.Action, r.Resource, uids))
	case len(uids) > 0:
		a.made[caller.Role][action]++
	}
}

// scansOf returns the number of a role's calls that list security groups.
func (a *askings) scansOf(role string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scans[role]
}

// judge fails the test for calls that change the other cluster's resources, and if there were too few calls to prove
// anything.
func (a *askings) judge(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.broken {
		t.Error(b)
	}
	for _, role := range slices.Sorted(maps.Keys(a.made)) {
		t.Logf("%s changed of its own: %v", role, a.made[role])
		for _, action := range []string{"CreateFleet", "CreateLaunchTemplate", "CreateInstanceProfile", "TerminateInstances"} {
			if a.made[role][action] == 0 {
				t.Errorf("%s never called %s, so that the test proves nothing", role, action)
			}
		}
	}
}

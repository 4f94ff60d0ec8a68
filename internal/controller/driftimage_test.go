package controller

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/kube/conversion"
)

// imageRollout is a cluster in fake time whose nodes run an image that the user owns. It simulates the replacement of
// drifted nodes: a node is deleted when its replacement is ready; if the replacement fails, the move is undone.
type imageRollout struct {
	*rig
	t         *testing.T
	broken    map[string]bool   // images with which no kubelet starts
	budget    int               // maximum number of concurrent moves
	moves     map[string]string // by name of the Node to be removed: the pod for which its replacement is launched
	mostMoves int               // largest number of concurrent moves so far
	started   int               // number of moves started so far
	undone    int               // number of moves undone so far
}

func newImageRollout(t *testing.T, nodes, budget int) *imageRollout {
	t.Helper()
	r := &imageRollout{rig: makeRig(t, []string{"t3.medium"}), t: t, broken: map[string]bool{}, budget: budget, moves: map[string]string{}}
	r.url, r.transport, r.log = "http://aws.example", inProcess{r.Server}, &bytes.Buffer{}
	r.start(t)
	r.releaseImage("golden-1")
	r.editClass(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "golden-*"}}
	})
	r.reconcileClassAndPool(t)
	if serving := r.createServing(t, podNames(nodes)...); len(serving) != nodes {
		t.Fatalf("%d nodes serve, want %d\n%s", len(serving), nodes, r.log)
	}
	r.Provisioner.Log, r.Claims.Log = r.Drift.Log, r.Drift.Log
	time.Sleep(10 * time.Minute)
	r.detect()
	return r
}

// releaseImage publishes an image that the user owns, an hour newer than all other images, and returns its ID.
func (r *imageRollout) releaseImage(name string) string {
	time.Sleep(time.Hour)
	var id string
	r.Do(func(_ *world.World, now time.Time) {
		image, ok := r.estate.Region.Images.ByID(r.estate.Region.Images.All()[0].ID)
		if !ok {
			r.t.Fatal("the region has no image")
		}
		for _, i := range r.estate.Region.Images.All() {
			if i.Family == "AL2023" && i.Architecture == "x86_64" && i.Variant == "standard" {
				image = i
			}
		}
		image.ID, image.Name, image.CreatedAt, image.OwnerID, image.OwnerAlias = "", name, now, emulator.DefaultAccount, ""
		id = r.estate.Region.Images.Register(image).ID
	})
	return id
}

// detect runs the loops of classes, pools and drift, with a new list of EC2's instances.
func (r *imageRollout) detect() {
	r.t.Helper()
	time.Sleep(driftcheck.MaxListAge)
	r.reconcileClassAndPool(r.t)
	_ = r.Drift.Pass(r.t.Context(), time.Now())
	_ = r.Drift.Pass(r.t.Context(), time.Now())
}

// runMinutes runs all loops n times, each time after MaxListAge, which is one minute.
func (r *imageRollout) runMinutes(n int) {
	for range n {
		r.detect()
		r.startMoves()
		r.plan(r.t)
		r.reconcileChanging()
		r.boot()
		r.reconcileChanging()
		r.finishMoves()
	}
}

// startMoves starts the moves that the drift loop allows, within the budget. The replacement is launched for a new pod.
func (r *imageRollout) startMoves() {
	moving := []string{}
	for node := range r.moves {
		moving = append(moving, node)
	}
	allowed, _ := r.Drift.Waves("apps", nil, moving)
	for _, node := range allowed[:min(len(allowed), r.budget-len(r.moves))] {
		r.started++
		r.moves[node] = fmt.Sprintf("move-%d", r.started)
		r.addPendingPod(r.t, r.moves[node], "1500m", "1Gi")
	}
	r.mostMoves = max(r.mostMoves, len(r.moves))
}

func (r *imageRollout) reconcileChanging() {
	for _, c := range r.claims(r.t) {
		if c.DeletionTimestamp != nil || !c.StatusConditions().IsReady() {
			r.reconcileUntilOpen(r.t, c)
		}
	}
}

func (r *imageRollout) boot() {
	known := map[string]bool{}
	for _, n := range r.nodes(r.t) {
		known[n.Spec.ProviderID] = true
	}
	for _, c := range r.claims(r.t) {
		if c.Status.ProviderID == "" || known[c.Status.ProviderID] || c.DeletionTimestamp != nil || r.broken[c.Status.ImageID] {
			continue
		}
		r.create(r.t, r.nodeOf(r.t, c))
	}
}

// finishMoves completes the moves whose replacement is ready, and undoes those whose replacement claim has ended.
func (r *imageRollout) finishMoves() {
	claims := r.claims(r.t)
	for _, node := range slices.Sorted(maps.Keys(r.moves)) {
		pod := r.moves[node]
		at := slices.IndexFunc(claims, func(c karpv1.NodeClaim) bool { return slices.Contains(conversion.PodsOf(&c), "ns/"+pod) })
		switch {
		case at < 0:
			if r.hasWaited(pod) {
				r.undone++
				r.deletePod(pod)
				delete(r.moves, node)
			}
		case claims[at].StatusConditions().IsReady():
			r.bindPodsOf(r.t, &claims[at])
			old := slices.IndexFunc(claims, func(c karpv1.NodeClaim) bool { return c.Status.NodeName == node })
			for _, id := range conversion.PodsOf(&claims[old]) {
				r.deletePod(strings.TrimPrefix(id, "ns/"))
			}
			if err := r.api.Delete(r.t.Context(), &claims[old]); err != nil {
				r.t.Fatal(err)
			}
			delete(r.moves, node)
		}
	}
}

// hasWaited reports whether the pod is gone, or so old (ten minutes) that its claim has failed.
func (r *imageRollout) hasWaited(pod string) bool {
	var p corev1.Pod
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "ns", Name: pod}, &p); err != nil {
		return true
	}
	return time.Since(p.CreationTimestamp.Time) > 10*time.Minute
}

func (r *imageRollout) deletePod(pod string) {
	_ = r.api.Delete(r.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod}})
}

// TestBrokenImageStopsAtTheCanary: many nodes drift because of an image with which no kubelet starts, and none of them
// is lost. One replacement is launched; when it fails, conditions of the pool and the class report why the rollout
// stopped. The last good image is used again, also by a restarted process. The next image is rolled out: first to a
// canary, then in waves within the budget.
func TestBrokenImageStopsAtTheCanary(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the table that the synctest bubbles share
	const nodes, budget = 40, 4
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		r := newImageRollout(t, nodes, budget)
		first := r.claims(t)[0].Status.ImageID
		if got := r.byImage(t); got[first] != nodes {
			t.Fatalf("the nodes run %v, want one image\n%s", got, r.log)
		}
		bad := r.releaseImage("golden-2")
		r.broken[bad] = true
		r.detect()
		if n := len(r.conditionTexts(t, karpv1.ConditionDrifted)); n != nodes {
			t.Fatalf("%d nodes drift, want all %d\n%s", n, nodes, r.log)
		}
		r.runMinutes(2)
		time.Sleep(12 * time.Minute) // with the runs before and after: past RegistrationTimeout
		r.runMinutes(5)
		if r.mostMoves != 1 || r.started != 1 {
			t.Errorf("%d moves at once and %d in all, want one", r.mostMoves, r.started)
		}
		heldBack, _ := r.class(t).StatusConditions().Find(awsv1.ConditionImageHeldBack)
		driftHeld, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld)
		for kind, c := range map[string]metav1.Condition{"EC2NodeClass": heldBack, "NodePool": driftHeld} {
			for _, part := range []string{bad + " (golden-2)", first + " (golden-1) is used again",
				"has not joined the cluster within 15m0s", "kubectl annotate ec2nodeclass default"} {
				if !strings.Contains(c.Message, part) {
					t.Errorf("the condition of the %s is %q, want %q in it", kind, c.Message, part)
				}
			}
		}
		if in := r.class(t).Status.AMIs; len(in) != 1 || in[0].ID != first {
			t.Errorf("the class uses %v, want %s", in, first)
		}
		if n := len(r.conditionTexts(t, karpv1.ConditionDrifted)); n > 0 {
			t.Errorf("%d nodes still drift, want none", n)
		}
		if got := r.byImage(t); got[first] != nodes || got[bad] > 0 {
			t.Errorf("the nodes run %v, want %d with %s", got, nodes, first)
		}

		r.start(t)
		r.runMinutes(2)
		if in := r.class(t).Status.AMIs; len(in) != 1 || in[0].ID != first {
			t.Errorf("after a restart the class uses %v, want %s", in, first)
		}
		if r.started != 1 {
			t.Errorf("%d moves were started in all, want still 1 after the restart", r.started)
		}

		good := r.releaseImage("golden-3")
		r.mostMoves = 0
		r.runMinutes(1)
		if r.mostMoves != 1 {
			t.Errorf("%d moves at once before the canary was fit, want one", r.mostMoves)
		}
		_ = r.Drift.Pass(t.Context(), time.Now())
		r.startMoves()
		if r.started != 2 || len(r.moves) > 0 {
			t.Errorf("before the new canary was fit for FitAfter, %d moves were started in all and %d are in progress; want 2 and 0",
				r.started, len(r.moves))
		}
		r.runMinutes(nodes/budget + 3)
		if got := r.byImage(t); got[good] != nodes {
			t.Errorf("the nodes run %v, want %d with %s; %d moves were undone\n%s", got, nodes, good, r.undone, r.log)
		}
		if r.mostMoves > budget || r.mostMoves < 2 {
			t.Errorf("%d moves at once, want 2 to %d", r.mostMoves, budget)
		}
		if _, ok := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld); ok {
			t.Error("the pool still has the condition DriftHeld")
		}
	})
}

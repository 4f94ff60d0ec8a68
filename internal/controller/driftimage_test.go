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

// refresh is a cluster in fake time whose nodes run an image of the user's own. It replaces drifted nodes: each by another
// that is ready first, within a budget, or not at all.
type refresh struct {
	*rig
	t      *testing.T
	broken map[string]bool // images with which no kubelet starts
	budget int
	moves  map[string]string // by Node that is to be removed: the pod that requests its replacement
	most   int               // concurrent moves, so far
	begun  int               // moves, so far
	undone int
}

func newRefresh(t *testing.T, nodes, budget int) *refresh {
	t.Helper()
	r := &refresh{rig: makeRig(t, []string{"t3.medium"}), t: t, broken: map[string]bool{}, budget: budget, moves: map[string]string{}}
	r.url, r.wire, r.log = "http://aws.example", inProcess{r.Server}, &bytes.Buffer{}
	r.start(t)
	r.release("golden-1")
	r.editClass(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "golden-*"}}
	})
	r.classes(t)
	if serving := r.servingNodes(t, pods(nodes)...); len(serving) != nodes {
		t.Fatalf("%d nodes serve, want %d\n%s", len(serving), nodes, r.log)
	}
	r.Provisioner.Log, r.Claims.Log = r.Drift.Log, r.Drift.Log
	time.Sleep(10 * time.Minute)
	r.look()
	return r
}

// release publishes an image, newer than all before.
func (r *refresh) release(name string) string {
	time.Sleep(time.Hour)
	var id string
	r.Do(func(_ *world.World, now time.Time) {
		like, ok := r.estate.Region.Images.ByID(r.estate.Region.Images.All()[0].ID)
		if !ok {
			r.t.Fatal("the region has no image")
		}
		for _, i := range r.estate.Region.Images.All() {
			if i.Family == "AL2023" && i.Architecture == "x86_64" && i.Variant == "standard" {
				like = i
			}
		}
		like.ID, like.Name, like.CreatedAt, like.OwnerID, like.OwnerAlias = "", name, now, emulator.DefaultAccount, ""
		id = r.estate.Region.Images.Register(like).ID
	})
	return id
}

// look runs the loops of class, pool and drift, with a fresh listing of EC2.
func (r *refresh) look() {
	r.t.Helper()
	time.Sleep(driftcheck.DriftListed)
	r.classes(r.t)
	_ = r.Drift.Pass(r.t.Context(), time.Now())
	_ = r.Drift.Pass(r.t.Context(), time.Now())
}

// minutes lets minutes pass in the cluster.
func (r *refresh) minutes(n int) {
	for range n {
		r.look()
		r.begin()
		r.plan(r.t)
		r.visitYoung()
		r.boot()
		r.visitYoung()
		r.finish()
	}
}

// begin starts the moves that are allowed, within the budget: a pod requests the replacement node first.
func (r *refresh) begin() {
	moving := []string{}
	for node := range r.moves {
		moving = append(moving, node)
	}
	allowed, _ := r.Drift.Waves("apps", nil, moving)
	for _, node := range allowed[:min(len(allowed), r.budget-len(r.moves))] {
		r.begun++
		r.moves[node] = fmt.Sprintf("move-%d", r.begun)
		r.pending(r.t, r.moves[node], "1500m", "1Gi")
	}
	r.most = max(r.most, len(r.moves))
}

// visitYoung reconciles the claims that are being launched or deleted.
func (r *refresh) visitYoung() {
	for _, c := range r.claims(r.t) {
		if c.DeletionTimestamp != nil || !c.StatusConditions().IsReady() {
			_, _ = r.Claims.Reconcile(r.t.Context(), named(c.Name))
		}
	}
}

// boot starts kubelets, except those of broken images.
func (r *refresh) boot() {
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

// finish completes the moves whose replacement is ready, and undoes those whose replacement claim has ended.
func (r *refresh) finish() {
	claims := r.claims(r.t)
	for _, node := range slices.Sorted(maps.Keys(r.moves)) {
		pod := r.moves[node]
		at := slices.IndexFunc(claims, func(c karpv1.NodeClaim) bool { return slices.Contains(conversion.PodsOf(&c), "ns/"+pod) })
		switch {
		case at < 0:
			if r.asked(pod) {
				r.undone++
				r.drop(pod)
				delete(r.moves, node)
			}
		case claims[at].StatusConditions().IsReady():
			r.run(r.t, &claims[at])
			old := slices.IndexFunc(claims, func(c karpv1.NodeClaim) bool { return c.Status.NodeName == node })
			for _, id := range conversion.PodsOf(&claims[old]) {
				r.drop(strings.TrimPrefix(id, "ns/"))
			}
			if err := r.api.Delete(r.t.Context(), &claims[old]); err != nil {
				r.t.Fatal(err)
			}
			delete(r.moves, node)
		}
	}
}

// asked reports whether the pod has waited long enough for its claim to have come and gone.
func (r *refresh) asked(pod string) bool {
	var p corev1.Pod
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "ns", Name: pod}, &p); err != nil {
		return true
	}
	return time.Since(p.CreationTimestamp.Time) > 10*time.Minute
}

func (r *refresh) drop(pod string) {
	_ = r.api.Delete(r.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod}})
}

// images counts the claims by image.
func (r *refresh) images() map[string]int {
	out := map[string]int{}
	for _, c := range r.claims(r.t) {
		if c.Status.ImageID != "" {
			out[c.Status.ImageID]++
		}
	}
	return out
}

// TestBrokenImageStopsAtTheCanary: of many nodes that drift because of an image with which no kubelet starts, none is lost.
// One replacement is launched; then pool and class say why it stopped. The last good image is used again, also by a
// restarted process. The next image is rolled out, a canary first and then in waves within the budget.
func TestBrokenImageStopsAtTheCanary(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the embedded table before the synctest bubbles, which share it
	const nodes, budget = 40, 4
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		r := newRefresh(t, nodes, budget)
		first := r.claims(t)[0].Status.ImageID
		if got := r.images(); got[first] != nodes {
			t.Fatalf("the nodes run %v\n%s", got, r.log)
		}
		bad := r.release("golden-2")
		r.broken[bad] = true
		r.look()
		if n := len(r.drifted(t, karpv1.ConditionDrifted)); n != nodes {
			t.Fatalf("%d nodes drift, want all\n%s", n, r.log)
		}
		r.minutes(2)
		time.Sleep(12 * time.Minute)
		r.minutes(5)
		if r.most != 1 || r.begun != 1 {
			t.Errorf("%d moves at once and %d in all, want one", r.most, r.begun)
		}
		class, _ := r.class(t).StatusConditions().Find(awsv1.ConditionImageHeldBack)
		pool, _ := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld)
		for what, c := range map[string]metav1.Condition{"EC2NodeClass": class, "NodePool": pool} {
			for _, word := range []string{bad + " (golden-2)", first + " (golden-1) is used again",
				"has not joined the cluster within 15m0s", "kubectl annotate ec2nodeclass default"} {
				if !strings.Contains(c.Message, word) {
					t.Errorf("the %s says %q, without %q", what, c.Message, word)
				}
			}
		}
		if in := r.class(t).Status.AMIs; len(in) != 1 || in[0].ID != first {
			t.Errorf("the class uses %v, want %s", in, first)
		}
		if n := len(r.drifted(t, karpv1.ConditionDrifted)); n > 0 {
			t.Errorf("%d nodes still drift", n)
		}
		if got := r.images(); got[first] != nodes || got[bad] > 0 {
			t.Errorf("the nodes run %v, want %d with %s", got, nodes, first)
		}

		r.start(t)
		r.minutes(2)
		if in := r.class(t).Status.AMIs; len(in) != 1 || in[0].ID != first {
			t.Errorf("after a restart the class uses %v, want %s", in, first)
		}
		if r.begun != 1 {
			t.Errorf("%d moves after a restart, want one as before", r.begun)
		}

		good := r.release("golden-3")
		r.most = 0
		r.minutes(1)
		if r.most != 1 {
			t.Errorf("%d moves at once before the canary was fit, want one", r.most)
		}
		_ = r.Drift.Pass(t.Context(), time.Now())
		r.begin()
		if r.begun != 2 || len(r.moves) > 0 {
			t.Errorf("%d moves started, %d in progress, before the replacement of the canary was fit for a minute, want two started and none in progress", r.begun, len(r.moves))
		}
		r.minutes(nodes/budget + 3)
		if got := r.images(); got[good] != nodes {
			t.Errorf("the nodes run %v, want %d with %s; %d were undone\n%s", got, nodes, good, r.undone, r.log)
		}
		if r.most > budget || r.most < 2 {
			t.Errorf("%d moves at once, want up to %d", r.most, budget)
		}
		if _, ok := r.pool(t).StatusConditions().Find(karpv1.ConditionDriftHeld); ok {
			t.Error("the pool still has the condition DriftHeld")
		}
	})
}

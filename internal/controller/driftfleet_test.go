package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/disruptor"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// goldenRig returns a rig whose nodes have run the user's own image golden-1 for long enough that the class stores it
// as good. It also returns the ID of the image.
func goldenRig(t *testing.T, nodes int) (f *replicaRig, image string) {
	t.Helper()
	r := newRig(t, "t3.medium")
	image = r.publish(t, "golden-1")
	r.editClass(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "golden-*"}}
	})
	f = replicaRigOn(t, r, nodes, "1500m", "1500m")
	f.withDrift = true
	for range 3 {
		f.ahead += driftcheck.MaxListAge
		f.runDisruption(t)
	}
	if used := f.class(t).Status.AMIs; len(used) != 1 || used[0].ID != image || len(driftcheck.ImageHistoryOf(f.class(t)).Good) != 1 {
		t.Fatalf("the class uses %v and stores %+v, want %s\n%s", used, driftcheck.ImageHistoryOf(f.class(t)), image, f.tail())
	}
	return f, image
}

// publish creates an image that the user owns, newer than all other images, and returns its ID.
func (r *rig) publish(t *testing.T, name string) (id string) {
	t.Helper()
	r.ahead += time.Minute
	r.Do(func(_ *world.World, now time.Time) {
		images := r.estate.Region.Images.All()
		at := slices.IndexFunc(images, func(i world.Image) bool {
			return i.Family == "AL2023" && i.Architecture == "x86_64" && i.Variant == "standard"
		})
		if at < 0 {
			t.Fatal("the region has no image of AL2023")
		}
		image := images[at]
		image.ID, image.Name, image.CreatedAt, image.OwnerID, image.OwnerAlias = "", name, now, emulator.DefaultAccount, ""
		id = r.estate.Region.Images.Register(image).ID
	})
	return id
}

// byImage counts the claims that have an instance, by the ID of the instance's image.
func (r *rig) byImage(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, c := range r.claims(t) {
		if c.Status.ImageID != "" {
			out[c.Status.ImageID]++
		}
	}
	return out
}

func (r *rig) poolMessage(t *testing.T, condition string) string {
	t.Helper()
	c, _ := r.pool(t).StatusConditions().Find(condition)
	return c.Message
}

// pausesUntilSettled returns pauses between rounds. Their sum exceeds the registration timeout, and the time for which
// the nodes of an undone move are excluded.
func pausesUntilSettled() []time.Duration {
	var out []time.Duration
	for range 4 {
		out = append(out, 10*time.Second)
	}
	for waited := time.Duration(0); waited < lifecycle.RegistrationTimeout+2*time.Minute; waited += 3 * time.Minute {
		out = append(out, 3*time.Minute)
	}
	return append(out, 3*time.Second, 3*time.Second, 3*time.Second, disruptor.FirstHold, time.Minute, 10*time.Minute,
		disruptor.MaxHold, time.Minute)
}

// TestBrokenImageStopsAfterOneLaunch: three hundred nodes drift because of an image with which no kubelet starts. One
// instance is launched with it. No pod loses its node, and no node stays tainted. The pool and the class report the
// reason, and later launches use the last good image. The next image is rolled out to one node first, and then within
// the budget.
func TestBrokenImageStopsAfterOneLaunch(t *testing.T) {
	t.Parallel()
	const nodes = 300
	f, good := goldenRig(t, nodes)
	f.setBudgets(t, karpv1.Budget{Nodes: "10%"})
	bad := f.publish(t, "golden-2")
	f.broken[bad] = true
	before := f.nodesOfPods(t)
	tried, launched := 0, map[string]bool{} // largest number of claims with the bad image; IDs of all instances
	for _, pause := range pausesUntilSettled() {
		f.round(t)
		f.ahead += pause
		for _, i := range f.instances() {
			launched[i.ID] = true
		}
		counts := f.byImage(t)
		if tried = max(tried, counts[bad]); counts[bad] > 1 || counts[good] != nodes {
			t.Fatalf("the nodes run %v, want %d with %s and at most one other\n%s", counts, nodes, good, f.tail())
		}
	}
	if tried != 1 || len(launched) != nodes+1 || f.mostTainted != 1 {
		t.Errorf("%d claims had the bad image, %d instances were launched in all, and %d nodes were tainted at once; want 1, %d, 1\n%s",
			tried, len(launched), f.mostTainted, nodes+1, f.tail())
	}
	if why := f.unfinished(t); why != "" || !maps.Equal(f.nodesOfPods(t), before) {
		t.Errorf("pods changed their nodes, or changes are unfinished: %s", why)
	}
	held, _ := f.class(t).StatusConditions().Find(awsv1.ConditionImageHeldBack)
	for kind, message := range map[string]string{"EC2NodeClass": held.Message, "NodePool": f.poolMessage(t, karpv1.ConditionDriftHeld)} {
		for _, part := range []string{bad + " (golden-2) is not used", good + " (golden-1) is used again",
			"has not joined the cluster within 15m0s"} {
			if !strings.Contains(message, part) {
				t.Errorf("the condition of the %s is %q, want %q in it", kind, message, part)
			}
		}
	}
	if n := len(f.conditionTexts(t, karpv1.ConditionDrifted)); n > 0 {
		t.Errorf("%d nodes still drift, although the newer image is not used", n)
	}

	f.ahead += time.Hour // after an instance that did not join, the pool launches nothing for a while
	f.replicas++
	f.addPendingPod(t, "one-more", f.cpu, "512Mi")
	f.plan(t)
	f.reconcileClaims(t)
	f.boot(t)
	f.reconcileClaims(t)
	f.settle(t, 2)
	if counts := f.byImage(t); counts[good] != nodes+1 || len(counts) != 1 {
		t.Fatalf("with one more pod the nodes run %v, want %d with %s\n%s", counts, nodes+1, good, f.tail())
	}
	f.checkNextRollout(t, nodes/10+1)
}

// checkNextRollout publishes one more image, and checks the first two waves of its rollout: one node, then wave nodes.
func (f *replicaRig) checkNextRollout(t *testing.T, wave int) {
	t.Helper()
	next := f.publish(t, "golden-3")
	f.mostTainted = 0
	for n := 0; n < 8 && f.byImage(t)[next] == 0; n++ {
		f.round(t)
	}
	if got := f.byImage(t)[next]; got != 1 || f.mostTainted != 1 {
		t.Errorf("before the canary counts as fit, %d nodes have the next image and %d were tainted at once; want one\n%s",
			got, f.mostTainted, f.tail())
	}
	if message := f.poolMessage(t, karpv1.ConditionDriftHeld); message != "" {
		t.Errorf("the pool still has the condition DriftHeld: %q", message)
	}
	f.settle(t, 2)
	f.ahead += driftcheck.FitAfter
	f.settle(t, 6)
	most := wave + wave/10 // replacements count as nodes of the pool while the old nodes are not gone yet
	if got := f.byImage(t)[next]; f.mostTainted < wave || f.mostTainted > most || got < wave {
		t.Errorf("in the second wave %d nodes were tainted at once, and %d have the next image; want %d to %d\n%s",
			f.mostTainted, got, wave, most, f.tail())
	}
}

func (r *rig) tail() string {
	text := r.log.String()
	return text[max(0, len(text)-8000):]
}

func (f *replicaRig) settle(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		f.round(t)
	}
}

func (f *replicaRig) nodesOfPods(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range f.pods(t) {
		out[p.Name] = p.Spec.NodeName
	}
	return out
}

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

// goldenPark is a park whose nodes run the user's own image golden-1, for long enough that it is known to be good.
func goldenPark(t *testing.T, nodes int) (f *park, image string) {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.shelve(t)
	image = r.publish(t, "golden-1")
	r.editClass(t, func(c *awsv1.EC2NodeClass) {
		c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "golden-*"}}
	})
	f = parkOn(t, r, nodes, "1500m", "1500m")
	f.fresh = true
	for range 3 {
		f.ahead += driftcheck.DriftListed
		f.lead(t)
	}
	if in := f.class(t).Status.AMIs; len(in) != 1 || in[0].ID != image || len(driftcheck.MemoryOf(f.class(t)).Good) != 1 {
		t.Fatalf("the class uses %v and remembers %+v, want %s\n%s", in, driftcheck.MemoryOf(f.class(t)), image, f.tail())
	}
	return f, image
}

// publish creates an image of the user's own, newer than all before.
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
		like := images[at]
		like.ID, like.Name, like.CreatedAt, like.OwnerID, like.OwnerAlias = "", name, now, emulator.DefaultAccount, ""
		id = r.estate.Region.Images.Register(like).ID
	})
	return id
}

// byImage counts the claims that have an instance, by its image.
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

// saysOf returns the message of a condition of the pool; empty without the condition.
func (r *rig) saysOf(t *testing.T, condition string) string {
	t.Helper()
	c, _ := r.pool(t).StatusConditions().Find(condition)
	return c.Message
}

// patience lets the registration timeout and one hour more pass, step by step, so that all loops run in each step.
func patience() []time.Duration {
	var out []time.Duration
	for range 4 {
		out = append(out, 10*time.Second)
	}
	for waited := time.Duration(0); waited < lifecycle.RegistrationTimeout+2*time.Minute; waited += 3 * time.Minute {
		out = append(out, 3*time.Minute)
	}
	return append(out, 3*time.Second, 3*time.Second, 3*time.Second, disruptor.HoldFirst, time.Minute, 10*time.Minute,
		disruptor.HoldMost, time.Minute)
}

// TestBrokenImageCostsAFleetNothing: three hundred nodes drift because of an image with which no kubelet starts. The
// production loops launch one node with it, and no other. No serving node is lost, or tainted for longer. The pool says why
// in one sentence, and later launches use the last good image. The next image is rolled out to one node first, and then
// within the budget.
func TestBrokenImageCostsAFleetNothing(t *testing.T) {
	t.Parallel()
	const nodes = 300
	f, good := goldenPark(t, nodes)
	f.budgets(t, karpv1.Budget{Nodes: "10%"})
	bad := f.publish(t, "golden-2")
	f.broken[bad] = true
	before := f.serving(t)
	tried, bought := 0, map[string]bool{}
	for _, pause := range patience() {
		f.round(t)
		f.ahead += pause
		for _, i := range f.instances() {
			bought[i.ID] = true
		}
		now := f.byImage(t)
		if tried = max(tried, now[bad]); now[bad] > 1 || now[good] != nodes {
			t.Fatalf("the nodes run %v\n%s", now, f.tail())
		}
	}
	if tried != 1 || len(bought) != nodes+1 || f.most != 1 {
		t.Errorf("%d nodes were launched with it, %d instances in all, and %d nodes were tainted at once; want 1, %d, 1\n%s", tried, len(bought), f.most, nodes+1, f.tail())
	}
	if why := f.isWhole(t); why != "" || !maps.Equal(f.serving(t), before) {
		t.Errorf("the pool is not in its former state: %s", why)
	}
	held, _ := f.class(t).StatusConditions().Find(awsv1.ConditionImageHeldBack)
	for what, says := range map[string]string{"EC2NodeClass": held.Message, "NodePool": f.saysOf(t, karpv1.ConditionDriftHeld)} {
		for _, word := range []string{bad + " (golden-2) is not used", good + " (golden-1) is used again",
			"has not joined the cluster within 15m0s"} {
			if !strings.Contains(says, word) {
				t.Errorf("the %s says %q, without %q", what, says, word)
			}
		}
	}
	if n := len(f.drifted(t, karpv1.ConditionDrifted)); n > 0 {
		t.Errorf("%d nodes still drift, to an image that is not used", n)
	}

	f.ahead += time.Hour // the pool launched nothing for a while after a node that did not come
	f.wanted++
	f.pending(t, "one-more", f.cpu, "512Mi")
	f.plan(t)
	f.work(t)
	f.boot(t)
	f.work(t)
	f.settle(t, 2)
	if now := f.byImage(t); now[good] != nodes+1 || len(now) != 1 {
		t.Fatalf("with one more pod the nodes run %v, want %d with %s\n%s", now, nodes+1, good, f.tail())
	}
	f.followsNext(t, nodes/10+1)
}

// followsNext releases one more image and checks its first two waves.
func (f *park) followsNext(t *testing.T, wave int) {
	t.Helper()
	next := f.publish(t, "golden-3")
	f.most = 0
	for n := 0; n < 8 && f.byImage(t)[next] == 0; n++ {
		f.round(t)
	}
	if got := f.byImage(t)[next]; got != 1 || f.most != 1 {
		t.Errorf("before the canary is known to be fit, %d nodes have the next image and %d were tainted at once; want one\n%s", got, f.most, f.tail())
	}
	if says := f.saysOf(t, karpv1.ConditionDriftHeld); says != "" {
		t.Errorf("the pool still has the condition %q", says)
	}
	f.settle(t, 2)
	f.ahead += driftcheck.DriftSoak
	f.settle(t, 6)
	most := wave + wave/10 // replacements count as nodes of the pool while the old nodes are not gone yet
	if got := f.byImage(t)[next]; f.most < wave || f.most > most || got < wave {
		t.Errorf("then %d nodes were tainted at once, and %d have the next image; want %d to %d\n%s", f.most, got, wave, most, f.tail())
	}
}

// tail is the end of the log, which is long.
func (r *rig) tail() string {
	text := r.log.String()
	return text[max(0, len(text)-8000):]
}

// settle runs the given number of rounds.
func (f *park) settle(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		f.round(t)
	}
}

// serving returns the pods that have a node, by name.
func (f *park) serving(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range f.pods(t) {
		out[p.Name] = p.Spec.NodeName
	}
	return out
}

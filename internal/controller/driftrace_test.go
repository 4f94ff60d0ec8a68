package controller

import (
	"context"
	"testing"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ami"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/disruption/drift"
	"github.com/joiner-sh/joiner/internal/disruption/replacement"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// meanwhile is an image client during whose call another action happens, once.
type meanwhile struct {
	nodeclass.ImageClient
	do func()
}

// Images implements images.
func (m *meanwhile) Images(ctx context.Context, version string, terms []ami.Term) ([]ami.Image, []ami.Unmatched, error) {
	if m.do != nil {
		do := m.do
		m.do = nil
		do()
	}
	return m.ImageClient.Images(ctx, version, terms)
}

// TestForgettingImagesOverwritesNothing: an image that fails while the class is being resolved, which takes AWS some time,
// is not forgotten with those that are no longer found.
func TestForgettingImagesOverwritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.servingNodes(t, "web")
	found := driftcheck.ImagesIn(r.class(t))
	if len(found) < 2 {
		t.Fatalf("the class finds %v, want images of two kinds", found)
	}
	class := r.class(t)
	memory := drift.Memory{
		Good: []drift.Image{{ID: "ami-good", Slot: found[0].Slot}, {ID: "ami-fine", Slot: found[1].Slot}},
		Bad:  []drift.Bad{{Image: drift.Image{ID: "ami-gone", Slot: found[0].Slot}, Generation: class.Generation}},
	}
	driftcheck.KeepImages(class, memory)
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.NodeClasses.Images = &meanwhile{ImageClient: r.NodeClasses.Images, do: func() {
		class := r.class(t)
		driftcheck.KeepImages(class,
			driftcheck.MemoryOf(class).Condemned(drift.Bad{Image: found[1], Generation: class.Generation, Why: "it never joined"}))
		if err := r.api.Update(t.Context(), class); err != nil {
			t.Error(err)
		}
	}}
	for range 2 { // the first gets a conflict and must read again
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	if left := driftcheck.MemoryOf(r.class(t)).Bad; len(left) != 1 || left[0].Image != found[1] {
		t.Errorf("bad are %+v, want %s alone", left, found[1].ID)
	}
	used := map[string]bool{}
	for _, i := range r.class(t).Status.AMIs {
		used[i.ID] = true
	}
	if !used["ami-fine"] || used[found[1].ID] {
		t.Errorf("the class uses %v, want ami-fine in the place of %s", used, found[1].ID)
	}
}

// TestFailuresAddUp: claims that fail at the same moment are all remembered, although the last reader sees none of the
// others. They count before the next pass, so that no other replacement with the same target starts.
func TestFailuresAddUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.servingNodes(t, pods(3)...)
	r.drifting(t)
	r.drifting(t)
	old := r.pool(t)
	r.editPool(t, func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "b"} })
	r.drifting(t)
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) != 1 {
		t.Fatalf("%v may be replaced, want the canary", allowed)
	}
	asked := r.pool(t)
	for _, c := range claims[:2] {
		made := r.claim(t, c.Name)
		made.Annotations[karpv1.AnnotationNodePoolHash] = asked.Annotations[karpv1.AnnotationNodePoolHash]
		if err := r.Drift.Failed(t.Context(), made, "it never joined", r.now()); err != nil {
			t.Fatal(err)
		}
	}
	if allowed, stays := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 || len(stays) != 3 {
		t.Errorf("%v may be replaced although their target has just failed; %v stay", allowed, stays)
	}
	for _, f := range driftcheck.FailuresOf(r.pool(t)) {
		if len(f.Claims) != 2 {
			t.Errorf("remembered are %v, want both", f.Claims)
		}
	}
	// A cache that does not show the failure yet has no effect for a while.
	if got := r.Drift.FailedOf(old, r.now()); len(got) != 1 {
		t.Errorf("the failures of a pool that was read before are %v", got)
	}
	if got := r.Drift.FailedOf(old, r.now().Add(driftcheck.FreshFor)); len(got) != 0 {
		t.Errorf("removing the annotation has no effect: %v", got)
	}
}

// TestMovesOutlastTheirClaims: a claim that does not become a node is given up by its own controller, which records why,
// before its move is undone.
func TestMovesOutlastTheirClaims(t *testing.T) {
	t.Parallel()
	if least := lifecycle.LaunchTimeout + 2*lifecycle.RegistrationTimeout; replacement.ReadyWithin < least {
		t.Errorf("a move is undone after %s, but its claims may take %s", replacement.ReadyWithin, least)
	}
}

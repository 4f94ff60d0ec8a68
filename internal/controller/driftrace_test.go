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

// racingImages is an image client that runs do once, during the next call.
type racingImages struct {
	nodeclass.ImageClient
	do func()
}

// Images implements nodeclass.ImageClient.
func (m *racingImages) Images(ctx context.Context, version string, terms []ami.Term) ([]ami.Image, []ami.Unmatched, error) {
	if m.do != nil {
		do := m.do
		m.do = nil
		do()
	}
	return m.ImageClient.Images(ctx, version, terms)
}

// TestForgettingImagesOverwritesNothing: while a reconcile of the class waits for AWS, an image fails and is stored as
// bad. The reconcile forgets an older bad image that the class no longer finds, and keeps the new one.
func TestForgettingImagesOverwritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	r.createServing(t, "web")
	found := driftcheck.ImagesIn(r.class(t))
	if len(found) < 2 {
		t.Fatalf("the class finds %v, want images of two kinds", found)
	}
	class := r.class(t)
	history := drift.ImageHistory{
		Good: []drift.Image{{ID: "ami-good", Slot: found[0].Slot}, {ID: "ami-fine", Slot: found[1].Slot}},
		Bad:  []drift.BadImage{{Image: drift.Image{ID: "ami-gone", Slot: found[0].Slot}, Generation: class.Generation}},
	}
	driftcheck.StoreImages(class, history)
	if err := r.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.NodeClasses.Images = &racingImages{ImageClient: r.NodeClasses.Images, do: func() {
		class := r.class(t)
		driftcheck.StoreImages(class,
			driftcheck.ImageHistoryOf(class).WithBad(drift.BadImage{Image: found[1], Generation: class.Generation, Why: "it never joined"}))
		if err := r.api.Update(t.Context(), class); err != nil {
			t.Error(err)
		}
	}}
	for range 2 { // the first reconcile gets a conflict and must read the class again
		if _, err := r.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
			t.Fatal(err)
		}
	}
	if left := driftcheck.ImageHistoryOf(r.class(t)).Bad; len(left) != 1 || left[0].Image != found[1] {
		t.Errorf("the bad images are %+v, want %s alone", left, found[1].ID)
	}
	used := map[string]bool{}
	for _, i := range r.class(t).Status.AMIs {
		used[i.ID] = true
	}
	if !used["ami-fine"] || used[found[1].ID] {
		t.Errorf("the class uses %v, want ami-fine in the place of %s", used, found[1].ID)
	}
}

// TestFailuresAddUp: the failures of two claims are both stored on the pool, and count before the next pass: no other
// replacement with the same target starts. For MaxCacheLag, they also count if the cache shows an older pool.
func TestFailuresAddUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claims := r.createServing(t, podNames(3)...)
	r.runDriftLoop(t)
	r.runDriftLoop(t)
	older := r.pool(t)
	r.editPool(t, func(p *karpv1.NodePool) { p.Spec.Template.Labels = map[string]string{"team": "b"} })
	r.runDriftLoop(t)
	if allowed, _ := r.Drift.Waves("apps", nil, nil); len(allowed) != 1 {
		t.Fatalf("%v may be replaced, want the canary", allowed)
	}
	edited := r.pool(t)
	for _, c := range claims[:2] {
		claim := r.claim(t, c.Name)
		claim.Annotations[karpv1.AnnotationNodePoolHash] = edited.Annotations[karpv1.AnnotationNodePoolHash]
		if err := r.Drift.RecordFailure(t.Context(), claim, "it never joined", r.now()); err != nil {
			t.Fatal(err)
		}
	}
	if allowed, stays := r.Drift.Waves("apps", nil, nil); len(allowed) > 0 || len(stays) != 3 {
		t.Errorf("%v may be replaced although their target has just failed; %v stay, want all three", allowed, stays)
	}
	for _, f := range driftcheck.FailuresOf(r.pool(t)) {
		if len(f.Claims) != 2 {
			t.Errorf("the pool stores failures of %v, want both claims", f.Claims)
		}
	}
	if got := r.Drift.CurrentFailures(older, r.now()); len(got) != 1 {
		t.Errorf("the failures of a pool that was read before them are %v, want one target", got)
	}
	if got := r.Drift.CurrentFailures(older, r.now().Add(driftcheck.MaxCacheLag)); len(got) != 0 {
		t.Errorf("after MaxCacheLag, the failures of a pool without the annotation are %v, want none", got)
	}
}

// TestMovesOutlastTheirClaims: if a claim does not become a node, its reconciler gives it up and records why, before
// the claim's move is undone.
func TestMovesOutlastTheirClaims(t *testing.T) {
	t.Parallel()
	// RegistrationTimeout counts twice: to register, and to initialize.
	if least := lifecycle.LaunchTimeout + 2*lifecycle.RegistrationTimeout; replacement.ReadyWithin < least {
		t.Errorf("a move is undone after %s, but its claims may take %s", replacement.ReadyWithin, least)
	}
}

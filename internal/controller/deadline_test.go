package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
)

// TestDeadlineOfAnAbandonedRepair: a node repair wrote the deadline after which pods are deleted by force, and then did
// not delete the claim. If the claim is deleted days later for another reason, the deadline does not apply.
func TestDeadlineOfAnAbandonedRepair(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		annotation string // the deadline
		deleted    time.Time
		want       time.Time
	}{
		"no deadline":                             {"", now, time.Time{}},
		"an unreadable deadline":                  {"soon", now, time.Time{}},
		"the deadline is in the future":           {"2026-03-01T13:00:00Z", now, now.Add(time.Hour)},
		"deleted just after the deadline":         {"2026-03-01T11:59:50Z", now, now.Add(-10 * time.Second)},
		"deleted days after the deadline":         {"2026-02-26T12:00:00Z", now, time.Time{}},
		"the deadline passed during the deletion": {"2026-03-01T12:00:00Z", now.Add(-72 * time.Hour), now},
		"not deleted":                             {"2026-02-26T12:00:00Z", time.Time{}, now.Add(-72 * time.Hour)},
	} {
		claim := &karpv1.NodeClaim{}
		driftcheck.Annotate(claim, karpv1.AnnotationTerminationTimestamp, c.annotation)
		if !c.deleted.IsZero() {
			claim.DeletionTimestamp = &metav1.Time{Time: c.deleted}
		}
		if got := nodestate.LifecycleClaimOf(claim).Deadline; !got.Equal(c.want) {
			t.Errorf("%s: the deadline is %s, want %s", name, got, c.want)
		}
	}
}

// TestDeadlineIsNotBeforeTheDeletion: an expired claim with a grace period of one minute is deleted an hour after its
// replacement was requested. It is drained like any other claim, and its deadline is not before its deletion.
func TestDeadlineIsNotBeforeTheDeletion(t *testing.T) {
	t.Parallel()
	minute := karpv1.Duration{Duration: time.Minute}
	r, _, name := leavingNode(t, &minute)
	claim := r.claim(t, name)
	driftcheck.Annotate(claim, nodestate.AnnotationReplacing, claim.DeletionTimestamp.Add(-time.Hour).UTC().Format(time.RFC3339))
	if err := r.api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.reconcileEachSecond(t, name, 2)
	if node := r.nodes(t)[0]; node.DeletionTimestamp == nil {
		t.Errorf("the Node is not being deleted\n%s", r.log)
	}
	if at := nodestate.DeadlineOf(r.claim(t, name)); at.Before(claim.DeletionTimestamp.Time) {
		t.Errorf("the deadline %s is before the deletion of the claim at %s", at, claim.DeletionTimestamp)
	}
}

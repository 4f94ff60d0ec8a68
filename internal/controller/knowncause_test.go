package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestKnownCauseHoldsThePool: a pool waits if its instances do not join for a known cause. Instances that are launched
// together count once. After the pause, one canary is launched. A new process restores the pause from the pool's
// condition.
func TestKnownCauseHoldsThePool(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	first := poolhealth.KnownCause{Check: "AUTH-5", Cause: "a cause. Fix: two\nlines; and more (AUTH-5)", Preflight: true,
		LaunchedAt: now, EndsAt: now.Add(15 * time.Minute)}
	h := &poolhealth.LaunchBackoff{}
	until, isNews := h.RecordCause(now, "apps", first)
	later := first
	later.LaunchedAt = now.Add(time.Minute)
	again, isNewsAgain := h.RecordCause(now, "apps", later)
	// The first pause ends 5 minutes after EndsAt.
	if want := now.Add(20 * time.Minute); !until.Equal(want) || !again.Equal(want) || !isNews || isNewsAgain {
		t.Fatalf("the pool waits until %s, and after the second instance until %s, want %s; new cause: %t, %t, want true, false",
			until, again, want, isNews, isNewsAgain)
	}
	planned := []packing.PlannedNode{{Pool: "apps"}, {Pool: "other"}, {Pool: "apps"}}
	held, why := h.Held(until.Add(-time.Second), "apps")
	if n := len(h.Launchable(until, planned)); !held.Equal(until) || n != 2 { // one of apps, and that of other
		t.Errorf("the pool waits until %s, want %s; then %d nodes may be launched, want 2", held, until, n)
	}
	if held, _ := h.Held(until.Add(time.Minute), "apps"); !held.Equal(until.Add(poolhealth.CanaryTime)) {
		t.Errorf("while the canary is launched, the pool waits until %s, want CanaryTime more", held)
	}
	h.LaunchFailed(until.Add(time.Minute), "apps", "none left")
	if !h.IsCanaryDue(until.Add(time.Minute), "apps") {
		t.Error("after the launch of the canary failed, no other canary is due")
	}
	later.LaunchedAt, later.EndsAt = until.Add(2*time.Minute), until.Add(17*time.Minute)
	if next, _ := h.RecordCause(until.Add(4*time.Minute), "apps", later); !next.Equal(later.EndsAt.Add(10 * time.Minute)) {
		t.Errorf("after the canary has not joined, the pool waits until %s, want 10m after EndsAt", next)
	}

	pool := testPool()
	pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionFalse,
		Reason: poolhealth.ReasonOfCheck("AUTH-5"), ObservedGeneration: pool.Generation, Message: poolhealth.HoldMessage(why, until)}}
	restored := &poolhealth.LaunchBackoff{}
	restored.Restore(pool)
	if got, text := restored.Held(now, "apps"); !got.Equal(until) || text != why || restored.PreflightCauses()["apps"] != "AUTH-5" {
		t.Errorf("restored from the condition, the pool waits until %s: %s, want the same time and cause", got, text)
	}
	pool.Generation++ // the pool was changed
	changed := &poolhealth.LaunchBackoff{}
	changed.Restore(pool)
	if got, _ := changed.Held(now, "apps"); !got.IsZero() {
		t.Errorf("a changed pool waits until %s, want no wait", got)
	}
	h.Joined(now, "apps")
	if got, _ := h.Held(until.Add(5*time.Minute), "apps"); !got.IsZero() {
		t.Errorf("after an instance has joined, the pool waits until %s, want no wait", got)
	}
}

// TestChangedPool: the failure of an instance that was launched before the pool was changed does not hold the pool,
// unless its cause comes from a preflight check, which needs no instance.
func TestChangedPool(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 900, time.UTC)
	before, after := now.Add(-2*time.Second), now.Truncate(time.Second) // the API server stores whole seconds
	pool := testPool()
	pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionUnknown,
		Reason: karpv1.ReasonAwaitingReconciliation, ObservedGeneration: pool.Generation, LastTransitionTime: metav1.Time{Time: after}}}
	changes := map[string]func(*poolhealth.LaunchBackoff){ // how the back-off learns of the change
		"reported": func(h *poolhealth.LaunchBackoff) { h.Changed(now, "apps") },
		"restored": func(h *poolhealth.LaunchBackoff) { h.Restore(pool) },
	}
	for name, change := range changes {
		for _, tt := range []struct {
			what  string
			fail  func(*poolhealth.LaunchBackoff)
			holds bool
		}{
			{"late, launched before the change", func(h *poolhealth.LaunchBackoff) {
				h.RecordCause(now, "apps", poolhealth.KnownCause{Check: "ARCH-3", LaunchedAt: before, EndsAt: now.Add(time.Minute)})
			}, false},
			{"late, launched after the change", func(h *poolhealth.LaunchBackoff) {
				h.RecordCause(now, "apps", poolhealth.KnownCause{Check: "ARCH-3", LaunchedAt: after, EndsAt: now.Add(time.Minute)})
			}, true},
			{"found by a preflight check", func(h *poolhealth.LaunchBackoff) {
				h.RecordCause(now, "apps", poolhealth.KnownCause{Check: "AUTH-2", Preflight: true, LaunchedAt: before, EndsAt: now.Add(time.Minute)})
			}, true},
			{"never joined, created before the change", func(h *poolhealth.LaunchBackoff) { h.JoinFailed(now, before, "apps", "") }, false},
			{"never joined, created after the change", func(h *poolhealth.LaunchBackoff) { h.JoinFailed(now, after, "apps", "") }, true},
			{"terminated, created before the change", func(h *poolhealth.LaunchBackoff) { h.EndedEarly(now, before, "apps", "") }, false},
			{"terminated, created after the change", func(h *poolhealth.LaunchBackoff) { h.EndedEarly(now, after, "apps", "") }, true},
		} {
			h := &poolhealth.LaunchBackoff{}
			change(h)
			tt.fail(h)
			if until, _ := h.Held(now, "apps"); until.IsZero() == tt.holds {
				t.Errorf("change %s, instance %s: held until %s, want held: %t", name, tt.what, until, tt.holds)
			}
		}
	}
}

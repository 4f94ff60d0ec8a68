package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestExplained: instances that are late together count once, there is one canary, and the message on the pool can be
// read again.
func TestExplained(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	e := poolhealth.Explained{Check: "AUTH-5", Cause: "a cause. Fix: two\nlines; and more (AUTH-5)", Ahead: true,
		Bought: now, Over: now.Add(15 * time.Minute)}
	h := &poolhealth.LaunchBackoff{}
	until, isNews := h.Explained(now, "apps", e)
	later := e
	later.Bought = now.Add(time.Minute)
	again, isNewsAgain := h.Explained(now, "apps", later)
	if want := now.Add(20 * time.Minute); !until.Equal(want) || !again.Equal(want) || !isNews || isNewsAgain {
		t.Fatalf("waits until %s and %s, want %s; new cause %t, %t", until, again, want, isNews, isNewsAgain)
	}
	machines := []packing.PlannedNode{{Pool: "apps"}, {Pool: "other"}, {Pool: "apps"}}
	held, why := h.Held(until.Add(-time.Second), "apps")
	if !held.Equal(until) || len(h.Canaries(until, machines)) != 2 {
		t.Errorf("held until %s, want %s", held, until)
	}
	if held, _ := h.Held(until.Add(time.Minute), "apps"); !held.Equal(until.Add(poolhealth.CanaryTime)) {
		t.Errorf("while the canary launches, the pool is on hold until %s", held)
	}
	h.LaunchFailed(until.Add(time.Minute), "apps", "none left")
	if !h.IsCanaryDue(until.Add(time.Minute), "apps") {
		t.Error("a failed canary launch counts")
	}
	later.Bought, later.Over = until.Add(2*time.Minute), until.Add(17*time.Minute)
	if next, _ := h.Explained(until.Add(4*time.Minute), "apps", later); !next.Equal(later.Over.Add(10 * time.Minute)) {
		t.Errorf("after the canary it waits until %s", next)
	}

	pool := testPool()
	pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionFalse,
		Reason: poolhealth.ReasonOfCheck("AUTH-5"), ObservedGeneration: pool.Generation, Message: poolhealth.HoldMessage(why, until)}}
	anew := &poolhealth.LaunchBackoff{}
	anew.Restore(pool)
	if got, text := anew.Held(now, "apps"); !got.Equal(until) || text != why || anew.ExplainedAhead()["apps"] != "AUTH-5" {
		t.Errorf("recalled until %s: %s", got, text)
	}
	pool.Generation++ // the pool was changed
	changed := &poolhealth.LaunchBackoff{}
	changed.Restore(pool)
	if got, _ := changed.Held(now, "apps"); !got.IsZero() {
		t.Errorf("a changed pool waits until %s", got)
	}
	h.Joined(now, "apps")
	if got, _ := h.Held(until.Add(5*time.Minute), "apps"); !got.IsZero() {
		t.Errorf("after an instance has joined it waits until %s", got)
	}
}

// TestChangedPool: an instance launched before the pool was changed is no evidence about the pool now, unless the check needs no instance.
func TestChangedPool(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 900, time.UTC)
	before, after := now.Add(-2*time.Second), now.Truncate(time.Second) // the API server keeps whole seconds
	pool := testPool()
	pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionUnknown,
		Reason: karpv1.ReasonAwaitingReconciliation, ObservedGeneration: pool.Generation, LastTransitionTime: metav1.Time{Time: after}}}
	changed := map[string]func(*poolhealth.LaunchBackoff){
		"reported": func(h *poolhealth.LaunchBackoff) { h.Changed(now, "apps") },
		"restored": func(h *poolhealth.LaunchBackoff) { h.Restore(pool) },
	}
	for name, change := range changed {
		for _, tt := range []struct {
			what  string
			fail  func(*poolhealth.LaunchBackoff)
			holds bool
		}{
			{"late, launched before the change", func(h *poolhealth.LaunchBackoff) {
				h.Explained(now, "apps", poolhealth.Explained{Check: "ARCH-3", Bought: before, Over: now.Add(time.Minute)})
			}, false},
			{"late, launched after the change", func(h *poolhealth.LaunchBackoff) {
				h.Explained(now, "apps", poolhealth.Explained{Check: "ARCH-3", Bought: after, Over: now.Add(time.Minute)})
			}, true},
			{"known without an instance", func(h *poolhealth.LaunchBackoff) {
				h.Explained(now, "apps", poolhealth.Explained{Check: "AUTH-2", Ahead: true, Bought: before, Over: now.Add(time.Minute)})
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
				t.Errorf("%s, %s: held until %s", name, tt.what, until)
			}
		}
	}
}

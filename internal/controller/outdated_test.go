package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

func (r *rig) setUserData(t *testing.T, text string) {
	t.Helper()
	class := r.class(t)
	class.Spec.UserData = &text
	class.Generation++
	r.check(t, r.api.Update(t.Context(), class))
	r.reconcileClassAndPool(t)
}

// isLeaving reports whether the claim is being deleted or gone.
func (r *rig) isLeaving(t *testing.T, name string) bool {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name == name {
			return c.DeletionTimestamp != nil
		}
	}
	return true
}

// TestOutdatedClaim: an instance that has not joined is replaced at once when its class or pool changes. An instance
// younger than JoinGrace may be about to join, and stays, as do all instances while the class is not ready.
func TestOutdatedClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig)
		age    time.Duration // of the instance, at the change
		joins  bool          // after the change
		want   bool          // the claim is deleted
	}{
		"class":             {func(t *testing.T, r *rig) { r.setUserData(t, "#!/bin/sh\n") }, time.Minute, false, true},
		"class, young":      {func(t *testing.T, r *rig) { r.setUserData(t, "#!/bin/sh\n") }, 10 * time.Second, false, false},
		"class, has a Node": {func(t *testing.T, r *rig) { r.setUserData(t, "#!/bin/sh\n") }, time.Minute, true, false},
		"nothing":           {func(t *testing.T, r *rig) { r.reconcileClassAndPool(t) }, time.Minute, false, false},
		"class that is not ready": {func(t *testing.T, r *rig) {
			class := r.class(t)
			class.Spec.SubnetSelectorTerms[0].Tags = map[string]string{"no": "such"}
			class.Generation++
			r.check(t, r.api.Update(t.Context(), class))
			r.reconcileClassAndPool(t)
		}, time.Minute, false, false},
		"pool": {func(t *testing.T, r *rig) {
			pool := &karpv1.NodePool{}
			r.check(t, r.api.Get(t.Context(), client.ObjectKey{Name: "apps"}, pool))
			pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoExecute}}
			r.check(t, r.api.Update(t.Context(), pool))
		}, time.Minute, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "t3.medium")
			claim := r.launchClaim(t)
			r.ahead += c.age
			c.change(t, r)
			if c.joins {
				r.join(t)
			}
			wait := r.reconcileClaims(t)
			if got := r.isLeaving(t, claim.Name); got != c.want {
				t.Fatalf("the claim is deleted: %t, want the opposite\n%+v\n%s", got, r.claims(t)[0].Status.Conditions, r.log)
			}
			if c.want && r.events.find("NodeClaim/NodeNotJoining", "replaced at once") == "" {
				t.Errorf("no event reports the replacement: %v", r.events.emitted)
			}
			if strings.HasSuffix(name, "young") && (wait <= 0 || wait > lifecycle.JoinGrace) {
				t.Errorf("the claim is reconciled again after %s, want at most JoinGrace", wait)
			}
		})
	}
}

// TestRepeatedEdits: an instance that has not joined is replaced at once after the first edit of the class. Each
// replacement after an edit starts a pause for later edits: 30 s, then twice as long, until an instance joins.
func TestRepeatedEdits(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launchClaim(t).Name
	var last time.Duration
	for n, text := range []string{"#!/bin/sh\n# 1\n", "#!/bin/sh\n# 2\n", "#!/bin/sh\n# 3\n"} {
		r.ahead += lifecycle.JoinGrace
		r.setUserData(t, text)
		edited := r.ahead
		for range 200 {
			r.reconcileClaims(t)
			if r.isLeaving(t, claim) {
				break
			}
			r.ahead += 5 * time.Second
		}
		took := r.ahead - edited
		// The second edit comes after the first pause, the third one during the second pause.
		isLate, isEarly := n == 0 && took > 0, n == 2 && took <= last
		if isLate || isEarly {
			t.Errorf("edit %d: the instance is replaced after %s, after %s at the edit before; want 0 at edit 1, more at edit 3 than at 2",
				n+1, took, last)
		}
		last = took
		r.finishDeleted(t)
		r.plan(t)
		r.reconcileClaims(t)
		claim = r.claims(t)[0].Name
	}
	r.join(t)
	r.reconcileClaims(t)
	if until, _, _ := r.Claims.Edits.Held(r.now(), "apps"); !until.IsZero() {
		t.Errorf("an instance has joined, but replacement after an edit is still delayed until %s", until)
	}
}

// TestCuredClaims: instances that have not joined CureGrace after the cause was fixed are replaced together, even if an
// earlier process found the cause.
func TestCuredClaims(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	for name, restarts := range map[string]bool{"one process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLateRig(t, awsv1.PreflightOff)
				l.reconcileClassAndPool(t)
				l.launchPods(t, 0, 3)
				l.passTime(t, 3*time.Minute)
				claims := l.claims(t)
				for _, claim := range claims {
					if c, _ := claim.StatusConditions().Find(karpv1.ConditionRegistered); c.Reason != "AUTH_2" {
						t.Fatalf("the condition of %s is %s: %s, want AUTH_2", claim.Name, c.Reason, c.Message)
					}
				}
				l.mapRole(t)
				if restarts {
					l.restart(t)
					l.reconcileClassAndPool(t)
				}
				var ticks time.Duration // makes each reading of the clock different, as in reality
				l.Diagnoses.Now = func() time.Time {
					ticks += time.Millisecond
					return time.Now().Add(ticks)
				}
				cured := l.untilCured(t, claims)
				for time.Since(cured) < lifecycle.CureGrace-5*time.Second {
					time.Sleep(5 * time.Second)
					l.runLoops(t)
				}
				for _, claim := range claims {
					if l.isLeaving(t, claim.Name) {
						t.Errorf("%s is replaced already after %s", claim.Name, time.Since(cured))
					}
				}
				l.passTime(t, 15*time.Second)
				for _, claim := range claims {
					if !l.isLeaving(t, claim.Name) {
						t.Errorf("%s is not replaced after %s\n%s", claim.Name, time.Since(cured), l.log)
					}
				}
				if l.events.find("NodeClaim/NodeNotJoining", "the cause has been fixed since") == "" {
					t.Errorf("no event reports the fixed cause: %v", l.events.emitted)
				}
				l.passTime(t, 30*time.Second)
				if n := l.launchedSoFar(); n != 2*len(claims) {
					t.Errorf("%d instances were launched, want %d", n, 2*len(claims))
				}
			})
		})
	}
}

// untilCured runs all loops until the diagnoser has seen that the causes of all claims are fixed, and returns the time.
func (l *lateRig) untilCured(t *testing.T, claims []karpv1.NodeClaim) time.Time {
	t.Helper()
	for range 60 {
		l.runLoops(t)
		cured := 0
		for i := range claims {
			if since, _ := l.Diagnoses.FixedAt(&claims[i]); !since.IsZero() {
				cured++
			}
		}
		if cured == len(claims) {
			return time.Now()
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("the cause still counts as not fixed after %s\n%s", time.Minute, l.log)
	return time.Time{}
}

// TestCauseBetweenTries: until an instance joins, the NodePool reports why none has joined, also between two launches
// and after a restart.
func TestCauseBetweenTries(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightOff)
		l.reconcileClassAndPool(t)
		l.launchPods(t, 0, 1)
		l.passTime(t, 3*time.Minute)
		wantCause := func(when, want string) {
			t.Helper()
			if c := l.poolHealth(t); c.Status != "False" || c.Reason != "AUTH_2" || strings.Count(c.Message, unmapped) != 1 ||
				!strings.Contains(c.Message, want) {
				t.Errorf("%s, the condition of the pool is %s %s: %s, want False, AUTH_2 and its cause", when, c.Status, c.Reason, c.Message)
			}
		}
		wantCause("while the pool waits", "the next try is at ")
		l.check(t, l.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}}))
		l.passTime(t, lifecycle.RegistrationTimeout+poolhealth.JoinPause(1))
		if n := len(l.claims(t)); n != 0 {
			t.Fatalf("%d claims after the registration timeout, want none", n)
		}
		wantCause("between tries", "the next instance shows")
		l.restart(t)
		l.reconcileClassAndPool(t)
		wantCause("after a restart", "the next instance shows")
		l.launchPods(t, 1, 1)
		wantCause("while the next instance boots", "one instance was launched")
		l.restart(t)
		l.reconcileClassAndPool(t)
		wantCause("after another restart", "the next try is at ")
		l.mapRole(t)
		l.join(t)
		l.passTime(t, 10*time.Second)
		if c := l.poolHealth(t); c.Reason == "AUTH_2" || strings.Contains(c.Message, unmapped) {
			t.Errorf("an instance has joined, but the pool has the condition %s %s: %s", c.Status, c.Reason, c.Message)
		}
	})
}

func TestNewClassEmitsNoEvent(t *testing.T) {
	t.Parallel()
	embedded(t) // must be outside the bubble
	for _, mode := range []string{awsv1.PreflightEnforce, awsv1.PreflightWarn, awsv1.PreflightOff} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLateRig(t, mode)
				l.mapRole(t)
				l.reconcileClassAndPool(t)
				l.reconcileClassAndPool(t)
				l.diagnose(t)
				l.reconcileClassAndPool(t)
				if !l.class(t).StatusConditions().IsReady() {
					t.Errorf("the class is not ready: %+v", l.class(t).Status.Conditions)
				}
				if event := l.events.find("EC2NodeClass/"); event != "" {
					t.Errorf("an event was emitted: %s; want none", event)
				}
			})
		})
	}
}

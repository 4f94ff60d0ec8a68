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

// rewriteClass changes the user data of the class, and reconciles it.
func (r *rig) rewriteClass(t *testing.T, text string) {
	t.Helper()
	class := r.class(t)
	class.Spec.UserData = &text
	class.Generation++
	r.check(t, r.api.Update(t.Context(), class))
	r.classes(t)
}

// isLeaving reports whether the claim is deleted or gone.
func (r *rig) isLeaving(t *testing.T, name string) bool {
	t.Helper()
	for _, c := range r.claims(t) {
		if c.Name == name {
			return c.DeletionTimestamp != nil
		}
	}
	return true
}

// TestOutdatedClaim: an instance that has not joined is replaced at once when its class or pool changes. An instance that may be
// about to join gets its time, and one that has joined stays.
func TestOutdatedClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig)
		age    time.Duration
		joins  bool
		want   bool
	}{
		"class":             {func(t *testing.T, r *rig) { r.rewriteClass(t, "#!/bin/sh\n") }, time.Minute, false, true},
		"class, young":      {func(t *testing.T, r *rig) { r.rewriteClass(t, "#!/bin/sh\n") }, 10 * time.Second, false, false},
		"class, has a Node": {func(t *testing.T, r *rig) { r.rewriteClass(t, "#!/bin/sh\n") }, time.Minute, true, false},
		"nothing":           {func(t *testing.T, r *rig) { r.classes(t) }, time.Minute, false, false},
		"broken class": {func(t *testing.T, r *rig) {
			class := r.class(t)
			class.Spec.SubnetSelectorTerms[0].Tags = map[string]string{"no": "such"}
			class.Generation++
			r.check(t, r.api.Update(t.Context(), class))
			r.classes(t)
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
			claim := r.launched(t)
			r.ahead += c.age
			c.change(t, r)
			if c.joins {
				r.join(t)
			}
			wait := r.work(t)
			if got := r.isLeaving(t, claim.Name); got != c.want {
				t.Fatalf("it is replaced: %t\n%+v\n%s", got, r.claims(t)[0].Status.Conditions, r.log)
			}
			if c.want && r.events.has("NodeClaim/NodeNotJoining", "replaced at once") == "" {
				t.Errorf("events %v", r.events.told)
			}
			if strings.HasSuffix(name, "young") && (wait <= 0 || wait > lifecycle.JoinGrace) {
				t.Errorf("it is reconciled again after %s", wait)
			}
		})
	}
}

// TestEditsInALoop: each further edit replaces instances later than the one before, until one joins.
func TestEditsInALoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t3.medium")
	claim := r.launched(t).Name
	var last time.Duration
	for n, text := range []string{"#!/bin/sh\n# 1\n", "#!/bin/sh\n# 2\n", "#!/bin/sh\n# 3\n"} {
		r.ahead += lifecycle.JoinGrace
		r.rewriteClass(t, text)
		begun := r.ahead
		for range 200 {
			r.work(t)
			if r.isLeaving(t, claim) {
				break
			}
			r.ahead += 5 * time.Second
		}
		took := r.ahead - begun
		if n == 0 && took > 0 || n == 2 && took <= last {
			t.Errorf("edit %d: replaced after %s, the one before after %s", n+1, took, last)
		}
		last = took
		r.finishDeleted(t)
		r.plan(t)
		r.work(t)
		claim = r.claims(t)[0].Name
	}
	r.join(t)
	r.work(t)
	if until, _, _ := r.Claims.Edits.Held(r.now(), "apps"); !until.IsZero() {
		t.Error("an instance has joined, and edits still wait")
	}
}

// TestCuredClaims: instances that have not joined CureGrace after their cause was fixed are replaced, all together. This also works
// if an earlier process found the cause.
func TestCuredClaims(t *testing.T) {
	t.Parallel()
	embedded(t)
	for name, restarts := range map[string]bool{"one process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLateRig(t, awsv1.PreflightOff)
				l.classes(t)
				l.launch(t, 0, 3)
				l.passTime(t, 3*time.Minute)
				claims := l.claims(t)
				for _, claim := range claims {
					if c, _ := claim.StatusConditions().Find(karpv1.ConditionRegistered); c.Reason != "AUTH_2" {
						t.Fatalf("%s says %s: %s", claim.Name, c.Reason, c.Message)
					}
				}
				l.mapRole(t)
				if restarts {
					l.restart(t)
					l.classes(t)
				}
				var ticks time.Duration // two readings of a clock are never equal
				l.Diagnoses.Now = func() time.Time {
					ticks += time.Millisecond
					return time.Now().Add(ticks)
				}
				cured := l.untilCured(t, claims)
				for time.Since(cured) < lifecycle.CureGrace-5*time.Second {
					time.Sleep(5 * time.Second)
					l.turn(t)
				}
				for _, claim := range claims {
					if l.isLeaving(t, claim.Name) {
						t.Errorf("%s is replaced within %s", claim.Name, time.Since(cured))
					}
				}
				l.passTime(t, 15*time.Second)
				for _, claim := range claims {
					if !l.isLeaving(t, claim.Name) {
						t.Errorf("%s is not replaced after %s\n%s", claim.Name, time.Since(cured), l.log)
					}
				}
				if l.events.has("NodeClaim/NodeNotJoining", "the cause has been fixed since") == "" {
					t.Errorf("events %v", l.events.told)
				}
				l.passTime(t, 30*time.Second)
				if n := l.everBought(); n != 2*len(claims) {
					t.Errorf("%d instances were launched, want %d", n, 2*len(claims))
				}
			})
		})
	}
}

// untilCured runs all loops until the causes of all claims are fixed, and returns when.
func (l *lateRig) untilCured(t *testing.T, claims []karpv1.NodeClaim) time.Time {
	t.Helper()
	for range 60 {
		l.turn(t)
		n := 0
		for i := range claims {
			if since, _ := l.Diagnoses.CuredAt(&claims[i]); !since.IsZero() {
				n++
			}
		}
		if n == len(claims) {
			return time.Now()
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("the cause is there after %s\n%s", time.Minute, l.log)
	return time.Time{}
}

// TestCauseBetweenTries: the NodePool reports why no instance has joined until one joins, also between back-offs, and after a
// restart.
func TestCauseBetweenTries(t *testing.T) {
	t.Parallel()
	embedded(t)
	synctest.Test(t, func(t *testing.T) {
		l := newLateRig(t, awsv1.PreflightOff)
		l.classes(t)
		l.launch(t, 0, 1)
		l.passTime(t, 3*time.Minute)
		says := func(when, want string) {
			t.Helper()
			if c := l.pool(t); c.Status != "False" || c.Reason != "AUTH_2" || strings.Count(c.Message, unmapped) != 1 ||
				!strings.Contains(c.Message, want) {
				t.Errorf("%s, condition of the pool: %s %s: %s", when, c.Status, c.Reason, c.Message)
			}
		}
		says("while it waits", "the next try is at ")
		l.check(t, l.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}}))
		l.passTime(t, lifecycle.RegistrationTimeout+poolhealth.Pause(1))
		if n := len(l.claims(t)); n != 0 {
			t.Fatalf("%d claims", n)
		}
		says("between tries", "the next instance shows")
		l.restart(t)
		l.classes(t)
		says("after a restart", "the next instance shows")
		l.launch(t, 1, 1)
		says("while the next instance boots", "one instance was launched")
		l.restart(t)
		l.classes(t)
		says("after another restart", "the next try is at ")
		l.mapRole(t)
		l.join(t)
		l.passTime(t, 10*time.Second)
		if c := l.pool(t); c.Reason == "AUTH_2" || strings.Contains(c.Message, unmapped) {
			t.Errorf("an instance has joined, condition of the pool: %s %s: %s", c.Status, c.Reason, c.Message)
		}
	})
}

// TestNewClassWarnsOfNothing: unknown conditions of a valid new EC2NodeClass cause no warning event.
func TestNewClassWarnsOfNothing(t *testing.T) {
	t.Parallel()
	embedded(t)
	for _, mode := range []string{awsv1.PreflightEnforce, awsv1.PreflightWarn, awsv1.PreflightOff} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLateRig(t, mode)
				l.mapRole(t)
				l.classes(t)
				l.classes(t)
				l.look(t)
				l.classes(t)
				if !l.class(t).StatusConditions().IsReady() {
					t.Errorf("it is not ready: %+v", l.class(t).Status.Conditions)
				}
				if told := l.events.has("EC2NodeClass/"); told != "" {
					t.Errorf("an event: %s", told)
				}
			})
		})
	}
}

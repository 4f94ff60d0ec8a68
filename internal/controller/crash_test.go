package controller

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/gc"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodeclass"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// fullCrash names the environment variable that `make crash` sets. Without it the process dies once at each write, after the
// write, and the scenario ends with the scene. Dying just before a write leaves the same state as dying after the one
// before.
const fullCrash = "CRASH_FULL"

// TestCrashAtEveryWrite runs the life of a node class and its nodes, and counts the controller's writes to the API
// server and to AWS. It then runs the scenario twice for each write: the process dies just before the write, or after
// the write and before the answer arrives. The next process knows only what is stored. Each scene must end as in a run
// without a crash.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the embedded table before the synctest bubbles, which share it
	calm := perform(t, 0, false)
	if len(calm.writes) < 50 || len(calm.ends) != len(script()) {
		t.Fatalf("only %d writes in %d of %d scenes:\n%s\n%s", len(calm.writes), len(calm.ends), len(script()),
			strings.Join(calm.writes, "\n"), calm.log)
	}
	t.Logf("%d writes:\n%s", len(calm.writes), strings.Join(calm.writes, "\n"))
	for n, name := range calm.writes {
		for _, late := range []bool{false, true} {
			when := "before"
			switch {
			case late:
				when = "after"
			case n > 0 && os.Getenv(fullCrash) == "":
				continue
			}
			t.Run(fmt.Sprintf("%s %d %s", when, n+1, name), func(t *testing.T) {
				t.Parallel()
				got := perform(t, n+1, late)
				if len(got.writes) != n+1 || got.writes[n] != name {
					t.Fatalf("write %d was another one than in the play without a crash: %v", n+1, got.writes[max(0, len(got.writes)-3):])
				}
				for i, end := range got.ends {
					if end != calm.ends[i] {
						t.Fatalf("the process died %s write %d, %s. Scene %q ended otherwise (-) than without the crash (+):\n%s\nIt ended so:\n%s\nlogs:\n%s",
							when, n+1, name, script()[i].name, cmp.Diff(strings.Split(end, "\n"), strings.Split(calm.ends[i], "\n")), end, got.log)
					}
				}
			})
		}
	}
}

// scene is one part of the scenario: an action, and the state that must follow from it.
type scene struct {
	name string
	act  func(s *stage)
	done func(s *stage) bool
}

// script is the scenario.
func script() []scene {
	return []scene{
		{"a class and a pool exist", func(*stage) {}, func(s *stage) bool {
			return s.class(s.t).StatusConditions().IsReady() && s.pool(s.t).StatusConditions().IsReady()
		}},
		{"a pod waits for a node", func(s *stage) { s.wanted = 1 }, func(s *stage) bool { return s.isCalm() }},
		{"its Node and the launch templates are deleted", func(s *stage) {
			s.old = s.claims(s.t)[0].Name
			s.sweepTemplates()
			s.check(s.api.Delete(s.t.Context(), &s.nodes(s.t)[0]))
		}, func(s *stage) bool { return s.isCalm() }},
		{"EC2 interrupts the next instance", func(s *stage) {
			s.old = s.claims(s.t)[0].Name
			id := s.instances()[0].ID
			s.Do(func(w *world.World, now time.Time) { w.Interrupt(now, id) })
		}, func(s *stage) bool { return s.isCalm() }},
		{"the pod is deleted", func(s *stage) {
			s.wanted = 0
			s.check(s.api.DeleteAllOf(s.t.Context(), &corev1.Pod{}, client.InNamespace("ns")))
		}, func(s *stage) bool { return s.isCalm() }},
		{"pool and class are deleted", func(s *stage) {
			s.check(s.api.Delete(s.t.Context(), s.pool(s.t)))
			s.check(s.api.Delete(s.t.Context(), s.class(s.t)))
		}, func(s *stage) bool { return len(s.everyClass()) == 0 }},
	}
}

// performance is the result of one run of the scenario.
type performance struct {
	writes []string // writes of the first process
	ends   []string // state at the end of each scene
	log    string   // logs of all processes
}

// How many rounds of all loops a scene may take, and how many follow it. The first rounds are as frequent as in
// production. Later rounds take some minutes, in which leftovers are garbage-collected.
const (
	mostRounds  = 100
	roundPause  = 5 * time.Second
	calmRounds  = 1
	sweptRounds = 3
	longPause   = time.Minute
)

// perform runs the script in fake time. The first process dies at a write, if at is not 0.
func perform(t *testing.T, at int, late bool) performance {
	t.Helper()
	var out performance
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		f := newFuse(at, late)
		s := newStage(t, f)
		defer s.bury()
		for _, part := range script() {
			part.act(s)
			for n := 0; n < mostRounds && !part.done(s); n++ {
				s.turn(roundPause)
			}
			s.settle()
			out.ends = append(out.ends, s.text())
			if len(s.before) > 0 && os.Getenv(fullCrash) == "" {
				break
			}
		}
		out.writes, out.log = f.names, s.logs()
	})
	return out
}

// stage is a rig in fake time, with everything that surrounds the controller: kubelets, the cloud controller manager, a
// ReplicaSet, kube-scheduler.
type stage struct {
	*rig
	t      *testing.T
	wanted int             // number of pods that the ReplicaSet wants
	made   int             // number of pods created so far
	bought map[string]bool // all instances launched so far
	booted map[string]bool // instances whose kubelet has started
	old    string          // the claim that is to be removed

	classSeen string // when the class was last reconciled
	classDue  time.Time

	process context.Context
	kill    context.CancelFunc
	before  []life // the processes that have died
}

// life is a process that has died.
type life struct {
	fuse  *fuse
	log   string
	ended chan struct{}
}

func newStage(t *testing.T, f *fuse) *stage {
	t.Helper()
	s := &stage{rig: makeRig(t, []string{"t3.medium"}), t: t, bought: map[string]bool{}, booted: map[string]bool{}}
	s.url, s.fuse = "http://aws.example", f
	pool := s.pool(t)
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeSpot}
	s.check(s.api.Update(t.Context(), pool))
	s.live()
	s.announced()
	return s
}

func (s *stage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// live starts a process with an empty memory.
func (s *stage) live() {
	s.classSeen = ""
	s.wire = line{rig: s.rig, fuse: s.fuse}
	s.process, s.kill = context.WithCancel(s.t.Context())
	s.start(s.t)
	s.withQueue(s.t)
	var isDoor, isIAM bool
	s.NodeClasses.Tester, isDoor = s.Claims.Machines.(nodeclass.DryRunner)
	s.Sweeper.Profiles, isIAM = s.NodeClasses.Profiles.(gc.ProfileStore)
	if !isDoor || !isIAM {
		s.t.Fatal("the rig's clients have changed")
	}
	s.Sweeper.Live = s.api
}

// turn runs each loop once, and the emulated environment. A process that dies is followed by another.
func (s *stage) turn(pause time.Duration) {
	s.t.Helper()
	ended, loops := make(chan struct{}), s.Controllers
	go func() {
		defer close(ended)
		s.round(s.process, loops)
	}()
	select {
	case <-ended:
	case <-s.fuse.dead:
		s.kill()
		synctest.Wait()
		s.before = append(s.before, life{s.fuse, s.log.String(), ended})
		s.surround()
		time.Sleep(2 * roundPause)
		s.fuse, s.log = &fuse{}, &bytes.Buffer{}
		s.live()
	}
	s.surround()
	time.Sleep(pause)
}

// settle runs the rounds after a scene, all of them with one process.
func (s *stage) settle() {
	deaths := len(s.before)
	for range calmRounds {
		s.turn(roundPause)
	}
	for range sweptRounds {
		s.turn(longPause)
	}
	if len(s.before) > deaths {
		s.settle()
	}
}

// bury ends the goroutines of processes that have died.
func (s *stage) bury() {
	s.kill()
	for _, l := range s.before {
		close(l.fuse.buried)
		<-l.ended
	}
}

// logs returns the logs of all processes.
func (s *stage) logs() string {
	var all strings.Builder
	for _, l := range s.before {
		all.WriteString(l.log + "--- it died; the next process:\n")
	}
	all.WriteString(s.log.String())
	return all.String()
}

// round runs each loop once. A failed step is retried in the next round, as in production.
func (s *stage) round(ctx context.Context, l Controllers) {
	_ = l.Market.Measured.Pass(ctx, s.now())
	s.visitClass(ctx, l)
	_, _ = l.Pools.Reconcile(ctx, named("apps"))
	if messages, err := l.Interruption.Queue.Receive(ctx, 0); err == nil {
		_ = l.Interruption.Pass(ctx, messages)
	}
	_, _ = l.Interruption.DepartPass(ctx)
	l.Provisioner.Pass(ctx, loop.Window{First: time.Now(), Closed: time.Now(), Size: 1})
	_, _ = l.Interruption.DepartPass(ctx)
	for _, name := range s.names(&karpv1.NodeClaimList{}) {
		_, _ = l.Claims.Reconcile(ctx, named(name))
	}
	for _, name := range s.names(&corev1.NodeList{}) {
		_, _ = l.Orphans.Reconcile(ctx, named(name))
	}
	_ = l.Emptiness.Pass(ctx, s.now())
	_ = l.Moves.Advance(ctx)
	_ = l.Moves.Look(ctx)
	_ = l.Sweeper.Pass(ctx, s.now())
}

// visitClass reconciles the class when it is due, or when an object that its loop watches has changed.
func (s *stage) visitClass(ctx context.Context, l Controllers) {
	classes := s.everyClass()
	if len(classes) == 0 {
		return
	}
	seen := fmt.Sprint(classes[0].DeletionTimestamp != nil, s.names(&karpv1.NodeClaimList{}))
	if seen == s.classSeen && s.now().Before(s.classDue) {
		return
	}
	result, _ := l.NodeClasses.Reconcile(ctx, named("default"))
	s.classSeen, s.classDue = seen, s.now().Add(result.RequeueAfter)
}

// names lists the objects of a kind by name, oldest first, so that the order is the same in each run. It returns none if
// they cannot be listed: the test is over.
func (s *stage) names(list client.ObjectList) []string {
	if err := s.api.List(context.Background(), list); err != nil {
		return nil
	}
	var objects []client.Object
	switch list := list.(type) {
	case *karpv1.NodeClaimList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case *corev1.NodeList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	slices.SortStableFunc(objects, func(a, b client.Object) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	var out []string
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	return out
}

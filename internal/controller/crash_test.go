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

// fullCrash names the environment variable that `make crash` sets. Without it, the process dies after each write, and
// before the first one: dying before a later write leaves the same state as dying after the previous write. Without it,
// the scenario also ends after the phase in which the process died.
const fullCrash = "CRASH_FULL"

// TestCrashAtEveryWrite runs a scenario with a node class and its nodes, and records the controller's writes to the API
// server and to AWS. It then runs the scenario again for each write (see fullCrash): the process dies just before the
// write, or between the write and its answer. The next process knows only what is stored. Each phase must end as in the
// run without a crash.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the table that the synctest bubbles share
	want := runScenario(t, 0, false)
	if len(want.writes) < 50 || // too few: a phase did nothing
		len(want.endStates) != len(scenario()) {
		t.Fatalf("only %d writes in %d of %d phases:\n%s\n%s", len(want.writes), len(want.endStates), len(scenario()),
			strings.Join(want.writes, "\n"), want.log)
	}
	t.Logf("%d writes:\n%s", len(want.writes), strings.Join(want.writes, "\n"))
	for n, name := range want.writes {
		for _, isAfter := range []bool{false, true} {
			when := "before"
			switch {
			case isAfter:
				when = "after"
			case n > 0 && os.Getenv(fullCrash) == "":
				continue
			}
			t.Run(fmt.Sprintf("%s %d %s", when, n+1, name), func(t *testing.T) {
				t.Parallel()
				got := runScenario(t, n+1, isAfter)
				if len(got.writes) != n+1 || got.writes[n] != name {
					t.Fatalf("write %d is not %s, as without a crash; the last writes are %v", n+1, name, got.writes[max(0, len(got.writes)-3):])
				}
				for i, state := range got.endStates {
					if state != want.endStates[i] {
						t.Fatalf("the process died %s write %d, %s. Phase %q ends with (-), and without a crash with (+):\n%s\n"+
							"Complete state at its end:\n%s\nlogs:\n%s", when, n+1, name, scenario()[i].name,
							cmp.Diff(strings.Split(state, "\n"), strings.Split(want.endStates[i], "\n")), state, got.log)
					}
				}
			})
		}
	}
}

type phase struct {
	name   string
	act    func(s *stage)      // starts the phase
	isDone func(s *stage) bool // ends it
}

func scenario() []phase {
	return []phase{
		{"a class and a pool exist", func(*stage) {}, func(s *stage) bool {
			return s.class(s.t).StatusConditions().IsReady() && s.pool(s.t).StatusConditions().IsReady()
		}},
		{"a pod waits for a node", func(s *stage) { s.replicas = 1 }, func(s *stage) bool { return s.isConverged() }},
		{"its Node and the launch templates are deleted", func(s *stage) {
			s.removedClaim = s.claims(s.t)[0].Name
			s.sweepTemplates()
			s.check(s.api.Delete(s.t.Context(), &s.nodes(s.t)[0]))
		}, func(s *stage) bool { return s.isConverged() }},
		{"EC2 interrupts the next instance", func(s *stage) {
			s.removedClaim = s.claims(s.t)[0].Name
			id := s.instances()[0].ID
			s.Do(func(w *world.World, now time.Time) { w.Interrupt(now, id) })
		}, func(s *stage) bool { return s.isConverged() }},
		{"the pod is deleted", func(s *stage) {
			s.replicas = 0
			s.check(s.api.DeleteAllOf(s.t.Context(), &corev1.Pod{}, client.InNamespace("ns")))
		}, func(s *stage) bool { return s.isConverged() }},
		{"pool and class are deleted", func(s *stage) {
			s.check(s.api.Delete(s.t.Context(), s.pool(s.t)))
			s.check(s.api.Delete(s.t.Context(), s.class(s.t)))
		}, func(s *stage) bool { return len(s.everyClass()) == 0 }},
	}
}

type runResult struct {
	writes    []string // writes of the first process
	endStates []string // state at the end of each phase
	log       string   // logs of all processes
}

// A round runs all loops once.
const (
	maxRounds    = 100             // how many rounds a phase may take
	roundPause   = 5 * time.Second // after each round of a phase and of settleRounds
	settleRounds = 1               // rounds after a phase
	sweepRounds  = 3               // further rounds after settleRounds, in which leftovers are garbage-collected
	longPause    = time.Minute     // after each of sweepRounds
)

// runScenario runs the scenario in fake time. The first process dies just before the write with this number, or just
// after it if isAfter is true. With number 0, the process does not die.
func runScenario(t *testing.T, number int, isAfter bool) runResult {
	t.Helper()
	var out runResult
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		f := newFuse(number, isAfter)
		s := newStage(t, f)
		defer s.endDeadProcesses()
		for _, p := range scenario() {
			p.act(s)
			for n := 0; n < maxRounds && !p.isDone(s); n++ {
				s.roundAndEnvironment(roundPause)
			}
			s.settle()
			out.endStates = append(out.endStates, s.describe())
			if len(s.died) > 0 && os.Getenv(fullCrash) == "" {
				break
			}
		}
		out.writes, out.log = f.names, s.logs()
	})
	return out
}

// stage is a rig in fake time. It simulates kubelets, the cloud controller manager, a ReplicaSet and kube-scheduler.
type stage struct {
	*rig
	t            *testing.T
	replicas     int             // spec.replicas of the ReplicaSet
	made         int             // number of pods created so far
	launched     map[string]bool // IDs of all instances launched so far
	booted       map[string]bool // IDs of the instances whose kubelet has started
	removedClaim string          // name of the claim that the current phase removes

	classSeen string    // the objects that the class's loop watches, at its last reconcile
	classDue  time.Time // when the class is due again without a change of these objects

	process context.Context    // of the running process
	kill    context.CancelFunc // ends the running process
	died    []deadProcess      // the earlier processes
}

type deadProcess struct {
	fuse  *fuse
	log   string
	ended chan struct{} // closed when the process's last round has returned
}

func newStage(t *testing.T, f *fuse) *stage {
	t.Helper()
	s := &stage{rig: makeRig(t, []string{"t3.medium"}), t: t, launched: map[string]bool{}, booted: map[string]bool{}}
	s.url, s.fuse = "http://aws.example", f
	pool := s.pool(t)
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeSpot}
	s.check(s.api.Update(t.Context(), pool))
	s.startProcess()
	s.connectEventBridge()
	return s
}

func (s *stage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) startProcess() {
	s.classSeen = ""
	s.transport = fusedTransport{rig: s.rig, fuse: s.fuse}
	s.process, s.kill = context.WithCancel(s.t.Context())
	s.start(s.t)
	s.withQueue(s.t)
	var isDryRunner, isProfileStore bool
	s.NodeClasses.DryRunner, isDryRunner = s.Claims.Instances.(nodeclass.DryRunner)
	s.Sweeper.Profiles, isProfileStore = s.NodeClasses.Profiles.(gc.ProfileStore)
	if !isDryRunner || !isProfileStore {
		s.t.Fatal("the rig's clients have changed")
	}
	s.Sweeper.Live = s.api
}

// roundAndEnvironment runs each loop once, then the simulated environment, and waits for the pause. If the process
// dies, it starts the next one.
func (s *stage) roundAndEnvironment(pause time.Duration) {
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
		s.died = append(s.died, deadProcess{s.fuse, s.log.String(), ended})
		s.runEnvironment()
		time.Sleep(2 * roundPause)
		s.fuse, s.log = &fuse{}, &bytes.Buffer{}
		s.startProcess()
	}
	s.runEnvironment()
	time.Sleep(pause)
}

// settle runs the rounds after a phase. If the process dies during them, settle runs all of them again.
func (s *stage) settle() {
	deaths := len(s.died)
	for range settleRounds {
		s.roundAndEnvironment(roundPause)
	}
	for range sweepRounds {
		s.roundAndEnvironment(longPause)
	}
	if len(s.died) > deaths {
		s.settle()
	}
}

// endDeadProcesses ends the running process, and the goroutines of the processes that have died.
func (s *stage) endDeadProcesses() {
	s.kill()
	for _, d := range s.died {
		close(d.fuse.released)
		<-d.ended
	}
}

func (s *stage) logs() string {
	var all strings.Builder
	for _, d := range s.died {
		all.WriteString(d.log + "--- the process died; the next one:\n")
	}
	all.WriteString(s.log.String())
	return all.String()
}

// round runs each loop once. A failed step is retried in the next round, as in production.
func (s *stage) round(ctx context.Context, l Controllers) {
	_ = l.Market.Measured.Pass(ctx, s.now())
	s.reconcileClassIfDue(ctx, l)
	_, _ = l.Pools.Reconcile(ctx, named("apps"))
	if messages, err := l.Interruption.Queue.Receive(ctx, 0); err == nil {
		_ = l.Interruption.Pass(ctx, messages)
	}
	_, _ = l.Interruption.DrainPass(ctx)
	l.Provisioner.Pass(ctx, loop.Window{First: time.Now(), Closed: time.Now(), Size: 1})
	_, _ = l.Interruption.DrainPass(ctx)
	for _, name := range s.names(&karpv1.NodeClaimList{}) {
		_, _ = l.Claims.Reconcile(ctx, named(name))
	}
	for _, name := range s.names(&corev1.NodeList{}) {
		_, _ = l.Orphans.Reconcile(ctx, named(name))
	}
	_ = l.Emptiness.Pass(ctx, s.now())
	_ = l.Moves.Advance(ctx)
	_ = l.Moves.Search(ctx)
	_ = l.Sweeper.Pass(ctx, s.now())
}

// reconcileClassIfDue reconciles the class if it is due, or if an object that its loop watches has changed.
func (s *stage) reconcileClassIfDue(ctx context.Context, l Controllers) {
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

// names returns the names of the objects of a kind, oldest first, so that the order is the same in each run. It returns
// none if listing fails, which happens only when the test is over.
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

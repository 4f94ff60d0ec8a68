package lab_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/lab"
)

// hurry is how many times as fast as in a real account faults come and go here. LAB_FULL=1 (make soak) leaves them their time: ten
// minutes of shortage, two of errors.
var hurry = cmp.Or(map[bool]time.Duration{true: 1}[os.Getenv("LAB_FULL") != ""], 45)

// backoff is how long the controller of these tests remembers a shortage at first: three minutes, in a hurry four seconds.
func backoff() time.Duration { return 3 * time.Minute / hurry }

// faulty is a pool with a class and a namespace of its own, and a Deployment without pods. Faults that run at the same time differ in the
// instance types that they affect.
type faulty struct {
	lab  *lab.Lab
	name string
}

// TestFaultsOfAWS plays AWS's faults on the real controller, several at a time where they affect different instance types. In the end of
// each, the pods run, and there is no instance without need.
func TestFaultsOfAWS(t *testing.T) {
	l := beside(t, lab.Options{})
	settings := []string{"SHORTAGE_BACKOFF=" + backoff().String(), "BATCH_IDLE_DURATION=300ms", "BATCH_MAX_DURATION=1s"}
	restart(t, l, settings...)
	t.Cleanup(func() {
		l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults = world.Faults{} })
		killController(l) // it has settings that no other test wants
	})
	large := func(types ...string) string {
		return "{key: node.kubernetes.io/instance-type, operator: In, values: [" + strings.Join(types, ", ") + "]}"
	}
	// A pod takes a node of two CPUs for itself.
	dies, unseen := newFaulty(t, l, "dies", "1200m", large("t3.large")), newFaulty(t, l, "unseen", "1200m", large("m5.large"))
	oneLeft := newFaulty(t, l, "one-left", "500m", "{key: karpenter.k8s.aws/instance-family, operator: In, values: [c6i, m6i, r6i]}")
	noneLeft := newFaulty(t, l, "none-left", "1200m", large("c7i.large", "m7i.large"))
	throttled, broken := newFaulty(t, l, "throttled", "1200m", large("m5a.large")), newFaulty(t, l, "broken", "1200m", large("r5.large"))
	for _, f := range []faulty{dies, unseen, oneLeft, noneLeft, throttled, broken} {
		poolReady(t, l, f.name)
	}

	l.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.Boots = []*world.Boot{{Pool: world.Pool{Type: "t3.large"}, Count: 1,
			Fail: world.Reason{Code: "Client.InternalError", Message: deathNote}}}
		w.Faults.ReadLag = 30 * time.Second
	})
	dies.scale(t, 1)
	dies.launched(t, 1)
	lost := unseen.staleReads(t, settings)
	oneLeft.scarce(t)
	noneLeft.noneLeft(t)
	oneLeft.found(t)
	unseen.allSeen(t, lost)
	noneLeft.restRuns(t)
	l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 0 })

	throttled.whileHalfIsRefused(t, unseen, oneLeft, noneLeft)
	broken.whileAllFails(t, throttled)
	dies.replaced(t)
	allLeave(t, dies, broken)
}

// allLeave takes away what the pools are there for, and waits until nothing is left of them.
func allLeave(t *testing.T, all ...faulty) {
	t.Helper()
	for _, f := range all {
		leave(t, f.lab, f.name)
	}
	haveLeft(t, all...)
}

func haveLeft(t *testing.T, all ...faulty) {
	t.Helper()
	var pools []string
	for _, f := range all {
		pools = append(pools, f.name)
	}
	allGone(t, all[0].lab, pools...)
}

func newFaulty(t *testing.T, l *lab.Lab, name, cpu, requirement string) faulty {
	t.Helper()
	f := faulty{l, "fault-" + name}
	if err := l.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}}); err != nil {
		t.Fatal(err)
	}
	apply(t, l, class(l, f.name, "amiSelectorTerms: [{alias: al2023@latest}]"), pool(f.name, "", requirement),
		deployment(f.name, "web", 0, cpu, "1Gi", "test: "+f.name))
	return f
}

func (f faulty) scale(t *testing.T, replicas int) {
	t.Helper()
	scale(t, f.lab, f.name, "web", replicas)
}

// launched waits until want claims have a provider ID.
func (f faulty) launched(t *testing.T, want int) {
	t.Helper()
	within(t, f.lab, 30*time.Second, fmt.Sprintf("%d instances of %s to be launched", want, f.name), func(context.Context) (bool, error) {
		_, providerIDs := claimsOf(t, f.lab, f.name)
		return len(providerIDs) == want, nil
	})
}

// asked returns the time of each request to EC2 for instances of the pool.
func (f faulty) asked() []time.Time {
	var at []time.Time
	f.lab.Emulator.Do(func(*world.World, time.Time) {
		for _, call := range f.lab.Estate.Region.Launches.Asked() {
			if call.Tags[karpenterv1.LabelNodePool] == f.name {
				at = append(at, call.At)
			}
		}
	})
	return at
}

// exactly asserts that alive instances live, that each of them has a claim, and that no more than total were ever launched.
func (f faulty) exactly(t *testing.T, alive, total int) {
	t.Helper()
	claims, providerIDs := claimsOf(t, f.lab, f.name)
	all := instancesOf(f.lab, f.name)
	// One that found nothing to ask for may be on its way out.
	claims = slices.DeleteFunc(claims, func(c karpenterv1.NodeClaim) bool { return c.DeletionTimestamp != nil && c.Status.ProviderID == "" })
	living := 0
	for _, i := range all {
		if !i.Alive() {
			continue
		}
		living++
		if !providerIDs["aws:///"+i.Zone+"/"+i.ID] {
			t.Errorf("instance %s belongs to no claim", i.ID)
		}
	}
	if living != alive || len(all) != total || len(claims) != alive {
		t.Errorf("%s: %d of %d instances live, for %d claims; want %d of %d, a claim for each\n%s", f.name, living, len(all),
			len(claims), alive, total,
			f.lab.Evidence(context.Background()))
	}
}

// reported waits for an event with the reason and the words, about an object of this kind or of this name.
func (f faulty) reported(t *testing.T, about, reason string, words ...string) {
	t.Helper()
	within(t, f.lab, 30*time.Second, fmt.Sprintf("an event for %s with reason %s and %v", about, reason, words),
		func(ctx context.Context) (bool, error) {
			events, err := f.lab.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
			return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.Reason == reason &&
					(e.InvolvedObject.Name == about || e.InvolvedObject.Kind == about && e.InvolvedObject.Namespace == f.name) &&
					!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.Message, w) })
			}), err
		})
}

// staleReads: descriptions are 30 seconds old, and the controller is killed while it launches eight instances; then a claim whose
// instance EC2 does not show yet is deleted. It returns that claim.
func (f faulty) staleReads(t *testing.T, settings []string) karpenterv1.NodeClaim {
	t.Helper()
	f.scale(t, 8)
	within(t, f.lab, 30*time.Second, "some of eight instances to be launched",
		func(context.Context) (bool, error) { return len(instancesOf(f.lab, f.name)) >= 3, nil })
	restart(t, f.lab, settings...)
	within(t, f.lab, 2*time.Minute, "a provider ID to be stored", func(context.Context) (bool, error) {
		_, providerIDs := claimsOf(t, f.lab, f.name)
		return len(providerIDs) > 0, nil
	})
	claims, _ := claimsOf(t, f.lab, f.name)
	claim := claims[slices.IndexFunc(claims, func(c karpenterv1.NodeClaim) bool { return c.Status.ProviderID != "" })]
	if err := f.lab.Client.Delete(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

// allSeen: no instance was launched twice or considered lost, and the instance of the deleted claim was terminated.
func (f faulty) allSeen(t *testing.T, lost karpenterv1.NodeClaim) {
	t.Helper()
	within(t, f.lab, 90*time.Second, "the deleted claim's instance to be given back", func(ctx context.Context) (bool, error) {
		err := f.lab.Client.Get(ctx, client.ObjectKeyFromObject(&lost), &karpenterv1.NodeClaim{})
		return err != nil, client.IgnoreNotFound(err)
	})
	allRun(t, f.lab, f.name, 8, time.Minute)
	f.launched(t, 8)
	f.exactly(t, 8, 9)
}

// scarce: of all offerings of three families EC2 has one, and not the cheapest.
func (f faulty) scarce(t *testing.T) {
	t.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	f.lab.Emulator.Do(func(*world.World, time.Time) {
		for _, facts := range table.Types() {
			family, _, _ := strings.Cut(facts.Name, ".")
			if !slices.Contains([]string{"c6i", "m6i", "r6i"}, family) {
				continue
			}
			for i, subnet := range f.lab.Estate.PrivateSubnets {
				most := 0
				if facts.Name == "r6i.xlarge" && i == 1 {
					most = 1
				}
				f.lab.Estate.Region.Capacity.Limit(world.Pool{Type: facts.Name, Zone: subnet.Zone.Name}, most)
			}
		}
	})
	f.scale(t, 3)
}

// found: all pods run on the one there was, and EC2 was not asked often.
func (f faulty) found(t *testing.T) {
	t.Helper()
	allRun(t, f.lab, f.name, 3, time.Minute)
	f.exactly(t, 1, 1)
	calls := len(f.asked())
	t.Logf("%d calls of CreateFleet until the one offering was found", calls)
	if most := 3; calls > most {
		t.Errorf("more than %d: each can name 60", most)
	}
}

// noneLeft: EC2 has nothing of what five pods accept, for a time. It is asked seldom, by one launch for all; the pods' events
// say why they wait; and they run soon after there is some again.
func (f faulty) noneLeft(t *testing.T) {
	t.Helper()
	limit := func(set func(world.Pool)) {
		f.lab.Emulator.Do(func(*world.World, time.Time) { set(world.Pool{Type: "c7i.*"}); set(world.Pool{Type: "m7i.*"}) })
	}
	limit(func(p world.Pool) { f.lab.Estate.Region.Capacity.Limit(p, 0) })
	began := time.Now()
	f.scale(t, 5)
	f.reported(t, "Pod", "FailedScheduling", "NoCapacity")
	long := 10 * time.Minute / hurry
	within(t, f.lab, long+time.Minute, "ten minutes of shortage, however fast, with two probes in them", func(context.Context) (bool, error) {
		at := f.asked()
		return time.Since(began) > long && len(at) > 0 && at[len(at)-1].Sub(at[0]) > 2*backoff(), nil
	})
	at := f.asked()
	t.Logf("%d calls of CreateFleet in %.0f s of shortage: %v", len(at), time.Since(began).Seconds(), since(began, at))
	first := 0
	for i, when := range at {
		if when.Sub(at[0]) < backoff()/2 {
			first++
		} else if gap := when.Sub(at[i-1]); gap < backoff() {
			t.Errorf("two probes within %s", gap)
		}
	}
	if first > 5 {
		t.Errorf("%d calls for five claims before anything was known", first)
	}
	if all := instancesOf(f.lab, f.name); len(all) > 0 {
		t.Errorf("%d instances were launched of a type without capacity", len(all))
	}
	limit(f.lab.Estate.Region.Capacity.Lift)
	back := time.Now()
	within(t, f.lab, 4*backoff()+20*time.Second, "five instances to be launched",
		func(context.Context) (bool, error) { return len(instancesOf(f.lab, f.name)) == 5, nil })
	t.Logf("all were launched %.1f s after there was capacity again", time.Since(back).Seconds())
}

// restRuns: the pods run; descriptions that are 30 seconds old keep their nodes from joining for as long.
func (f faulty) restRuns(t *testing.T) {
	t.Helper()
	allRun(t, f.lab, f.name, 5, time.Minute)
	f.exactly(t, 5, 5)
}

func since(began time.Time, at []time.Time) []string {
	var out []string
	for _, when := range at {
		out = append(out, fmt.Sprintf("%.1f s", when.Sub(began).Seconds()))
	}
	return out
}

// whileHalfIsRefused: EC2 throttles every other call while nodes are launched and others terminate.
func (f faulty) whileHalfIsRefused(t *testing.T, leaving ...faulty) {
	t.Helper()
	refused := &world.Answer{Call: "ec2:*", Every: 2, Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.Answers = []*world.Answer{refused} })
	f.scale(t, 12)
	for _, other := range leaving {
		leave(t, f.lab, other.name)
	}
	allRun(t, f.lab, f.name, 12, 2*time.Minute)
	f.launched(t, 12)
	f.exactly(t, 12, 12)
	haveLeft(t, leaving...)
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.Answers = nil
		if n := refused.Spoilt(); n < 20 {
			t.Errorf("only %d calls were throttled", n)
		}
	})
}

// whileAllFails: every call to EC2 fails with an internal error, and EC2 carries out every second launch anyway.
// Meanwhile pods need nodes, and other nodes terminate. Afterwards no trace of the errors is left. The errors last two
// minutes, divided by hurry, and at least 20 seconds.
func (f faulty) whileAllFails(t *testing.T, leaving faulty) {
	t.Helper()
	lost := &world.Answer{Call: "ec2:CreateFleet", Every: 2, Status: 503, Code: "Unavailable",
		Message: "The service is unavailable. Please try again shortly.", Late: true}
	failed := &world.Answer{Call: "ec2:*", Status: 500, Code: "InternalError"}
	f.scale(t, 1)
	allRun(t, f.lab, f.name, 1, time.Minute) // so that launches have nothing to make first
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.Answers = []*world.Answer{lost, failed} })
	began := time.Now()
	f.scale(t, 6)
	leave(t, f.lab, leaving.name)
	long := max(2*time.Minute/hurry, 20*time.Second)
	within(t, f.lab, long+time.Minute, "the fault to last", func(context.Context) (bool, error) { return time.Since(began) > long, nil })
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.Answers = nil
		t.Logf("%d launches were carried out and not answered, %d other calls failed", lost.Spoilt(), failed.Spoilt())
		if lost.Spoilt() == 0 || failed.Spoilt() == 0 {
			t.Error("nothing failed")
		}
	})
	allRun(t, f.lab, f.name, 6, time.Minute)
	f.launched(t, 6)
	f.exactly(t, 6, 6)
	haveLeft(t, leaving)
}

const deathNote = "Client.InternalError: Client error on launch"

// replaced: the first instance ended before its kubelet started. Its claim is gone, an event contains EC2's reason, and the
// pod runs on another instance.
func (f faulty) replaced(t *testing.T) {
	t.Helper()
	allRun(t, f.lab, f.name, 1, 2*time.Minute)
	f.exactly(t, 1, 2)
	first := instancesOf(f.lab, f.name)[0]
	if first.Alive() {
		t.Errorf("%s did not die", first.ID)
	}
	f.reported(t, first.Tags["karpenter.sh/nodeclaim"], "NodeNotJoining", first.ID, deathNote)
}

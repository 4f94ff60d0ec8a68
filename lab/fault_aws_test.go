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

// speedup divides the durations of faults, to keep the test short. LAB_FULL=1 (make soak) sets it to 1: ten minutes of
// shortage, and two minutes of errors.
var speedup = cmp.Or(map[bool]time.Duration{true: 1}[os.Getenv("LAB_FULL") != ""], 45)

// backoff returns the initial shortage back-off of the controller in these tests: three minutes divided by speedup.
func backoff() time.Duration { return 3 * time.Minute / speedup }

// faulty is a pool with its own class and namespace, and a Deployment with zero replicas. Faults that are active at the
// same time affect different instance types.
type faulty struct {
	lab  *lab.Lab
	name string
}

// TestFaultsOfAWS injects faults of AWS, several at the same time if they affect different instance types. After each
// fault the pods run, and no superfluous instance exists.
func TestFaultsOfAWS(t *testing.T) {
	l := beside(t, lab.Options{})
	settings := []string{"SHORTAGE_BACKOFF=" + backoff().String(), "BATCH_IDLE_DURATION=300ms", "BATCH_MAX_DURATION=1s"}
	restart(t, l, settings...)
	t.Cleanup(func() {
		l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults = world.Faults{} })
		killController(l) // other tests need other settings
	})
	large := func(types ...string) string {
		return "{key: node.kubernetes.io/instance-type, operator: In, values: [" + strings.Join(types, ", ") + "]}"
	}
	// A pod with 1200m CPU fills a node with two vCPUs.
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

// allLeave deletes the workloads of the pools, and waits until their nodes, pools and classes are deleted.
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

// asked returns the times of the CreateFleet calls for the pool.
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

// exactly checks that alive instances are running, that each has a NodeClaim, and that total instances were launched.
func (f faulty) exactly(t *testing.T, alive, total int) {
	t.Helper()
	claims, providerIDs := claimsOf(t, f.lab, f.name)
	all := instancesOf(f.lab, f.name)
	// Ignore NodeClaims without an instance that are being deleted, because no capacity was available.
	claims = slices.DeleteFunc(claims, func(c karpenterv1.NodeClaim) bool { return c.DeletionTimestamp != nil && c.Status.ProviderID == "" })
	living := 0
	for _, i := range all {
		if !i.Alive() {
			continue
		}
		living++
		if !providerIDs["aws:///"+i.Zone+"/"+i.ID] {
			t.Errorf("instance %s has no NodeClaim", i.ID)
		}
	}
	if living != alive || len(all) != total || len(claims) != alive {
		t.Errorf("%s: %d of %d instances are running, with %d NodeClaims; want %d of %d, each with a NodeClaim\n%s", f.name, living, len(all),
			len(claims), alive, total,
			f.lab.Evidence(context.Background()))
	}
}

// reported waits for an event with the reason and the words. about is the kind or the name of the event's object.
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

// staleReads restarts the controller while it launches eight instances, with descriptions of EC2 that are 30 seconds
// old. Then it deletes a NodeClaim whose instance the descriptions do not contain yet, and returns this NodeClaim.
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

// allSeen checks that no instance was launched twice or considered lost, and that the instance of the deleted NodeClaim
// was terminated.
func (f faulty) allSeen(t *testing.T, lost karpenterv1.NodeClaim) {
	t.Helper()
	within(t, f.lab, 90*time.Second, "the instance of the deleted NodeClaim to be terminated", func(ctx context.Context) (bool, error) {
		err := f.lab.Client.Get(ctx, client.ObjectKeyFromObject(&lost), &karpenterv1.NodeClaim{})
		return err != nil, client.IgnoreNotFound(err)
	})
	allRun(t, f.lab, f.name, 8, time.Minute)
	f.launched(t, 8)
	f.exactly(t, 8, 9)
}

// scarce limits the capacity of three families to one instance of one offering, which is not the cheapest.
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

// found checks that all pods run on the only available instance, after at most three CreateFleet calls.
func (f faulty) found(t *testing.T) {
	t.Helper()
	allRun(t, f.lab, f.name, 3, time.Minute)
	f.exactly(t, 1, 1)
	calls := len(f.asked())
	t.Logf("%d calls of CreateFleet until the one offering was found", calls)
	if most := 3; calls > most {
		t.Errorf("more than %d CreateFleet calls, each of which can contain 60 types", most)
	}
}

// noneLeft removes all capacity for five pods for a time. Meanwhile one launch per back-off probes EC2, and the pods'
// events report the shortage. After the shortage the pods must run soon.
func (f faulty) noneLeft(t *testing.T) {
	t.Helper()
	limit := func(set func(world.Pool)) {
		f.lab.Emulator.Do(func(*world.World, time.Time) { set(world.Pool{Type: "c7i.*"}); set(world.Pool{Type: "m7i.*"}) })
	}
	limit(func(p world.Pool) { f.lab.Estate.Region.Capacity.Limit(p, 0) })
	began := time.Now()
	f.scale(t, 5)
	f.reported(t, "Pod", "FailedScheduling", "NoCapacity")
	long := 10 * time.Minute / speedup
	within(t, f.lab, long+time.Minute, "the end of the shortage, after at least two probes", func(context.Context) (bool, error) {
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
		t.Errorf("%d CreateFleet calls for five NodeClaims before the back-off started", first)
	}
	if all := instancesOf(f.lab, f.name); len(all) > 0 {
		t.Errorf("%d instances were launched of a type without capacity", len(all))
	}
	limit(f.lab.Estate.Region.Capacity.Lift)
	back := time.Now()
	within(t, f.lab, 4*backoff()+20*time.Second, "five instances to be launched",
		func(context.Context) (bool, error) { return len(instancesOf(f.lab, f.name)) == 5, nil })
	t.Logf("all instances were launched %.1f s after the end of the shortage", time.Since(back).Seconds())
}

// restRuns waits until the pods run. Their nodes join late, because descriptions of EC2 are 30 seconds old.
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

// whileHalfIsRefused throttles every second call to EC2 while nodes are launched and other nodes terminate.
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

// whileAllFails makes every call to EC2 fail with an internal error. EC2 still executes every second launch. Meanwhile
// nodes are launched and other nodes terminate. Afterwards each instance must have a NodeClaim. The errors last two
// minutes divided by speedup, and at least 20 seconds.
func (f faulty) whileAllFails(t *testing.T, leaving faulty) {
	t.Helper()
	lost := &world.Answer{Call: "ec2:CreateFleet", Every: 2, Status: 503, Code: "Unavailable",
		Message: "The service is unavailable. Please try again shortly.", Late: true}
	failed := &world.Answer{Call: "ec2:*", Status: 500, Code: "InternalError"}
	f.scale(t, 1)
	allRun(t, f.lab, f.name, 1, time.Minute) // creates the launch template before the errors
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.Answers = []*world.Answer{lost, failed} })
	began := time.Now()
	f.scale(t, 6)
	leave(t, f.lab, leaving.name)
	long := max(2*time.Minute/speedup, 20*time.Second)
	within(t, f.lab, long+time.Minute, "the fault to last", func(context.Context) (bool, error) { return time.Since(began) > long, nil })
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.Answers = nil
		t.Logf("%d launches were executed although they returned an error, %d other calls failed", lost.Spoilt(), failed.Spoilt())
		if lost.Spoilt() == 0 || failed.Spoilt() == 0 {
			t.Error("no call failed")
		}
	})
	allRun(t, f.lab, f.name, 6, time.Minute)
	f.launched(t, 6)
	f.exactly(t, 6, 6)
	haveLeft(t, leaving)
}

const deathNote = "Client.InternalError: Client error on launch"

// replaced checks a pool whose first instance was terminated before its kubelet started: the NodeClaim is deleted, an
// event contains EC2's reason, and the pod runs on another instance.
func (f faulty) replaced(t *testing.T) {
	t.Helper()
	allRun(t, f.lab, f.name, 1, 2*time.Minute)
	f.exactly(t, 1, 2)
	first := instancesOf(f.lab, f.name)[0]
	if first.Alive() {
		t.Errorf("instance %s is still running", first.ID)
	}
	f.reported(t, first.Tags["karpenter.sh/nodeclaim"], "NodeNotJoining", first.ID, deathNote)
}

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

// speedup divides the durations of faults, to keep the test short. It is 45, or 1 if LAB_FULL is set (make soak).
// Undivided, the shortage lasts ten minutes, and the errors last two minutes. Without LAB_FULL the map yields 0, so
// cmp.Or returns 45.
var speedup = cmp.Or(map[bool]time.Duration{true: 1}[os.Getenv("LAB_FULL") != ""], 45)

// shortageBackoff returns the initial shortage back-off of the controller in these tests: three minutes divided by
// speedup.
func shortageBackoff() time.Duration { return 3 * time.Minute / speedup }

// faultPool is a NodePool with its own class and namespace, and with a Deployment that initially has no replicas.
// Simultaneous faults affect different instance types, and thereby different NodePools.
type faultPool struct {
	lab  *lab.Lab
	name string
}

// TestFaultsOfAWS injects faults of AWS, several at the same time if they affect different instance types. After each
// fault, all pods must run, and no superfluous instance may exist.
func TestFaultsOfAWS(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	settings := []string{"SHORTAGE_BACKOFF=" + shortageBackoff().String(), "BATCH_IDLE_DURATION=300ms", "BATCH_MAX_DURATION=1s"}
	restartController(t, l, settings...)
	t.Cleanup(func() {
		l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults = world.Faults{} })
		killController(l) // other tests need other settings
	})
	ofTypes := func(types ...string) string {
		return "{key: node.kubernetes.io/instance-type, operator: In, values: [" + strings.Join(types, ", ") + "]}"
	}
	// A pod with 1200m CPU fills a node with two vCPUs.
	failedBoot := newFaultPool(t, l, "failed-boot", "1200m", ofTypes("t3.large"))
	staleReads := newFaultPool(t, l, "stale-reads", "1200m", ofTypes("m5.large"))
	oneOffering := newFaultPool(t, l, "one-offering", "500m",
		"{key: karpenter.k8s.aws/instance-family, operator: In, values: [c6i, m6i, r6i]}")
	noCapacity := newFaultPool(t, l, "no-capacity", "1200m", ofTypes("c7i.large", "m7i.large"))
	throttled := newFaultPool(t, l, "throttled", "1200m", ofTypes("m5a.large"))
	failing := newFaultPool(t, l, "failing", "1200m", ofTypes("r5.large"))
	for _, f := range []faultPool{failedBoot, staleReads, oneOffering, noCapacity, throttled, failing} {
		awaitPoolReady(t, l, f.name)
	}

	l.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.BootFaults = []*world.BootFault{{Pool: world.CapacityPool{Type: "t3.large"}, Count: 1,
			Fail: world.Reason{Code: "Client.InternalError", Message: bootFailure}}}
		w.Faults.ReadLag = 30 * time.Second
	})
	failedBoot.scale(t, 1)
	failedBoot.awaitLaunched(t, 1)
	deleted := staleReads.restartWhileLaunching(t, settings)
	oneOffering.leaveOneOffering(t)
	noCapacity.removeCapacity(t)
	oneOffering.checkOfferingFound(t)
	staleReads.checkOneTerminated(t, deleted)
	noCapacity.checkAllRun(t)
	l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 0 })

	throttled.launchWhileThrottled(t, staleReads, oneOffering, noCapacity)
	failing.launchWhileFailing(t, throttled)
	failedBoot.checkReplaced(t)
	cleanUpFaultPools(t, failedBoot, failing)
}

func cleanUpFaultPools(t *testing.T, all ...faultPool) {
	t.Helper()
	for _, f := range all {
		deleteNamespace(t, f.lab, f.name)
	}
	deleteFaultPools(t, all...)
}

func deleteFaultPools(t *testing.T, all ...faultPool) {
	t.Helper()
	var pools []string
	for _, f := range all {
		pools = append(pools, f.name)
	}
	deletePools(t, all[0].lab, pools...)
}

func newFaultPool(t *testing.T, l *lab.Lab, name, cpu, requirement string) faultPool {
	t.Helper()
	f := faultPool{l, "fault-" + name}
	if err := l.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.name}}); err != nil {
		t.Fatal(err)
	}
	apply(t, l, class(l, f.name, "amiSelectorTerms: [{alias: al2023@latest}]"), pool(f.name, "", requirement),
		deployment(f.name, "web", 0, cpu, "1Gi", "test: "+f.name))
	return f
}

func (f faultPool) scale(t *testing.T, replicas int) {
	t.Helper()
	scale(t, f.lab, f.name, "web", replicas)
}

func (f faultPool) awaitLaunched(t *testing.T, want int) {
	t.Helper()
	within(t, f.lab, 30*time.Second, fmt.Sprintf("%d instances of %s to be launched", want, f.name), func(context.Context) (bool, error) {
		_, providerIDs := claimsOf(t, f.lab, f.name)
		return len(providerIDs) == want, nil
	})
}

func (f faultPool) fleetCalls() []time.Time {
	var times []time.Time
	f.lab.Emulator.Do(func(*world.World, time.Time) {
		for _, call := range f.lab.Estate.Region.Launches.FleetCalls() {
			if call.Tags[karpenterv1.LabelNodePool] == f.name {
				times = append(times, call.At)
			}
		}
	})
	return times
}

// checkInstances checks the numbers of launched instances and of instances that are still alive. Each living instance
// must have a NodeClaim.
func (f faultPool) checkInstances(t *testing.T, wantAlive, wantTotal int) {
	t.Helper()
	claims, providerIDs := claimsOf(t, f.lab, f.name)
	all := instancesOf(f.lab, f.name)
	// Ignore NodeClaims that are being deleted and have no instance: there was no capacity for them.
	claims = slices.DeleteFunc(claims, func(c karpenterv1.NodeClaim) bool { return c.DeletionTimestamp != nil && c.Status.ProviderID == "" })
	alive := 0
	for _, i := range all {
		if !i.Alive() {
			continue
		}
		alive++
		if !providerIDs["aws:///"+i.Zone+"/"+i.ID] {
			t.Errorf("instance %s has no NodeClaim, want one", i.ID)
		}
	}
	if alive != wantAlive || len(all) != wantTotal || len(claims) != wantAlive {
		t.Errorf("%s: %d of %d launched instances are alive, with %d NodeClaims; want %d of %d, each with a NodeClaim\n%s",
			f.name, alive, len(all), len(claims), wantAlive, wantTotal, f.lab.Evidence(context.Background()))
	}
}

// awaitEvent waits for an event with the reason and the words. about is the name of the event's object, or the kind of
// an object in the pool's namespace.
func (f faultPool) awaitEvent(t *testing.T, about, reason string, words ...string) {
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

// restartWhileLaunching restarts the controller while the controller launches eight instances and EC2's responses to
// Describe calls are 30 seconds old. Then it deletes a NodeClaim whose instance these responses do not contain yet, and
// returns the NodeClaim.
func (f faultPool) restartWhileLaunching(t *testing.T, settings []string) karpenterv1.NodeClaim {
	t.Helper()
	f.scale(t, 8)
	within(t, f.lab, 30*time.Second, "three of eight instances to be launched",
		func(context.Context) (bool, error) { return len(instancesOf(f.lab, f.name)) >= 3, nil })
	restartController(t, f.lab, settings...)
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

// checkOneTerminated checks that the instance of the deleted NodeClaim was terminated and replaced, and that none of
// the other NodeClaims got a second instance.
func (f faultPool) checkOneTerminated(t *testing.T, deleted karpenterv1.NodeClaim) {
	t.Helper()
	within(t, f.lab, 90*time.Second, "the deleted NodeClaim to be gone, with its instance", func(ctx context.Context) (bool, error) {
		err := f.lab.Client.Get(ctx, client.ObjectKeyFromObject(&deleted), &karpenterv1.NodeClaim{})
		return err != nil, client.IgnoreNotFound(err)
	})
	awaitRunning(t, f.lab, f.name, 8, time.Minute)
	f.awaitLaunched(t, 8)
	f.checkInstances(t, 8, 9)
}

// leaveOneOffering limits the capacity of three instance families to one instance of one offering, which is not the
// cheapest. Then it creates three pods.
func (f faultPool) leaveOneOffering(t *testing.T) {
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
				capacity := 0
				if facts.Name == "r6i.xlarge" && i == 1 {
					capacity = 1
				}
				f.lab.Estate.Region.Capacity.Limit(world.CapacityPool{Type: facts.Name, Zone: subnet.Zone.Name}, capacity)
			}
		}
	})
	f.scale(t, 3)
}

// checkOfferingFound checks that all pods run on the only available instance, after at most three CreateFleet calls.
func (f faultPool) checkOfferingFound(t *testing.T) {
	t.Helper()
	awaitRunning(t, f.lab, f.name, 3, time.Minute)
	f.checkInstances(t, 1, 1)
	calls := len(f.fleetCalls())
	t.Logf("%d calls of CreateFleet until the only available offering was found", calls)
	if most := 3; calls > most {
		t.Errorf("%d CreateFleet calls, want at most %d: a call can contain 60 types", calls, most)
	}
}

// removeCapacity creates five pods while EC2 has no capacity for their instance types. The controller may try one
// launch per back-off, and must report the shortage in events of the pods. When the capacity is back, the five
// instances must be launched soon.
func (f faultPool) removeCapacity(t *testing.T) {
	t.Helper()
	forEachType := func(set func(world.CapacityPool)) {
		f.lab.Emulator.Do(func(*world.World, time.Time) {
			set(world.CapacityPool{Type: "c7i.*"})
			set(world.CapacityPool{Type: "m7i.*"})
		})
	}
	forEachType(func(p world.CapacityPool) { f.lab.Estate.Region.Capacity.Limit(p, 0) })
	began := time.Now()
	f.scale(t, 5)
	f.awaitEvent(t, "Pod", "FailedScheduling", "NoCapacity")
	duration := 10 * time.Minute / speedup
	within(t, f.lab, duration+time.Minute, "the end of the shortage, and launch attempts for two back-offs",
		func(context.Context) (bool, error) {
			at := f.fleetCalls()
			return time.Since(began) > duration && len(at) > 0 && at[len(at)-1].Sub(at[0]) > 2*shortageBackoff(), nil
		})
	at := f.fleetCalls()
	t.Logf("%d calls of CreateFleet in %.0f s of shortage: %v", len(at), time.Since(began).Seconds(), secondsSince(began, at))
	initial := 0 // attempts before the back-off started
	for i, when := range at {
		if when.Sub(at[0]) < shortageBackoff()/2 {
			initial++
		} else if gap := when.Sub(at[i-1]); gap < shortageBackoff() {
			t.Errorf("two launch attempts within %s, want at least %s between them", gap, shortageBackoff())
		}
	}
	if initial > 5 {
		t.Errorf("%d CreateFleet calls for five NodeClaims before the back-off started, want at most 5", initial)
	}
	if all := instancesOf(f.lab, f.name); len(all) > 0 {
		t.Errorf("%d instances of types without capacity were launched, want none", len(all))
	}
	forEachType(f.lab.Estate.Region.Capacity.RemoveLimit)
	ended := time.Now()
	within(t, f.lab, 4*shortageBackoff()+20*time.Second, "five instances to be launched",
		func(context.Context) (bool, error) { return len(instancesOf(f.lab, f.name)) == 5, nil })
	t.Logf("all instances were launched %.1f s after the end of the shortage", time.Since(ended).Seconds())
}

// checkAllRun waits until the five pods run, and checks the number of instances. The nodes join late because of
// ReadLag.
func (f faultPool) checkAllRun(t *testing.T) {
	t.Helper()
	awaitRunning(t, f.lab, f.name, 5, time.Minute)
	f.checkInstances(t, 5, 5)
}

func secondsSince(began time.Time, at []time.Time) []string {
	var out []string
	for _, when := range at {
		out = append(out, fmt.Sprintf("%.1f s", when.Sub(began).Seconds()))
	}
	return out
}

// launchWhileThrottled throttles every second call to EC2. Meanwhile nodes of this pool are launched, and the pools in
// leaving are deleted with their nodes.
func (f faultPool) launchWhileThrottled(t *testing.T, leaving ...faultPool) {
	t.Helper()
	throttle := &world.CallError{Call: "ec2:*", Every: 2, Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."}
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.CallErrors = []*world.CallError{throttle} })
	f.scale(t, 12)
	for _, other := range leaving {
		deleteNamespace(t, f.lab, other.name)
	}
	awaitRunning(t, f.lab, f.name, 12, 2*time.Minute)
	f.awaitLaunched(t, 12)
	f.checkInstances(t, 12, 12)
	deleteFaultPools(t, leaving...)
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = nil
		if n := throttle.Failures(); n < 20 {
			t.Errorf("only %d calls were throttled, want at least 20", n)
		}
	})
}

// launchWhileFailing makes every call to EC2 return an error, although EC2 executes every second launch. Meanwhile
// nodes of this pool are launched, and the nodes of the pool leaving are terminated. Afterwards each instance must have
// a NodeClaim. The errors last two minutes divided by speedup, but at least 20 seconds.
func (f faultPool) launchWhileFailing(t *testing.T, leaving faultPool) {
	t.Helper()
	executed := &world.CallError{Call: "ec2:CreateFleet", Every: 2, Status: 503, Code: "Unavailable",
		Message: "The service is unavailable. Please try again shortly.", Late: true}
	failed := &world.CallError{Call: "ec2:*", Status: 500, Code: "InternalError"}
	f.scale(t, 1)
	awaitRunning(t, f.lab, f.name, 1, time.Minute) // creates the launch template before the errors
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.CallErrors = []*world.CallError{executed, failed} })
	began := time.Now()
	f.scale(t, 6)
	deleteNamespace(t, f.lab, leaving.name)
	duration := max(2*time.Minute/speedup, 20*time.Second)
	within(t, f.lab, duration+time.Minute, "the end of the errors",
		func(context.Context) (bool, error) { return time.Since(began) > duration, nil })
	f.lab.Emulator.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = nil
		t.Logf("%d launches were executed although they returned an error, %d other calls failed", executed.Failures(), failed.Failures())
		if executed.Failures() == 0 || failed.Failures() == 0 {
			t.Error("want at least one launch executed despite its error, and at least one other failed call")
		}
	})
	awaitRunning(t, f.lab, f.name, 6, time.Minute)
	f.awaitLaunched(t, 6)
	f.checkInstances(t, 6, 6)
	deleteFaultPools(t, leaving)
}

// bootFailure is the reason that EC2 gives for the instance that it terminates during its boot.
const bootFailure = "Client.InternalError: Client error on launch"

// checkReplaced checks the pool whose first instance was terminated before its kubelet started: the NodeClaim is
// deleted, an event contains EC2's reason, and the pod runs on another instance.
func (f faultPool) checkReplaced(t *testing.T) {
	t.Helper()
	awaitRunning(t, f.lab, f.name, 1, 2*time.Minute)
	f.checkInstances(t, 1, 2)
	first := instancesOf(f.lab, f.name)[0]
	if first.Alive() {
		t.Errorf("instance %s is still running, want it terminated", first.ID)
	}
	f.awaitEvent(t, first.Tags["karpenter.sh/nodeclaim"], "NodeNotJoining", first.ID, bootFailure)
}

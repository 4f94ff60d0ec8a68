package controller

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/aws/ec2"
	"github.com/joiner-sh/joiner/internal/aws/iam"
	"github.com/joiner-sh/joiner/internal/controller/nodeclaim"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// otherUID is the UID of the second cluster in tests with two clusters. The first one has testUID.
const otherUID = "uid-of-the-other-kube-system"

// TestTwoClustersWithOneName runs the controllers of two clusters with the same name in one account and region, with
// the same manifests, tags and queue. For a thousand minutes, pods are created and deleted, and spot instances are
// interrupted. Neither controller changes resources of the other cluster: instances with their tags, launch templates,
// instance profiles.
func TestTwoClustersWithOneName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &rig{uid: testUID, url: "http://aws.example"}
		a.createWorld(t, []string{"t3.medium", "m5.large", "c5.xlarge"})
		b := &rig{uid: otherUID, url: a.url, Server: a.Server, estate: a.estate}
		both := []*sameNameRig{{rig: a, other: otherUID}, {rig: b, other: testUID}}
		for _, n := range both {
			n.startController(t)
		}
		a.connectEventBridge()
		dice := rand.New(rand.NewPCG(3, 5))
		for minute := range 1000 {
			for _, n := range both {
				n.checkOtherUnchanged(t, minute, func() { n.simulateMinute(t, minute, dice) })
			}
			time.Sleep(time.Minute)
		}
		// Afterwards, EC2 has terminated all interrupted instances. So checkOtherUnchanged sees no change during
		// deleteAll.
		for range 3 {
			for _, n := range both {
				n.checkOtherUnchanged(t, 1000, func() { n.runLoops(t) })
			}
			time.Sleep(time.Minute)
		}
		for _, n := range both {
			if n.launched < 40 || n.interrupted < 15 {
				t.Errorf("%s: only %d instances were launched and %d interrupted, want at least 40 and 15", n.uid, n.launched, n.interrupted)
			}
			if text := n.log.String(); !strings.Contains(text, "another cluster has our name") || !strings.Contains(text, n.other) {
				t.Errorf("the log of %s does not say that %s has the same name", n.uid, n.other)
			}
			n.checkOtherUnchanged(t, 1000, func() { n.deleteAll(t) })
		}
		a.Do(func(w *world.World, _ time.Time) {
			if left := a.estate.Region.LaunchTemplates.All(); len(left) > 0 {
				t.Errorf("%d launch templates are left, want none", len(left))
			}
			if left := w.Account(emulator.DefaultAccount).Profiles("/"); len(left) > 0 {
				t.Errorf("%d instance profiles are left, %s first", len(left), left[0].Name)
			}
		})
		if left := a.instances(); len(left) > 0 {
			t.Errorf("%d instances are left, want none", len(left))
		}
	})
}

// inProcess is an HTTP transport that calls a server directly: a network does not follow simulated time.
type inProcess struct{ http.Handler }

func (s inProcess) RoundTrip(request *http.Request) (*http.Response, error) {
	response := httptest.NewRecorder()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	s.ServeHTTP(response, request)
	return response.Result(), nil
}

type sameNameRig struct {
	*rig
	other         string // UID of the other cluster
	currentMinute int    // the simulated minute, for reconcileDueClaims
	lastChange    int    // the minute of the last change that the controller had to process
	wanted        int    // number of pods that simulateDriftMinute keeps
	created       int    // number of pods created so far
	launched      int    // number of instances launched so far
	interrupted   int    // number of spot interruptions so far
}

func (n *sameNameRig) startController(t *testing.T) {
	t.Helper()
	n.transport, n.events, n.log, n.fuse = inProcess{n.Server}, &events{}, &bytes.Buffer{}, &fuse{}
	n.serveKubernetes(t)
	n.start(t)
	n.withQueue(t)
	awsClient, ok := n.NodeClasses.Profiles.(*iam.Client)
	if !ok {
		t.Fatal("the rig's profiles are not an IAM client")
	}
	n.Sweeper.Profiles = awsClient
	pool := n.pool(t)
	pool.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand}
	if err := n.api.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

func (n *sameNameRig) checkOtherUnchanged(t *testing.T, minute int, do func()) {
	t.Helper()
	before := n.resourcesOf(t, n.other)
	do()
	after := n.resourcesOf(t, n.other)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			t.Fatalf("minute %d: %s changed the other cluster's %s:\n%s\n%s", minute, n.uid, name, before[name], after[name])
		}
	}
	if len(after) != len(before) {
		t.Fatalf("minute %d: %s created %d resources of the other cluster", minute, n.uid, len(after)-len(before))
	}
}

// resourcesOf returns the state of the AWS resources of one cluster, by kind and name: instances that are pending or
// running, launch templates and instance profiles.
func (n *sameNameRig) resourcesOf(t *testing.T, uid string) map[string]string {
	t.Helper()
	out := map[string]string{}
	n.Do(func(w *world.World, now time.Time) {
		for _, i := range n.estate.Region.Instances.All() {
			if i.Tags[ec2.TagUID] == uid && (i.State == world.Pending || i.State == world.Running) {
				out["instance "+i.ID] = fmt.Sprint(i.Tags)
			}
		}
		for _, lt := range n.estate.Region.LaunchTemplates.All() {
			if lt.Tags[ec2.TagUID] == uid {
				out["launch template "+lt.Name] = fmt.Sprint(lt.Tags, len(lt.Versions))
			}
		}
		for _, p := range w.Account(emulator.DefaultAccount).Profiles("/") {
			if p.Tags[ec2.TagUID] == uid {
				out["instance profile "+p.Name] = fmt.Sprint(p.Tags, p.Role)
			}
		}
	})
	return out
}

// simulateMinute simulates one minute of a cluster. At random, it creates a pod, deletes a pod and interrupts an
// instance. From the third minute after the last change, all loops run only every fifth minute.
func (n *sameNameRig) simulateMinute(t *testing.T, minute int, dice *rand.Rand) {
	t.Helper()
	n.currentMinute = minute
	before := n.created + n.interrupted
	if dice.IntN(6) == 0 && len(n.allPods(t)) < 6 {
		n.addPendingPod(t, fmt.Sprintf("web-%d", n.created), fmt.Sprintf("%dm", 300+dice.IntN(1500)), "512Mi")
		n.created++
	}
	if dice.IntN(7) == 0 {
		n.deletePod(t, dice)
		n.lastChange = minute
	}
	if alive := n.ownInstances(); len(alive) > 0 && dice.IntN(20) == 0 {
		n.Do(func(w *world.World, now time.Time) { w.Interrupt(now, alive[dice.IntN(len(alive))]) })
		n.interrupted++
	}
	if n.created+n.interrupted > before {
		n.lastChange = minute
	}
	if minute%10 == 0 {
		n.reconcileClassAndPool(t)
	}
	if minute-n.lastChange > 2 && minute%5 > 0 {
		n.processQueue(t)
		n.drainPass(t)
		n.sweep(t)
		return
	}
	n.runLoops(t)
}

func (n *sameNameRig) runLoops(t *testing.T) {
	t.Helper()
	n.processQueue(t)
	n.drainPass(t)
	before := len(n.ownInstances())
	if n.schedule(t) > 0 {
		n.plan(t)
	}
	n.reconcileDueClaims(t)
	n.launched += max(0, len(n.ownInstances())-before)
	n.join(t)
	n.reconcileDueClaims(t)
	n.schedule(t)
	n.drainPass(t)
	if err := n.Emptiness.Pass(t.Context(), n.now()); err != nil {
		t.Fatal(err)
	}
	n.reconcileDueClaims(t)
	n.sweep(t)
}

func (n *sameNameRig) sweep(t *testing.T) {
	t.Helper()
	if err := n.Sweeper.Pass(t.Context(), n.now()); err != nil {
		t.Fatal(err)
	}
}

// reconcileDueClaims reconciles each claim that is not initialized yet or is being deleted. It reconciles each of the
// other claims every tenth minute.
func (n *sameNameRig) reconcileDueClaims(t *testing.T) {
	t.Helper()
	for i, c := range n.claims(t) {
		isSettled := c.DeletionTimestamp == nil && c.StatusConditions().IsTrue(karpv1.ConditionInitialized)
		if isSettled && (n.currentMinute+i)%10 > 0 {
			continue
		}
		if _, err := n.Claims.Reconcile(t.Context(), named(c.Name)); err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, n.log)
		}
	}
}

func (n *sameNameRig) ownInstances() []string {
	var out []string
	for _, i := range n.instances() {
		if i.Tags[ec2.TagUID] == n.uid {
			out = append(out, i.ID)
		}
	}
	return out
}

func (n *sameNameRig) allPods(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := n.api.List(t.Context(), &list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (n *sameNameRig) deletePod(t *testing.T, dice *rand.Rand) {
	t.Helper()
	pods := n.allPods(t)
	if len(pods) == 0 {
		return
	}
	if err := n.api.Delete(t.Context(), &pods[dice.IntN(len(pods))]); err != nil {
		t.Fatal(err)
	}
}

// schedule binds pods to nodes with room, as kube-scheduler does, and returns how many pods are still pending.
func (n *sameNameRig) schedule(t *testing.T) int {
	t.Helper()
	free := map[string]int64{} // by node, in thousandths of a core; the empty name has the pending pods
	for _, node := range n.nodes(t) {
		if node.DeletionTimestamp == nil && node.Labels[karpv1.LabelInitialized] == "true" && !nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
			free[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
		}
	}
	pods := n.allPods(t)
	for i := range pods {
		free[pods[i].Spec.NodeName] -= pods[i].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	waiting := 0
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName != "" {
			continue
		}
		waiting++
		for _, node := range slices.Sorted(maps.Keys(free)) {
			if need := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(); node != "" && free[node] >= need {
				free[node] -= need
				pod.Spec.NodeName, pod.Status = node, corev1.PodStatus{Phase: corev1.PodRunning}
				if err := n.api.Update(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				waiting--
				break
			}
		}
	}
	return waiting
}

func (n *sameNameRig) deleteAll(t *testing.T) {
	t.Helper()
	if err := n.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		n.runLoops(t)
		time.Sleep(time.Minute)
	}
	if left := n.ownInstances(); len(left)+len(n.claims(t)) > 0 {
		t.Errorf("%s: %d instances and %d claims are left\n%s", n.uid, len(left), len(n.claims(t)), n.log)
	}
	if err := n.api.Delete(t.Context(), n.class(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
		t.Fatal(err)
	}
}

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

const otherUID = "uid-of-the-other-kube-system"

// TestNamesakes runs two controllers with the same cluster name in one account and region, with the same manifests, tags and
// queue, for a thousand minutes in which pods come and go and spot instances are interrupted. Neither changes
// resources of the other: instances, tags, launch templates, instance profiles, messages.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &rig{uid: testUID, url: "http://aws.example"}
		a.furnish(t, []string{"t3.medium", "m5.large", "c5.xlarge"})
		b := &rig{uid: otherUID, url: a.url, Server: a.Server, estate: a.estate}
		both := []*neighbour{{rig: a, other: otherUID}, {rig: b, other: testUID}}
		for _, n := range both {
			n.moveIn(t)
		}
		a.announced()
		dice := rand.New(rand.NewPCG(3, 5))
		for minute := range 1000 {
			for _, n := range both {
				n.leaveInPeace(t, minute, func() { n.minute(t, minute, dice) })
			}
			time.Sleep(time.Minute)
		}
		for range 3 { // interrupted instances are gone by then: moveOut takes long, and would be blamed for their end
			for _, n := range both {
				n.leaveInPeace(t, 1000, func() { n.loops(t) })
			}
			time.Sleep(time.Minute)
		}
		for _, n := range both {
			if n.bought < 40 || n.interrupted < 15 {
				t.Errorf("%s: only %d instances launched and %d interrupted: too quiet to prove anything", n.uid, n.bought, n.interrupted)
			}
			if said := n.log.String(); !strings.Contains(said, "another cluster has our name") || !strings.Contains(said, n.other) {
				t.Errorf("%s does not say that %s has its name", n.uid, n.other)
			}
			n.leaveInPeace(t, 1000, func() { n.moveOut(t) })
		}
		a.Do(func(w *world.World, _ time.Time) {
			if left := a.estate.Region.LaunchTemplates.All(); len(left) > 0 {
				t.Errorf("%d launch templates are left", len(left))
			}
			if left := w.Account(emulator.DefaultAccount).Profiles("/"); len(left) > 0 {
				t.Errorf("%d instance profiles are left, %s first", len(left), left[0].Name)
			}
		})
		if left := a.instances(); len(left) > 0 {
			t.Errorf("%d instances are left", len(left))
		}
	})
}

// inProcess calls a server without a network, which would not follow simulated time.
type inProcess struct{ http.Handler }

func (s inProcess) RoundTrip(q *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	if q.Body == nil {
		q.Body = http.NoBody
	}
	s.ServeHTTP(answer, q)
	return answer.Result(), nil
}

// neighbour is one of two clusters with the same name.
type neighbour struct {
	*rig
	other               string // UID of the other cluster
	minutes, stirred    int    // the last one, and that of the last change that it had to process
	pods                int    // created so far
	bought, interrupted int
}

// moveIn starts all loops.
func (n *neighbour) moveIn(t *testing.T) {
	t.Helper()
	n.wire, n.events, n.log, n.fuse = inProcess{n.Server}, &events{}, &bytes.Buffer{}, &fuse{}
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

// leaveInPeace fails the test if the function changes resources of the other cluster.
func (n *neighbour) leaveInPeace(t *testing.T, minute int, do func()) {
	t.Helper()
	before := n.belongings(t, n.other)
	do()
	after := n.belongings(t, n.other)
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if before[what] != after[what] {
			t.Fatalf("minute %d: %s altered the other's %s:\n%s\n%s", minute, n.uid, what, before[what], after[what])
		}
	}
	if len(after) != len(before) {
		t.Fatalf("minute %d: %s gave the other %d things", minute, n.uid, len(after)-len(before))
	}
}

// belongings returns the state of all AWS resources of one cluster: instances that are not terminated, launch
// templates, instance profiles, and messages about the instances.
func (n *neighbour) belongings(t *testing.T, uid string) map[string]string {
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

// minute simulates one minute of a cluster.
func (n *neighbour) minute(t *testing.T, minute int, dice *rand.Rand) {
	t.Helper()
	n.minutes = minute
	before := n.pods + n.interrupted
	if dice.IntN(6) == 0 && len(n.all(t)) < 6 {
		n.pending(t, fmt.Sprintf("web-%d", n.pods), fmt.Sprintf("%dm", 300+dice.IntN(1500)), "512Mi")
		n.pods++
	}
	if dice.IntN(7) == 0 {
		n.stop(t, dice)
		n.stirred = minute
	}
	if alive := n.alive(); len(alive) > 0 && dice.IntN(20) == 0 {
		n.Do(func(w *world.World, now time.Time) { w.Interrupt(now, alive[dice.IntN(len(alive))]) })
		n.interrupted++
	}
	if n.pods+n.interrupted > before {
		n.stirred = minute
	}
	if minute%10 == 0 {
		n.classes(t)
	}
	if minute-n.stirred > 2 && minute%5 > 0 { // no change is in progress
		n.read(t)
		n.depart(t)
		n.sweep(t)
		return
	}
	n.loops(t)
}

// loops runs each loop of the controller once or twice.
func (n *neighbour) loops(t *testing.T) {
	t.Helper()
	n.read(t)
	n.depart(t)
	before := len(n.alive())
	if n.schedule(t) > 0 {
		n.plan(t)
	}
	n.visit(t)
	n.bought += max(0, len(n.alive())-before)
	n.join(t)
	n.visit(t)
	n.schedule(t)
	n.depart(t)
	if err := n.Emptiness.Pass(t.Context(), n.now()); err != nil {
		t.Fatal(err)
	}
	n.visit(t)
	n.sweep(t)
}

func (n *neighbour) sweep(t *testing.T) {
	t.Helper()
	if err := n.Sweeper.Pass(t.Context(), n.now()); err != nil {
		t.Fatal(err)
	}
}

// visit reconciles each claim that is starting or terminating, and the ready ones now and then.
func (n *neighbour) visit(t *testing.T) {
	t.Helper()
	for i, c := range n.claims(t) {
		steady := c.DeletionTimestamp == nil && c.StatusConditions().IsTrue(karpv1.ConditionInitialized)
		if steady && (n.minutes+i)%10 > 0 {
			continue
		}
		if _, err := n.Claims.Reconcile(t.Context(), named(c.Name)); err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, n.log)
		}
	}
}

// alive returns the cluster's own instances, sorted.
func (n *neighbour) alive() []string {
	var out []string
	for _, i := range n.instances() {
		if i.Tags[ec2.TagUID] == n.uid {
			out = append(out, i.ID)
		}
	}
	return out
}

// all returns all pods.
func (n *neighbour) all(t *testing.T) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := n.api.List(t.Context(), &list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// stop ends one of the pods.
func (n *neighbour) stop(t *testing.T, dice *rand.Rand) {
	t.Helper()
	pods := n.all(t)
	if len(pods) == 0 {
		return
	}
	if err := n.api.Delete(t.Context(), &pods[dice.IntN(len(pods))]); err != nil {
		t.Fatal(err)
	}
}

// schedule binds pods to nodes with room, as kube-scheduler does, and returns how many are still pending.
func (n *neighbour) schedule(t *testing.T) int {
	t.Helper()
	free := map[string]int64{} // by node, in thousandths of a core
	for _, node := range n.nodes(t) {
		if node.DeletionTimestamp == nil && node.Labels[karpv1.LabelInitialized] == "true" && !nodeclaim.HasTaint(&node, karpv1.TaintDisrupted) {
			free[node.Name] = node.Status.Allocatable.Cpu().MilliValue()
		}
	}
	pods := n.all(t)
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

// moveOut deletes all objects of the cluster.
func (n *neighbour) moveOut(t *testing.T) {
	t.Helper()
	if err := n.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		n.loops(t)
		time.Sleep(time.Minute)
	}
	if left := n.alive(); len(left)+len(n.claims(t)) > 0 {
		t.Errorf("%s: %d instances and %d claims are left\n%s", n.uid, len(left), len(n.claims(t)), n.log)
	}
	if err := n.api.Delete(t.Context(), n.class(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.NodeClasses.Reconcile(t.Context(), named("default")); err != nil {
		t.Fatal(err)
	}
}

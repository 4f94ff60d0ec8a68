package lab_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// onePerNode returns the manifests of a class, a pool with one instance type, and a Deployment whose pods each fill a
// node.
func onePerNode(l *lab.Lab, name string, replicas int) []string {
	return []string{
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
		deployment(name, "one-per-node", replicas, "1200m", "1Gi", "test: "+name),
	}
}

// checkOneEach checks that the number of instances launched for the pool is want, and that each instance is alive and
// has one NodeClaim and one Node.
func checkOneEach(t *testing.T, l *lab.Lab, name string, want int) {
	t.Helper()
	claims, providerIDs := claimsOf(t, l, name)
	all := instancesOf(l, name)
	for _, i := range all {
		if id := "aws:///" + i.Zone + "/" + i.ID; !i.Alive() || !providerIDs[id] {
			t.Errorf("instance %s is %s and has a NodeClaim: %t; want it alive with a NodeClaim",
				i.ID, i.State, providerIDs[id])
		}
	}
	nodes := nodesOf(t, l, all)
	if len(all) != want || len(claims) != want || len(nodes) != want {
		t.Errorf("%d launched instances, %d NodeClaims, %d Nodes; want %d of each\n%s",
			len(all), len(claims), len(nodes), want, l.Evidence(context.Background()))
	}
}

func nodesOf(t *testing.T, l *lab.Lab, instances []world.Instance) []corev1.Node {
	t.Helper()
	var nodes corev1.NodeList
	if err := l.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool {
		return !slices.ContainsFunc(instances, func(i world.Instance) bool { return n.Spec.ProviderID == "aws:///"+i.Zone+"/"+i.ID })
	})
}

// refusedCalls returns the number of calls that AWS has refused with one of the error codes.
func refusedCalls(t *testing.T, l *lab.Lab, codes ...string) int {
	t.Helper()
	log, err := os.ReadFile(l.Logs("aws"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(log) {
		if slices.ContainsFunc(codes, func(code string) bool { return bytes.Contains(line, []byte(`error="`+code+":")) }) {
			n++
		}
	}
	return n
}

// TestClockSkew tests AWS clocks that differ from the clock of the controller and the cluster. First the AWS clock is
// more than five minutes behind, so launch times are in the past. Then it is more than five minutes ahead, so launch
// times are in the future. Finally AWS rejects credentials as expired long before they expire by the controller's
// clock. During the test the AWS clock is never set back.
func TestClockSkew(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	t.Cleanup(func() {
		l.SetClock(0)
		killController(l) // its credentials are valid only in this test
	})
	skew := 5*time.Minute + 10*time.Second // most services reject a skew of more than five minutes
	skewed := []string{"SignatureDoesNotMatch", "InvalidSignatureException"}
	expired := []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
	name := newTestNamespace(t, l)

	l.SetClock(-skew)
	before := refusedCalls(t, l, skewed...)
	restartController(t, l)
	apply(t, l, onePerNode(l, name, 1)...)
	awaitRunning(t, l, name, 1, time.Minute)
	afterBehind := refusedCalls(t, l, skewed...)

	l.SetClock(skew)
	scale(t, l, name, "one-per-node", 2)
	awaitRunning(t, l, name, 2, time.Minute)
	restartController(t, l)
	within(t, l, time.Minute, "AWS to reject requests because of the clock skew", func(context.Context) (bool, error) {
		return refusedCalls(t, l, skewed...) > afterBehind && afterBehind > before, nil // rejected with both skews
	})

	// By the controller's clock, the credentials expire ten minutes after AWS rejects them. The SDK renews them only in
	// their last five minutes.
	l.SetClock(10 * time.Minute)
	agent := &lab.PodIdentity{Lab: l, Life: 8 * time.Second}
	srv := httptest.NewServer(agent)
	t.Cleanup(srv.Close)
	before = refusedCalls(t, l, expired...)
	restartController(t, l, agent.Settings(srv.URL)...)
	began, requestsBefore := time.Now(), agent.Requests.Load()
	within(t, l, time.Minute, "the credentials to expire", func(context.Context) (bool, error) { return time.Since(began) > agent.Life, nil })
	scale(t, l, name, "one-per-node", 3)
	awaitRunning(t, l, name, 3, time.Minute)
	if refusedCalls(t, l, expired...) == before || agent.Requests.Load() <= requestsBefore {
		t.Errorf("AWS refused %d calls with expired credentials, want at least 1; "+
			"%d requests for credentials before they expired and %d in total, want a higher total",
			refusedCalls(t, l, expired...)-before, requestsBefore, agent.Requests.Load())
	}
	checkOneEach(t, l, name, 3)
	cleanUp(t, l, name)
}

// outageVariable is the environment variable with the duration of the API server's outage. The default, 16 s, is
// longer than the controller's Lease.
const outageVariable = "LAB_OUTAGE"

// TestAPIServerGone stops the API server while instances are being launched. Afterwards each pod must run, and must
// have exactly one instance.
func TestAPIServerGone(t *testing.T) {
	l := sharedLab(t)
	duration := 16 * time.Second
	if text := os.Getenv(outageVariable); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	ends := superviseController(t, l, "DISABLE_LEADER_ELECTION=false", "BATCH_IDLE_DURATION=200ms", "BATCH_MAX_DURATION=1s")
	name := newTestNamespace(t, l)
	apply(t, l, onePerNode(l, name, 2)...)
	awaitRunning(t, l, name, 2, time.Minute)
	scale(t, l, name, "one-per-node", 6)
	within(t, l, time.Minute, "an instance to be launched", func(context.Context) (bool, error) { return len(instancesOf(l, name)) > 2, nil })
	l.StopAPIServer()
	began := time.Now()
	within(t, l, duration+time.Minute, "the controller to lose its Lease and end, and the end of the outage",
		func(context.Context) (bool, error) { return ends.Load() > 0 && time.Since(began) >= duration, nil })
	t.Logf("the API server was stopped for %.1f s; %d instances were launched, and the controller ended %d times",
		time.Since(began).Seconds(), len(instancesOf(l, name)), ends.Load())
	if n := len(instancesOf(l, name)); n > 6 {
		t.Errorf("%d instances were launched for 6 pods, want at most 6", n)
	}
	if err := l.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, l, name, 6, 3*time.Minute)
	checkOneEach(t, l, name, 6)
	cleanUp(t, l, name)
}

// superviseController runs a controller until the end of the test. Whenever the controller ends, superviseController
// starts another one, as a Deployment does. It returns a counter of the controllers that ended or did not start.
func superviseController(t *testing.T, l *lab.Lab, settings ...string) *atomic.Int32 {
	t.Helper()
	current, ends := restartController(t, l, settings...), &atomic.Int32{}
	path := program(t)
	ctx, stop := context.WithCancel(t.Context())
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-current.Done():
				ends.Add(1)
			case <-ctx.Done():
				current.Kill()
				return
			}
			for ctx.Err() == nil {
				next, err := l.RunController(ctx, path, append([]string{}, settings...)...)
				if err == nil {
					current = next
					break
				}
				ends.Add(1)
				select {
				case <-time.After(time.Second): // a kubelet waits ten seconds, its restart back-off
				case <-ctx.Done():
				}
			}
		}
		current.Kill()
	})
	t.Cleanup(func() {
		stop()
		keeper.Wait()
	})
	return ends
}

// TestNodeRegistersTwice creates a second Node for an instance twice: before the instance's kubelet registers, and
// after it has registered. In between, the test deletes the kubelet's Node, so that the kubelet registers again.
// Finally there are one NodeClaim, one Node and one instance, and the pod runs.
func TestNodeRegistersTwice(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	name := newTestNamespace(t, l)
	l.Emulator.Do(func(w *world.World, _ time.Time) {
		// so that the second Node exists before the kubelet registers
		w.Faults.BootFaults = []*world.BootFault{{Count: 1, Delay: 2 * time.Second}}
	})
	t.Cleanup(func() { l.Emulator.Do(func(w *world.World, _ time.Time) { w.Faults.BootFaults = nil }) })
	apply(t, l, onePerNode(l, name, 1)...)
	within(t, l, time.Minute, "an instance to be launched", func(context.Context) (bool, error) { return len(instancesOf(l, name)) > 0, nil })
	i := instancesOf(l, name)[0]
	twin := createSecondNode(t, l, i)
	awaitRunning(t, l, name, 1, time.Minute)
	awaitSecondNodeEvent(t, l, twin)
	checkOneEach(t, l, name, 1)

	old := awaitPreparedNode(t, l, name, i, "")
	deleteWithoutFinalizers(t, l, old)
	l.RestartKubelet(i.ID)
	again := awaitPreparedNode(t, l, name, i, old.UID)
	if again.Name != old.Name {
		t.Errorf("the kubelet registered again as Node %s, want %s", again.Name, old.Name)
	}
	awaitRunning(t, l, name, 1, time.Minute)
	awaitSecondNodeEvent(t, l, createSecondNode(t, l, i)) // this time the NodeClaim already has its nodeName
	checkOneEach(t, l, name, 1)
	cleanUp(t, l, name)
}

// awaitSecondNodeEvent waits until an event reports that the Node twin does not belong to the instance. Then it deletes
// twin.
func awaitSecondNodeEvent(t *testing.T, l *lab.Lab, twin *corev1.Node) {
	t.Helper()
	within(t, l, time.Minute, twin.Name+" to be reported", func(ctx context.Context) (bool, error) {
		events, err := l.Kube.CoreV1().Events("").List(ctx,
			metav1.ListOptions{FieldSelector: "reason=NodeMismatch,involvedObject.kind=Node,involvedObject.name=" + twin.Name})
		return err == nil && len(events.Items) > 0, err
	})
	if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(twin), twin); err != nil {
		t.Fatal(err)
	}
	if pool := twin.Labels[karpenterv1.LabelNodePool]; pool != "" {
		t.Errorf("Node %s, which does not belong to the instance, has the label of NodePool %s, want none",
			twin.Name, pool)
	}
	if err := l.Client.Delete(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
}

// createSecondNode creates a second Node with the provider ID of an instance. The Node's condition Ready is Unknown, as
// the node lifecycle controller sets it if no kubelet reports.
func createSecondNode(t *testing.T, l *lab.Lab, i world.Instance) *corev1.Node {
	t.Helper()
	twin := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "twin-of-" + i.ID + "-"},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///" + i.Zone + "/" + i.ID,
			Taints:     []corev1.Taint{{Key: karpenterv1.TaintUnregistered, Effect: corev1.TaintEffectNoExecute}},
		},
	}
	if err := l.Client.Create(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	status := []byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown",` +
		`"message":"Kubelet stopped posting node status."}]}}`)
	if _, err := l.Kube.CoreV1().Nodes().PatchStatus(t.Context(), twin.Name, status); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return twin
}

// awaitPreparedNode waits until an instance has exactly one Node, which the controller has prepared for pods, and whose
// UID is not oldUID.
func awaitPreparedNode(t *testing.T, l *lab.Lab, name string, i world.Instance, oldUID types.UID) corev1.Node {
	t.Helper()
	var node corev1.Node
	within(t, l, time.Minute, "the Node of "+i.ID+" to be prepared", func(ctx context.Context) (bool, error) {
		nodes := nodesOf(t, l, []world.Instance{i})
		if len(nodes) != 1 || nodes[0].UID == oldUID {
			return false, fmt.Errorf("the instance has %d Nodes, want 1, whose UID is not %q", len(nodes), oldUID)
		}
		node = nodes[0]
		claims, _ := claimsOf(t, l, name)
		if len(claims) != 1 {
			return false, fmt.Errorf("the pool has %d NodeClaims, want 1", len(claims))
		}
		isPrepared := node.Labels[karpenterv1.LabelInitialized] == "true" && slices.Contains(node.Finalizers, karpenterv1.FinalizerTermination) &&
			len(node.Spec.Taints) == 0 && claims[0].Status.NodeName == node.Name && claims[0].DeletionTimestamp == nil
		if !isPrepared {
			return false, fmt.Errorf("labels %v, finalizers %v, taints %v; the NodeClaim has the nodeName %q", node.Labels, node.Finalizers,
				node.Spec.Taints, claims[0].Status.NodeName)
		}
		return true, nil
	})
	return node
}

// deleteWithoutFinalizers removes the finalizers of a Node and deletes the Node at once. The controller restores its
// finalizer within seconds. If the finalizer is restored before the deletion, the precondition fails, and the function
// tries again.
func deleteWithoutFinalizers(t *testing.T, l *lab.Lab, node corev1.Node) {
	t.Helper()
	nodes := l.Kube.CoreV1().Nodes()
	within(t, l, time.Minute, "Node "+node.Name+" to be deleted without finalizers", func(ctx context.Context) (bool, error) {
		patched, err := nodes.Patch(ctx, node.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			return false, err
		}
		unchanged := &metav1.Preconditions{UID: &patched.UID, ResourceVersion: &patched.ResourceVersion}
		err = nodes.Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: unchanged})
		return err == nil, err
	})
}

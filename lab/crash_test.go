package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// fullCrashVariable is the environment variable that `make crash` sets. If it is set, the controller is killed after
// every write until the end of the test. Otherwise the kills stop when the first node is ready.
const fullCrashVariable = "CRASH_FULL"

// TestKilledAfterEveryWrite kills the controller with SIGKILL after every single write to the API server or to AWS,
// before the controller gets the response.
//
// A node is launched, joins and becomes ready. Then its Node is deleted, EC2 interrupts its replacement, the pod is
// deleted, and finally pool and class are deleted. After each step exactly the expected objects exist. The controller
// never launches an additional instance.
func TestKilledAfterEveryWrite(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	name := newTestNamespace(t, l)
	s := newCrashLoop(t, l, name)
	apply(t, l,
		class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		strings.ReplaceAll(pool(name, "",
			"{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5a.large]}"), "[on-demand]", "[spot]"),
		deployment(name, "web", 1, "250m", "256Mi", "test: "+name),
	)
	s.until("the pod to run on a node", func(ctx context.Context) (bool, error) { return s.hasConverged(ctx, 1) })
	s.checkKilledAfter("iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile", "patch ec2nodeclasses", "create nodeclaims",
		"ec2:CreateLaunchTemplate", "ec2:CreateFleet", "patch nodeclaims/status", "patch nodes")
	if os.Getenv(fullCrashVariable) == "" {
		s.gate.stopClosing()
	}

	claims, _ := claimsOf(t, l, name)
	if err := l.Kube.CoreV1().Nodes().Delete(t.Context(), claims[0].Status.NodeName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until("a replacement of the deleted node", func(ctx context.Context) (bool, error) { return s.hasConverged(ctx, 2) })
	l.Emulator.Do(func(w *world.World, now time.Time) {
		for _, i := range w.Region(l.Account, l.Region).Instances.All() {
			if i.Alive() && i.Tags[karpenterv1.LabelNodePool] == name && !w.Interrupt(now, i.ID) {
				t.Errorf("%s is not a spot instance, want only spot instances", i.ID)
			}
		}
	})
	s.until("a replacement of the interrupted node", func(ctx context.Context) (bool, error) { return s.hasConverged(ctx, 3) })
	s.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.until("the last node to be deleted", func(ctx context.Context) (bool, error) {
		left, err := nodeObjects(ctx, l, name)
		return len(left) == 0, err
	})
	s.delete(&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}, &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.until("launch templates, profiles and class to be deleted, and the queue to be empty", func(ctx context.Context) (bool, error) {
		err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &awsv1.EC2NodeClass{})
		isDeleted := err != nil && client.IgnoreNotFound(err) == nil
		left := classResources(l, name)
		return isDeleted && len(left) == 0 && s.messages() == 0, nil
	})
	if n := len(instancesOf(l, name)); n != 3 {
		t.Errorf("%d instances were launched, want 3", n)
	}
	if os.Getenv(fullCrashVariable) != "" {
		s.checkKilledAfter("create pods/eviction", "ec2:TerminateInstances", "sqs:DeleteMessageBatch", "delete nodeclaims",
			"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile")
	}
	t.Logf("killed after each of %d writes:\n%s", len(s.gate.writes()), strings.Join(s.gate.writes(), "\n"))
}

// crashLoop runs controllers one after another. It kills each controller after one write, and starts the next.
type crashLoop struct {
	t        *testing.T
	lab      *lab.Lab
	name     string // name of the pool, class, namespace and queue
	gate     *writeGate
	settings []string
}

// newCrashLoop starts the first controller, which processes the messages of a queue.
func newCrashLoop(t *testing.T, l *lab.Lab, name string) *crashLoop {
	t.Helper()
	s := &crashLoop{t: t, lab: l, name: name, gate: newWriteGate(t, l)}
	l.Emulator.Do(func(w *world.World, now time.Time) {
		region := w.Region(l.Account, l.Region)
		if _, err := region.SQS.CreateQueue(now, name, map[string]string{"MessageRetentionPeriod": "300"}); err != nil {
			t.Fatal(err)
		}
		region.EventQueues = []string{name}
	})
	t.Cleanup(func() {
		l.Emulator.Do(func(w *world.World, _ time.Time) { w.Region(l.Account, l.Region).EventQueues = nil })
		killController(l) // it cannot be used by other tests, because it connects through the gate
	})
	s.settings = append(s.gate.settings, "INTERRUPTION_QUEUE="+name, "BATCH_IDLE_DURATION=100ms", "BATCH_MAX_DURATION=1s")
	restartController(t, l, s.settings...)
	return s
}

// The timeout of one step, and the maximum number of writes in all steps. A controller that repeats the same write
// after each restart would exceed the maximum.
const (
	crashStepTimeout = 6 * time.Minute
	maxCrashWrites   = 200
)

// until waits until ok returns true. When the gate closes after a write, it kills the controller and starts another
// one.
func (s *crashLoop) until(what string, ok func(context.Context) (bool, error)) {
	s.t.Helper()
	began, before := time.Now(), len(s.gate.writes())
	within(s.t, s.lab, crashStepTimeout, what, func(ctx context.Context) (bool, error) {
		select {
		case <-s.gate.closed:
			killController(s.lab)
			s.gate.open()
			if len(s.gate.writes()) > maxCrashWrites {
				s.t.Fatalf("%d writes, want at most %d; the last are %v", len(s.gate.writes()), maxCrashWrites, s.gate.writes()[maxCrashWrites-20:])
			}
			restartController(s.t, s.lab, s.settings...)
			return false, nil
		default:
			return ok(ctx)
		}
	})
	s.t.Logf("%s took %.1f s and %d kills", what, time.Since(began).Seconds(), len(s.gate.writes())-before)
}

// hasConverged reports whether the pool has exactly one instance, one NodeClaim and one Node, and the pod runs on this
// Node. All must be ready and have their finalizers, and no deletion timestamp. launched is the number of instances
// that must have been launched since the start of the test.
func (s *crashLoop) hasConverged(ctx context.Context, launched int) (bool, error) {
	all := instancesOf(s.lab, s.name)
	if len(all) > launched {
		s.t.Fatalf("%d instances were launched, want %d\n%s", len(all), launched, s.lab.Evidence(ctx))
	}
	alive := slices.DeleteFunc(slices.Clone(all), func(i world.Instance) bool { return !i.Alive() })
	claims, providerIDs := claimsOf(s.t, s.lab, s.name)
	if len(claims) != 1 || len(alive) != 1 || len(all) != launched || !providerIDs["aws:///"+alive[0].Zone+"/"+alive[0].ID] {
		return false, fmt.Errorf("%d NodeClaims, %d of %d instances alive; want 1 and 1 of %d", len(claims), len(alive), len(all), launched)
	}
	var nodes corev1.NodeList
	if err := s.lab.Client.List(ctx, &nodes, client.MatchingLabels{karpenterv1.LabelNodePool: s.name}); err != nil || len(nodes.Items) != 1 {
		return false, errors.Join(err, fmt.Errorf("%d nodes, want 1", len(nodes.Items)))
	}
	var pods corev1.PodList
	if err := s.lab.Client.List(ctx, &pods, client.InNamespace(s.name)); err != nil || len(pods.Items) != 1 {
		return false, errors.Join(err, fmt.Errorf("%d pods, want 1", len(pods.Items)))
	}
	claim, node, pod := claims[0], nodes.Items[0], pods.Items[0]
	isReady := slices.ContainsFunc(claim.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == karpenterv1.ConditionReady && c.Status == metav1.ConditionTrue
	})
	isTainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, "karpenter.sh/") })
	return isReady && !isTainted && claim.DeletionTimestamp == nil && node.DeletionTimestamp == nil &&
		slices.Contains(claim.Finalizers, karpenterv1.FinalizerTermination) &&
		slices.Contains(node.Finalizers, karpenterv1.FinalizerTermination) &&
		pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName == node.Name, nil
}

// checkKilledAfter fails the test if the controller was not killed after each of these writes.
func (s *crashLoop) checkKilledAfter(writes ...string) {
	s.t.Helper()
	for _, name := range writes {
		if !slices.Contains(s.gate.writes(), name) {
			s.t.Errorf("the controller was not killed after %s; only after %v", name, s.gate.writes())
		}
	}
}

func (s *crashLoop) delete(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.lab.Client.Delete(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

// messages returns the number of messages in the queue, including messages that are in flight.
func (s *crashLoop) messages() int {
	n := 0
	s.lab.Emulator.Do(func(w *world.World, now time.Time) {
		if q, err := w.Region(s.lab.Account, s.lab.Region).SQS.Queue(s.name); err == nil {
			visible, hidden := q.Count(now)
			n = visible + hidden
		}
	})
	return n
}

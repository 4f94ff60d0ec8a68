package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// Size of each of the two clusters in TestTwoClustersWithOneName. Four pods fill a node.
const (
	twinNodes = 6
	twinPods  = 4 * twinNodes
)

// TestTwoClustersWithOneName tests user report case-3 with both clusters. Two clusters in one account have the same
// name and the same manifests, with drift and consolidation. The policies allow either controller to terminate the
// nodes of both clusters.
//
//  1. The test moves the tags by which both clusters find their security group and subnets. All nodes of both clusters
//     drift at once, and each pool reports that it waits for the user's decision.
//  2. The test halves the pods of both clusters, and they consolidate. Each pool still waits, with its remaining nodes.
//  3. The test moves the tags back. Then nothing drifts, and all pods of both clusters run.
//
// Neither controller ever asks AWS to change a resource of the other cluster. A node is removed only by
// the consolidation of its own cluster.
func TestTwoClustersWithOneName(t *testing.T) {
	first := parallelLab(t, lab.Options{AnyUID: true})
	second := newLab(t, lab.Options{Beside: first, AnyUID: true})
	twins := []*twin{newTwin(t, first), newTwin(t, second)}
	calls := recordCalls(first, twins)
	for _, w := range twins {
		w.start(t)
	}
	for i, w := range twins {
		w.awaitAllNodes(t)
		awaitPoolEvent(t, w.l, w.name, "NamesakeSeen", "its uid is "+twins[1-i].uid)
	}

	group, undo := moveTags(t, first)
	for _, w := range twins {
		w.awaitHeldDrift(t, fmt.Sprintf("%d of %d nodes drift at once", twinNodes, twinNodes),
			fmt.Sprintf("SecurityGroupDrift of %d", twinNodes), "it lacks "+group)
		awaitPoolEvent(t, w.l, w.name, "DriftHeld", group)
	}
	for _, w := range twins {
		w.allowConsolidation(true)
		scaleAll(t, w.l, w.name, twinPods/2)
	}
	for _, w := range twins {
		w.awaitHalfOfNodes(t)
		w.awaitHeldDrift(t, fmt.Sprintf("%d of %d nodes drift at once", twinNodes/2, twinNodes/2), group)
	}
	for _, w := range twins {
		w.allowConsolidation(false)
		w.awaitRechecks(t, calls)
	}
	for _, w := range twins {
		w.allowHoldToEnd() // for both clusters before the undo, which changes the tags of both
	}
	undo(t)
	for _, w := range twins {
		w.awaitNoDrift(t)
		awaitRunning(t, w.l, w.name, twinPods/2, time.Minute)
		w.check(t)
	}
	calls.check(t)
}

// resultOf converts a condition into the results that within wants: ok, and an error with the given text if ok is
// false.
func resultOf(ok bool, format string, args ...any) (bool, error) {
	if ok {
		return true, nil
	}
	return false, fmt.Errorf(format, args...)
}

// start starts the cluster's controller, and creates a pool and pods for twinNodes nodes.
func (w *twin) start(t *testing.T) {
	t.Helper()
	restartController(t, w.l, "SUBNET_REFRESH_INTERVAL=1s", "AMI_REFRESH_INTERVAL=1s")
	p := strings.Replace(pool(w.name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
		"consolidationPolicy: WhenEmpty, consolidateAfter: 1s", "consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5s", 1)
	apply(t, w.l, class(w.l, w.name, "amiFamily: AL2\n  amiSelectorTerms: [{id: "+w.l.AL2Image+"}]"), p,
		deployment(w.name, w.name, twinPods, "400m", "256Mi", "test: "+w.name))
}

// awaitAllNodes waits until all pods run, and twinNodes claims are ready and have their NodePool's hash.
func (w *twin) awaitAllNodes(t *testing.T) {
	t.Helper()
	awaitRunning(t, w.l, w.name, twinPods, 3*time.Minute)
	within(t, w.l, time.Minute, "the claims to be ready and to have their hashes", func(context.Context) (bool, error) {
		claims := claimsNow(t, w.l, w.name)
		isIncomplete := func(c karpenterv1.NodeClaim) bool {
			return !c.StatusConditions().IsReady() || c.Annotations[karpenterv1.AnnotationNodePoolHash] == ""
		}
		return resultOf(len(claims) == twinNodes && !slices.ContainsFunc(claims, isIncomplete), "%d claims", len(claims))
	})
}

// awaitHeldDrift waits until the pool reports, with the given words, that a mass drift waits for the user's decision.
func (w *twin) awaitHeldDrift(t *testing.T, words ...string) {
	t.Helper()
	words = append(words, karpenterv1.ReasonMassDriftHeld, "kubectl annotate nodepool "+w.name+" joiner.sh/drift-allow=")
	within(t, w.l, 2*time.Minute, "the pool to report "+words[0], func(context.Context) (bool, error) {
		message, _ := w.heldDrift(t)
		lacks := func(word string) bool { return !strings.Contains(message, word) }
		return resultOf(!slices.ContainsFunc(words, lacks), "the pool reports %q", message)
	})
}

// awaitHalfOfNodes waits until the remaining pods run on half of the nodes, and the other nodes are removed.
func (w *twin) awaitHalfOfNodes(t *testing.T) {
	t.Helper()
	awaitRunning(t, w.l, w.name, twinPods/2, time.Minute)
	within(t, w.l, 2*time.Minute, fmt.Sprintf("%d nodes to be left", twinNodes/2), func(context.Context) (bool, error) {
		claims, nodes, instances := len(claimsNow(t, w.l, w.name)), w.nodesNow(), w.instances()
		// The running pods need at least this number.
		return resultOf(max(claims, nodes, instances) == twinNodes/2, "%d claims, %d nodes, %d instances", claims, nodes, instances)
	})
	awaitRunning(t, w.l, w.name, twinPods/2, time.Minute)
}

// extraScans is the number of scans of the security groups during which the controller must start nothing. The
// controller scans once per second, and checks for drift every five seconds.
const extraScans = 15

// awaitRechecks waits until the controller has scanned the security groups extraScans more times, and so has checked
// for drift several times. twin.check later reports what the controller started in that time.
func (w *twin) awaitRechecks(t *testing.T, calls *recordedCalls) {
	t.Helper()
	before := calls.scansOf(w.l.Role)
	within(t, w.l, time.Minute, "more scans of the controller", func(context.Context) (bool, error) {
		return calls.scansOf(w.l.Role) >= before+extraScans, nil
	})
}

// awaitNoDrift waits until no claim drifts, and the pool reports no held drift.
func (w *twin) awaitNoDrift(t *testing.T) {
	t.Helper()
	within(t, w.l, 2*time.Minute, "no more drift", func(context.Context) (bool, error) {
		message, isHeld := w.heldDrift(t)
		drifts := func(c karpenterv1.NodeClaim) bool { return c.StatusConditions().IsTrue(karpenterv1.ConditionDrifted) }
		return resultOf(!isHeld && !slices.ContainsFunc(claimsNow(t, w.l, w.name), drifts), "the pool reports %q", message)
	})
}

// heldDrift returns the pool's reason and message about held drift. isHeld is false if the pool does not have the
// condition DriftHeld.
func (w *twin) heldDrift(t *testing.T) (message string, isHeld bool) {
	t.Helper()
	var p karpenterv1.NodePool
	if err := w.l.Client.Get(t.Context(), client.ObjectKey{Name: w.name}, &p); err != nil {
		t.Fatal(err)
	}
	c, ok := p.StatusConditions().Find(karpenterv1.ConditionDriftHeld)
	return c.Reason + ": " + c.Message, ok
}

func claimsNow(t *testing.T, l *lab.Lab, pool string) []karpenterv1.NodeClaim {
	t.Helper()
	claims, _ := claimsOf(t, l, pool)
	return claims
}

// discovery is the tag by which both clusters find their subnets and security groups.
const discovery = "karpenter.sh/discovery"

// moveTags moves the tag from the nodes' security group to another one, and removes it from one subnet. It returns the
// group that now has the tag, and a function that undoes the change.
func moveTags(t *testing.T, l *lab.Lab) (group string, undo func(*testing.T)) {
	t.Helper()
	tag, keys, r := map[string]string{discovery: l.Cluster}, []string{discovery}, l.Estate.Region
	nodes, subnet := l.Estate.NodeSG.ID, l.Estate.PrivateSubnets[0].ID
	change := func(t *testing.T, add, remove []string) {
		t.Helper()
		l.Emulator.Do(func(_ *world.World, now time.Time) {
			if err := r.Tag(now, add, tag, nil); err != nil {
				t.Error(err)
			}
			if err := r.Tag(now, remove, nil, keys); err != nil {
				t.Error(err)
			}
		})
	}
	l.Emulator.Do(func(*world.World, time.Time) {
		g, err := r.Network.CreateSecurityGroup(l.Estate.VPC.ID, "theirs", "of a third party", nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Egress, g.Ingress = l.Estate.NodeSG.Egress, l.Estate.NodeSG.Ingress
		group = g.ID
	})
	change(t, []string{group}, []string{nodes, subnet})
	return group, func(t *testing.T) { change(t, []string{nodes, subnet}, []string{group}) }
}

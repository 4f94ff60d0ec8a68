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

// Size of each of the two clusters in TestCaseSameNameWhole. Four pods fill a node.
const (
	twinNodes = 6
	twinPods  = 4 * twinNodes
)

// TestCaseSameNameWhole plays case-3 with both clusters: two control planes with one name in one account, with the same
// manifests, drift and consolidation enabled, and policies that allow either controller to terminate the nodes of both.
// The tags by which both find their security group and subnets are moved, so that all nodes of both drift at once, and
// each pool reports that it waits for the user's decision. Both are scaled down by half and consolidate, and still
// wait, however few nodes are left. When the tags are moved back, nothing drifts. During all that time neither
// controller asks AWS to change anything of the other's, nodes are only removed by their own cluster's consolidation,
// and in the end all pods of both run.
func TestCaseSameNameWhole(t *testing.T) {
	first := beside(t, lab.Options{AnyUID: true})
	second := own(t, lab.Options{Beside: first, AnyUID: true})
	twins := []*twin{newTwin(t, first), newTwin(t, second)}
	asked := hear(first, twins)
	for _, w := range twins {
		w.moveIn(t)
	}
	for i, w := range twins {
		w.full(t)
		poolReports(t, w.l, w.name, "NamesakeSeen", "its uid is "+twins[1-i].uid)
	}

	group, undo := moveTags(t, first)
	for _, w := range twins {
		w.waits(t, fmt.Sprintf("%d of %d nodes drift at once", twinNodes, twinNodes),
			fmt.Sprintf("SecurityGroupDrift of %d", twinNodes), "it lacks "+group)
		poolReports(t, w.l, w.name, "DriftHeld", group)
	}
	for _, w := range twins {
		w.mayGo(true)
		scaleAll(t, w.l, w.name, twinPods/2)
	}
	for _, w := range twins {
		w.half(t)
		w.waits(t, fmt.Sprintf("%d of %d nodes drift at once", twinNodes/2, twinNodes/2), group)
	}
	for _, w := range twins {
		w.mayGo(false)
		w.rechecks(t, asked)
	}
	for _, w := range twins {
		w.mayEnd() // both at once, because they share the account's tags
	}
	undo(t)
	for _, w := range twins {
		w.isConverged(t)
		allRun(t, w.l, w.name, twinPods/2, time.Minute)
		w.judge(t)
	}
	asked.judge(t)
}

// when returns the results of a condition for within: whether it holds, and an error with the actual state if not.
func when(ok bool, format string, args ...any) (bool, error) {
	if ok {
		return true, nil
	}
	return false, fmt.Errorf(format, args...)
}

// moveIn starts the cluster's controller and gives it work for twinNodes nodes.
func (w *twin) moveIn(t *testing.T) {
	t.Helper()
	restart(t, w.l, "SUBNET_REFRESH_INTERVAL=1s", "AMI_REFRESH_INTERVAL=1s")
	p := strings.Replace(pool(w.name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"),
		"consolidationPolicy: WhenEmpty, consolidateAfter: 1s", "consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5s", 1)
	apply(t, w.l, class(w.l, w.name, "amiFamily: AL2\n  amiSelectorTerms: [{id: "+w.l.AL2Image+"}]"), p,
		deployment(w.name, w.name, twinPods, "400m", "256Mi", "test: "+w.name))
}

// full waits until all pods run on ready nodes whose claims have their NodePool's hash.
func (w *twin) full(t *testing.T) {
	t.Helper()
	allRun(t, w.l, w.name, twinPods, 3*time.Minute)
	within(t, w.l, time.Minute, "the nodes to be ready, with hashes", func(context.Context) (bool, error) {
		claims := claimsNow(t, w.l, w.name)
		unfit := func(c karpenterv1.NodeClaim) bool {
			return !c.StatusConditions().IsReady() || c.Annotations[karpenterv1.AnnotationNodePoolHash] == ""
		}
		return when(len(claims) == twinNodes && !slices.ContainsFunc(claims, unfit), "%d claims", len(claims))
	})
}

// waits waits until the pool reports, with the given words, that a mass drift waits for the user's decision.
func (w *twin) waits(t *testing.T, words ...string) {
	t.Helper()
	words = append(words, karpenterv1.ReasonMassDriftHeld, "kubectl annotate nodepool "+w.name+" joiner.sh/drift-allow=")
	within(t, w.l, 2*time.Minute, "the pool to report "+words[0], func(context.Context) (bool, error) {
		says, _ := w.held(t)
		lacks := func(word string) bool { return !strings.Contains(says, word) }
		return when(!slices.ContainsFunc(words, lacks), "it says %q", says)
	})
}

// half waits until the remaining pods run on half of the nodes, and nothing moves.
func (w *twin) half(t *testing.T) {
	t.Helper()
	allRun(t, w.l, w.name, twinPods/2, time.Minute)
	within(t, w.l, 2*time.Minute, fmt.Sprintf("%d nodes to be left", twinNodes/2), func(context.Context) (bool, error) {
		claims, nodes, instances := len(claimsNow(t, w.l, w.name)), w.nodesNow(), w.instances()
		return when(max(claims, nodes, instances) == twinNodes/2, "%d claims, %d nodes, %d instances", claims, nodes, instances)
	})
	allRun(t, w.l, w.name, twinPods/2, time.Minute)
}

// extraScans is the number of scans of the security groups, one per second, during which nothing may happen. The
// controller checks for drift every five seconds.
const extraScans = 15

// rechecks waits until the controller has scanned its class, and so checked for drift, extraScans more times. judge
// checks what it started.
func (w *twin) rechecks(t *testing.T, asked *askings) {
	t.Helper()
	began := asked.scansOf(w.l.Role)
	within(t, w.l, time.Minute, "more scans of the controller", func(context.Context) (bool, error) {
		return asked.scansOf(w.l.Role) >= began+extraScans, nil
	})
}

// isConverged waits until nothing drifts and nothing is held.
func (w *twin) isConverged(t *testing.T) {
	t.Helper()
	within(t, w.l, 2*time.Minute, "no more drift", func(context.Context) (bool, error) {
		says, isHeld := w.held(t)
		drifts := func(c karpenterv1.NodeClaim) bool { return c.StatusConditions().IsTrue(karpenterv1.ConditionDrifted) }
		return when(!isHeld && !slices.ContainsFunc(claimsNow(t, w.l, w.name), drifts), "the pool says %q", says)
	})
}

// held returns the pool's message about held drift.
func (w *twin) held(t *testing.T) (says string, isHeld bool) {
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
// group that has the tag then, and a function that undoes the change.
func moveTags(t *testing.T, l *lab.Lab) (group string, undo func(*testing.T)) {
	t.Helper()
	mine, gone, r := map[string]string{discovery: l.Cluster}, []string{discovery}, l.Estate.Region
	nodes, subnet := l.Estate.NodeGroup.ID, l.Estate.PrivateSubnets[0].ID
	change := func(t *testing.T, tagged, bare []string) {
		t.Helper()
		l.Emulator.Do(func(_ *world.World, now time.Time) {
			if err := r.Tag(now, tagged, mine, nil); err != nil {
				t.Error(err)
			}
			if err := r.Tag(now, bare, nil, gone); err != nil {
				t.Error(err)
			}
		})
	}
	l.Emulator.Do(func(*world.World, time.Time) {
		g, err := r.Network.CreateSecurityGroup(l.Estate.VPC.ID, "theirs", "of a third party", nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Egress, g.Ingress = l.Estate.NodeGroup.Egress, l.Estate.NodeGroup.Ingress
		group = g.ID
	})
	change(t, []string{group}, []string{nodes, subnet})
	return group, func(t *testing.T) { change(t, []string{nodes, subnet}, []string{group}) }
}

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/driftcheck"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/emulator/world"
)

const nodesPerCluster = 6 // one node for each pod

// TestTagChangeInTwoClusters runs the controllers of two clusters with the same name in one account. Both select
// security groups by the same tag. When the tag is added to one more group, all nodes of both clusters drift at once.
// Then the user of one cluster allows the drift there, and only the nodes of this cluster are replaced. Neither
// controller changes resources of the other cluster, and both still launch nodes.
func TestTagChangeInTwoClusters(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the table that the synctest bubbles share
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		a := &rig{uid: testUID, url: "http://aws.example"}
		a.createWorld(t, []string{"t3.medium"})
		b := &rig{uid: otherUID, url: a.url, Server: a.Server, estate: a.estate}
		first, second := &sameNameRig{rig: a, other: otherUID}, &sameNameRig{rig: b, other: testUID}
		both := []*sameNameRig{first, second}
		for _, n := range both {
			n.startController(t)
			n.editPool(t, func(p *karpv1.NodePool) {
				p.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeOnDemand}
				p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
			})
			n.wanted = nodesPerCluster
		}
		a.connectEventBridge()
		simulateMinutes(t, 6, both...)
		before := [][]string{first.ownInstances(), second.ownInstances()}
		for i, n := range both {
			if len(before[i]) != nodesPerCluster {
				t.Fatalf("%s has %d nodes, want %d\n%s", n.uid, len(before[i]), nodesPerCluster, n.tail())
			}
		}

		group := a.addTaggedGroup(t, "theirs")
		simulateMinutes(t, 10, both...)
		for i, n := range both {
			message := n.poolMessage(t, karpv1.ConditionDriftHeld)
			if len(n.conditionTexts(t, karpv1.ConditionDrifted)) != nodesPerCluster || !strings.Contains(message, "6 of 6 nodes drift at once") ||
				!strings.Contains(message, group) {
				t.Errorf("the pool of %s has the condition DriftHeld %q, want the group in it; %v drift, want all",
					n.uid, message, n.conditionTexts(t, karpv1.ConditionDrifted))
			}
			if current := n.ownInstances(); !slices.Equal(current, before[i]) {
				t.Fatalf("%s has replaced nodes without approval: %v, now %v\n%s", n.uid, before[i], current, n.tail())
			}
		}

		// The condition has the command that allows the drift: kubectl annotate … joiner.sh/…=TOKEN …
		_, command, _ := strings.Cut(first.poolMessage(t, karpv1.ConditionDriftHeld), nodestate.AnnotationDriftAllow+"=")
		token, _, _ := strings.Cut(command, " ")
		first.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, nodestate.AnnotationDriftAllow, token) })
		simulateMinutes(t, 30, both...)
		if old := slices.DeleteFunc(first.ownInstances(),
			func(id string) bool { return !slices.Contains(before[0], id) }); len(old) > 0 || len(first.ownInstances()) != nodesPerCluster {
			t.Errorf("%s, whose user allowed the drift, has the old instances %v, want none; of %d instances, want 6\n%s",
				first.uid, old, len(first.ownInstances()), first.tail())
		}
		if current := second.ownInstances(); !slices.Equal(current, before[1]) || second.poolMessage(t, karpv1.ConditionDriftHeld) == "" {
			t.Errorf("%s, whose user has not allowed the drift, had the instances %v and has %v\n%s", second.uid, before[1], current, second.tail())
		}

		second.wanted++ // the second controller may launch, although its nodes are drifted
		simulateMinutes(t, 4, both...)
		if current := second.ownInstances(); len(current) != nodesPerCluster+1 ||
			slices.ContainsFunc(before[1], func(id string) bool { return !slices.Contains(current, id) }) {
			t.Errorf("with one more pod, %s has the instances %v; before it had %v\n%s", second.uid, current, before[1], second.tail())
		}
		a.Do(func(_ *world.World, now time.Time) {
			if err := a.estate.Region.Tag(now, []string{group}, nil, []string{"karpenter.sh/discovery"}); err != nil {
				t.Error(err)
			}
		})
		simulateMinutes(t, 4, second)
		if message := second.poolMessage(t, karpv1.ConditionDriftHeld); message != "" {
			t.Errorf("without the tag, the pool of %s has the condition DriftHeld %q, want none", second.uid, message)
		}
	})
}

// simulateMinutes simulates the given number of minutes of the clusters, and checks that neither controller changes
// resources of the other cluster.
func simulateMinutes(t *testing.T, minutes int, all ...*sameNameRig) {
	t.Helper()
	for minute := range minutes {
		for _, n := range all {
			n.checkOtherUnchanged(t, minute, func() { n.simulateDriftMinute(t) })
		}
		time.Sleep(time.Minute)
	}
}

// simulateDriftMinute simulates one minute of a cluster, with drift and consolidation. It creates pods until n.wanted
// exist.
func (n *sameNameRig) simulateDriftMinute(t *testing.T) {
	t.Helper()
	for count := len(n.allPods(t)); count < n.wanted; count++ {
		n.created++
		n.addPendingPod(t, fmt.Sprintf("web-%d", n.created), "1500m", "512Mi")
	}
	n.reconcileClassAndPool(t)
	n.runLoops(t)
	_ = n.Drift.Pass(t.Context(), n.now()) // after a conflict, the next pass reads the object again
	n.Moves.Drift, n.Moves.Scans.Next = n.Drift, time.Time{}
	if err := n.Moves.Search(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n.plan(t)
		n.currentMinute = 0
		n.reconcileDueClaims(t)
		n.join(t)
		n.reconcileDueClaims(t)
		if err := n.Moves.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n.schedule(t)
}

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

// tenants is how many nodes each cluster in TestNamesakesWhoseTagsChange has, one for each pod.
const tenants = 6

// TestNamesakesWhoseTagsChange runs two controllers with the same cluster name in one account, with drift and consolidation
// enabled and with security groups that both select by the same tag. When the tag is added to one more group, all nodes of both
// drift at once. None is replaced until the user of one cluster allows it there. Neither changes resources of the other, and both
// keep working.
func TestNamesakesWhoseTagsChange(t *testing.T) {
	t.Parallel()
	embedded(t) // loads the embedded table before the synctest bubbles, which share it
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)))
		a := &rig{uid: testUID, url: "http://aws.example"}
		a.furnish(t, []string{"t3.medium"})
		b := &rig{uid: otherUID, url: a.url, Server: a.Server, estate: a.estate}
		one, two := &neighbour{rig: a, other: otherUID}, &neighbour{rig: b, other: testUID}
		both := []*neighbour{one, two}
		for _, n := range both {
			n.moveIn(t)
			n.editPool(t, func(p *karpv1.NodePool) {
				p.Spec.Template.Spec.Requirements[0].Values = []string{karpv1.CapacityTypeOnDemand}
				p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
			})
			n.pods = tenants
		}
		a.announced()
		live(t, 6, both...)
		before := [][]string{one.alive(), two.alive()}
		for i, n := range both {
			if len(before[i]) != tenants {
				t.Fatalf("%s has %d nodes, want %d\n%s", n.uid, len(before[i]), tenants, n.tail())
			}
		}

		group := a.tagGroup(t)
		live(t, 10, both...)
		for i, n := range both {
			says := n.saysOf(t, karpv1.ConditionDriftHeld)
			if len(n.drifted(t, karpv1.ConditionDrifted)) != tenants || !strings.Contains(says, "6 of 6 nodes drift at once") ||
				!strings.Contains(says, group) {
				t.Errorf("%s says %q, and %v drift", n.uid, says, n.drifted(t, karpv1.ConditionDrifted))
			}
			if now := n.alive(); !slices.Equal(now, before[i]) {
				t.Fatalf("%s has replaced nodes without approval: %v, now %v\n%s", n.uid, before[i], now, n.tail())
			}
		}

		_, command, _ := strings.Cut(one.saysOf(t, karpv1.ConditionDriftHeld), nodestate.AnnotationDriftAllow+"=")
		token, _, _ := strings.Cut(command, " ")
		one.editPool(t, func(p *karpv1.NodePool) { driftcheck.Annotate(p, nodestate.AnnotationDriftAllow, token) })
		live(t, 30, both...)
		if left := slices.DeleteFunc(one.alive(),
			func(id string) bool { return !slices.Contains(before[0], id) }); len(left) > 0 || len(one.alive()) != tenants {
			t.Errorf("%s, whose user has allowed it, still has %v of the old nodes; it has %d nodes\n%s",
				one.uid, left, len(one.alive()), one.tail())
		}
		if now := two.alive(); !slices.Equal(now, before[1]) || two.saysOf(t, karpv1.ConditionDriftHeld) == "" {
			t.Errorf("%s, whose user has not allowed it, had %v and has %v\n%s", two.uid, before[1], now, two.tail())
		}

		two.pods++ // both keep working: it may launch, although its nodes are drifted
		live(t, 4, both...)
		if now := two.alive(); len(now) != tenants+1 ||
			slices.ContainsFunc(before[1], func(id string) bool { return !slices.Contains(now, id) }) {
			t.Errorf("with one more pod, %s has %v, before it had %v\n%s", two.uid, now, before[1], two.tail())
		}
		a.Do(func(_ *world.World, now time.Time) {
			if err := a.estate.Region.Tag(now, []string{group}, nil, []string{"karpenter.sh/discovery"}); err != nil {
				t.Error(err)
			}
		})
		live(t, 4, two)
		if says := two.saysOf(t, karpv1.ConditionDriftHeld); says != "" {
			t.Errorf("without the tag, %s has the condition %q", two.uid, says)
		}
	})
}

// live simulates the given number of minutes with all loops of both clusters, and checks that neither changes resources of the other.
func live(t *testing.T, minutes int, all ...*neighbour) {
	t.Helper()
	for minute := range minutes {
		for _, n := range all {
			n.leaveInPeace(t, minute, func() { n.busy(t) })
		}
		time.Sleep(time.Minute)
	}
}

// busy simulates a minute of a cluster whose nodes are replaced, and whose number of pods is kept.
func (n *neighbour) busy(t *testing.T) {
	t.Helper()
	for there := len(n.all(t)); there < n.pods; there++ {
		n.stirred++
		n.pending(t, fmt.Sprintf("web-%d", n.stirred), "1500m", "512Mi")
	}
	n.classes(t)
	n.loops(t)
	_ = n.Drift.Pass(t.Context(), n.now()) // after a conflict it reads the object again in the next pass
	n.Moves.Drift, n.Moves.Search.Next = n.Drift, time.Time{}
	if err := n.Moves.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n.plan(t)
		n.minutes = 0
		n.visit(t)
		n.join(t)
		n.visit(t)
		if err := n.Moves.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n.schedule(t)
}

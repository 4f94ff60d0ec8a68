package packing_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

// TestDaemonPodWorlds plans for random snapshots with affinity and anti-affinity between pods and
// DaemonSet pods. The snapshots are the same in every run.
func TestDaemonPodWorlds(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) world {
		s, market := drawSnapshot(t), drawMarket(t)
		s.Daemons = append(s.Daemons, cluster.Daemon{Namespace: "agents", Name: "agent"})
		if rapid.Bool().Draw(t, "only on arm64") {
			s.Daemons[len(s.Daemons)-1].Required = []requirements.Requirements{{catalog.LabelArch: requirements.OneOf("arm64")}}
		}
		drawDaemonPods(t, &s)
		return world{s, market}
	})
	placed := 0
	for number := range *worlds / 2 {
		w := draw.Example(number)
		plan := packing.Solve(w.Snapshot, w.Market, packing.DefaultEffort)
		placed += len(w.Pods) - len(plan.Refusals)
		if broken := verify.Check(w.Snapshot, w.Market, plan); len(broken) > 0 {
			text := scenario.Scenario{Story: "broken", Snapshot: w.Snapshot, Market: w.Market}.String()
			t.Errorf("world %d: %s\n%s%s", number, strings.Join(broken, "\n"), text, scenario.PlanText(plan))
		}
	}
	if placed < *worlds/2 {
		t.Errorf("%d pods are placed in %d worlds, want at least one per world", placed, *worlds/2)
	}
}

// drawDaemonPods gives labels and rules to DaemonSet pods and pending pods, and adds DaemonSet pods to nodes.
func drawDaemonPods(t *rapid.T, s *cluster.Snapshot) {
	termFor := func(app string) cluster.Term {
		return cluster.Term{
			Key: "kubernetes.io/hostname", AllNamespaces: true,
			Selector: cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(app)}},
		}
	}
	agents := []string{"agent-0", "agent-1"}
	for i := range s.Daemons {
		k := &cluster.PodKind{Namespace: s.Daemons[i].Namespace, Labels: requirements.Labels{"app": rapid.SampledFrom(agents).Draw(t, "agent")}}
		if rapid.IntRange(0, 3).Draw(t, "avoids") == 0 {
			k.RequiredAntiAffinity = []cluster.Term{termFor(rapid.SampledFrom(appNames).Draw(t, "app"))}
		}
		s.Daemons[i].Kind = k
	}
	for i := range s.Nodes {
		for j := range s.Daemons {
			if rapid.Bool().Draw(t, "resident") {
				s.Nodes[i].Residents = append(s.Nodes[i].Residents, cluster.Resident{PodKind: s.Daemons[j].Kind, Count: 1})
			}
		}
	}
	var workloadPod cluster.Pod
	workload := ""
	for i := range s.Pods {
		p := &s.Pods[i]
		if name := p.Name[:len("app-0")]; name != workload {
			workload, workloadPod = name, cluster.Pod{Labels: requirements.Labels{"app": rapid.SampledFrom(appNames).Draw(t, "app")}}
			term := termFor(rapid.SampledFrom(agents).Draw(t, "agent"))
			switch rapid.IntRange(0, 4).Draw(t, "rule") {
			case 0:
				workloadPod.Affinity = []cluster.Term{term}
			case 1:
				term.Key = catalog.LabelZone
				workloadPod.Affinity = []cluster.Term{term}
			case 2:
				workloadPod.AntiAffinity = []cluster.Term{term}
			}
		}
		p.Labels, p.Affinity, p.AntiAffinity = workloadPod.Labels, workloadPod.Affinity, workloadPod.AntiAffinity
	}
}

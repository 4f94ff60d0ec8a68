package packing_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

var worlds = flag.Int("worlds", 1500, "number of random snapshots of TestTopologyWorlds; other tests use a fraction of it")

type world struct {
	cluster.Snapshot
	catalog.Market
}

// TestTopologyWorlds plans for random snapshots of pods with topology rules and volumes, beside
// existing pods. The snapshots are the same in every run.
func TestTopologyWorlds(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) world {
		s, market := drawSnapshot(t), drawMarket(t)
		drawTopology(t, &s)
		drawVolumes(t, &s, market)
		return world{s, market}
	})
	for number := range *worlds {
		w := draw.Example(number)
		plan := packing.Solve(w.Snapshot, w.Market, packing.DefaultEffort)
		broken := verify.Check(w.Snapshot, w.Market, plan)
		again := packing.Solve(shuffle(w.Snapshot), shuffleMarket(w.Market), packing.DefaultEffort)
		if diff := cmp.Diff(plan, again, cmpopts.EquateEmpty()); diff != "" {
			broken = append(broken, "the order of the input changes the plan:\n"+diff)
		}
		if len(broken) > 0 {
			text := scenario.Scenario{Story: "broken", Snapshot: w.Snapshot, Market: w.Market}.String()
			t.Errorf("world %d: %s\n%s%s", number, strings.Join(broken, "\n"), text, scenario.PlanText(plan))
		}
	}
}

const ebsVolumes = "attachable-volumes-csi-ebs.csi.aws.com"

var appNames = []string{"web", "db", "cache"}

// drawTopology gives labels and rules to the pods, the same to all pods of a workload, and adds existing pods to the
// nodes. Some pending pods move from nodes that are being drained.
func drawTopology(t *rapid.T, s *cluster.Snapshot) {
	drawNamespace := func() string { return rapid.SampledFrom([]string{"default", "default", "other"}).Draw(t, "namespace") }
	var workloadPod cluster.Pod
	workload := ""
	for i := range s.Pods {
		p := &s.Pods[i]
		if name := p.Name[:len("app-0")]; name != workload { // drawSnapshot names the pods app-0-1, app-0-2 and so on
			workload = name
			workloadPod = cluster.Pod{
				Namespace: drawNamespace(), Labels: requirements.Labels{"app": rapid.SampledFrom(appNames).Draw(t, "app")},
				Spread: drawSpreads(t), Affinity: drawTerms(t, "affinity"), AntiAffinity: drawTerms(t, "antiAffinity"),
			}
		}
		p.Namespace, p.Labels, p.Owner = workloadPod.Namespace, workloadPod.Labels, "ReplicaSet/"+workload
		p.Spread, p.Affinity, p.AntiAffinity = workloadPod.Spread, workloadPod.Affinity, workloadPod.AntiAffinity
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Labels["kubernetes.io/hostname"] = n.Name
		for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "residents") {
			k := &cluster.PodKind{
				Namespace: drawNamespace(), Labels: requirements.Labels{"app": rapid.SampledFrom(appNames).Draw(t, "app")},
				Terminating: rapid.IntRange(0, 5).Draw(t, "ending") == 0,
			}
			for _, term := range drawTerms(t, "avoids") {
				if term.Weight == 0 {
					k.RequiredAntiAffinity = append(k.RequiredAntiAffinity, term)
				}
			}
			n.Residents = append(n.Residents, cluster.Resident{PodKind: k, Count: rapid.IntRange(1, 3).Draw(t, "count")})
		}
		if n.Leaving && len(s.Pods) > 0 && rapid.Bool().Draw(t, "moves") {
			s.Pods[rapid.IntRange(0, len(s.Pods)-1).Draw(t, "moving pod")].Node = n.Name
		}
	}
	slices.SortFunc(s.Pods, func(a, b cluster.Pod) int { return strings.Compare(a.ID(), b.ID()) })
}

func drawKey(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		catalog.LabelZone, catalog.LabelZone, "kubernetes.io/hostname", "kubernetes.io/hostname", catalog.LabelCapacityType, "team",
	}).Draw(t, "topologyKey")
}

func drawSelector(t *rapid.T) cluster.Selector {
	switch rapid.IntRange(0, 9).Draw(t, "selector") {
	case 0:
		return cluster.Selector{MatchesNothing: true}
	case 1:
		return cluster.Selector{}
	case 2:
		return cluster.Selector{Labels: requirements.Requirements{"app": requirements.NoneOf(rapid.SampledFrom(appNames).Draw(t, "app"))}}
	}
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(rapid.SampledFrom(appNames).Draw(t, "app"))}}
}

func drawSpreads(t *rapid.T) []cluster.Spread {
	var out []cluster.Spread
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "spreads") {
		out = append(out, cluster.Spread{
			Key: drawKey(t), MaxSkew: rapid.IntRange(1, 3).Draw(t, "maxSkew"), Selector: drawSelector(t),
			MinDomains:          rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "minDomains"),
			Soft:                rapid.IntRange(0, 3).Draw(t, "soft") == 0,
			IgnoresNodeAffinity: rapid.IntRange(0, 3).Draw(t, "anyNode") == 0,
			HonorTaints:         rapid.IntRange(0, 3).Draw(t, "honorTaints") == 0,
		})
	}
	return out
}

func drawTerms(t *rapid.T, label string) []cluster.Term {
	var out []cluster.Term
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, label) {
		term := cluster.Term{Key: drawKey(t), Namespaces: []string{"default"}, Selector: drawSelector(t)}
		if rapid.IntRange(0, 3).Draw(t, "preferred") == 0 {
			term.Weight = rapid.IntRange(1, 100).Draw(t, "weight")
		}
		if rapid.IntRange(0, 3).Draw(t, "allNamespaces") == 0 {
			term.Namespaces, term.AllNamespaces = nil, true
		}
		out = append(out, term)
	}
	return out
}

// drawVolumes adds shared volume claims to pods, and limits on attached volumes.
func drawVolumes(t *rapid.T, s *cluster.Snapshot, market catalog.Market) {
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Node == "" && rapid.IntRange(0, 7).Draw(t, "shares") == 0 {
			p.Volumes = []string{p.Namespace + "/" + rapid.SampledFrom([]string{"data", "logs"}).Draw(t, "claim")}
		}
		if n := rapid.IntRange(0, 9).Draw(t, "disks"); n < 3 {
			p.Requests = p.Requests.With(ebsVolumes, int64(n))
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if rapid.Bool().Draw(t, "limited") {
			n.Allocatable = n.Allocatable.With(ebsVolumes, int64(rapid.IntRange(1, 4).Draw(t, "slots")))
			n.Requested = n.Requested.With(ebsVolumes, int64(rapid.IntRange(0, 3).Draw(t, "attached")))
		}
	}
	types := market["default"].Types
	for i := range types {
		types[i].Volumes = int64(rapid.IntRange(0, 4).Draw(t, "volumes"))
	}
}

package consolidation_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/verify"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // rapid prints a failing input, and writes no file
	os.Exit(m.Run())
}

func TestFindOnRandomFleets(t *testing.T) {
	t.Parallel()
	market := smallMarket(t)
	rapid.Check(t, func(t *rapid.T) {
		checkFind(t, drawFleet(t, market))
	})
}

// TestFindOnPastFailures has fleets for which an earlier version of Find returned an invalid move.
func TestFindOnPastFailures(t *testing.T) {
	t.Parallel()
	market := smallMarket(t)
	spotFleet := scaledDownFleet(t, market, 0x42, 15, 2, 40)
	spotFleet.SpotToSpot = true
	// The numbers are the seed, the pods, the deployments and the percentage of removed pods.
	for name, in := range map[string]consolidation.Input{
		"planned node in the zone that another move empties":      spotFleet,
		"some nodes of a group stay with their pods":              scaledDownFleet(t, market, 0xaffb, 72, 9, 15),
		"the few pods of the remaining moves arrive in any order": scaledDownFleet(t, market, 0x56, 26, 11, 29),
		"spread broken by dropped moves":                          scaledDownFleet(t, market, 0x8a1223c82d, 111, 6, 28),
		"a pod lands on the planned node of another move":         scaledDownFleet(t, market, 0x16, 61, 10, 0),
		"pods go to other nodes without a dropped move":           scaledDownFleet(t, market, 0x5, 114, 2, 89),
	} {
		t.Run(name, func(t *testing.T) { checkFind(t, in) })
	}
}

// smallMarket has a few families of instance types, so that tests are fast.
func smallMarket(tb rapid.TB) catalog.Market {
	tb.Helper()
	market := realMarket(tb, 2, 16)
	small := market["default"]
	small.Types = slices.DeleteFunc(small.Types, func(t catalog.Type) bool {
		family, _, _ := strings.Cut(t.Name, ".")
		return !slices.Contains([]string{"m5", "m6i", "m7g", "c6i", "c7g", "r6i", "t3", "t4g"}, family)
	})
	market["default"] = small
	return market
}

func drawFleet(t *rapid.T, market catalog.Market) consolidation.Input {
	seed, pods, deployments := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 120).Draw(t, "pods"),
		rapid.IntRange(1, 12).Draw(t, "deployments")
	in := scaledDownFleet(t, market, dice(seed), pods, deployments, rapid.IntRange(0, 90).Draw(t, "percent"))
	in.SpotToSpot = rapid.Bool().Draw(t, "spot to spot")
	return in
}

// scaledDownFleet returns a fleet after about this percentage of its pods has been removed. A fifth of the nodes have
// twice the price, and a tenth of the nodes are no candidates.
func scaledDownFleet(tb rapid.TB, market catalog.Market, d dice, podCount, deployments, percent int) consolidation.Input {
	tb.Helper()
	pods := mixedPods(podCount, deployments, &d)
	for i := range pods {
		app := cluster.Selector{Labels: requirements.Exactly(pods[i].Labels)}
		switch pods[i].Labels["app"] {
		case "0":
			pods[i].AntiAffinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: app}}
		case "1":
			pods[i].Spread = []cluster.Spread{{Key: catalog.LabelZone, MaxSkew: 1, Selector: app}}
		}
	}
	in := fleet(tb, []cluster.Pool{{Name: "general", NodeClass: "default"}}, pods, market)
	scaleDown(&in, percent, &d)
	for _, name := range slices.Sorted(maps.Keys(in.Nodes)) {
		c := in.Nodes[name]
		if d.roll(5) == 0 {
			c.Price *= 2
			in.Nodes[name] = c
		}
		if d.roll(10) == 0 {
			delete(in.Nodes, name)
		}
	}
	return in
}

// maxRounds is the maximum number of passes until no moves are left. Each pass makes only the best moves; one of these
// fleets took ten passes.
const maxRounds = 20

// checkFind checks that Find is deterministic and that repeated passes converge. In each pass, checkResult and
// checkSavedAtOnce must accept the result.
func checkFind(tb rapid.TB, in consolidation.Input) {
	tb.Helper()
	for round := 0; ; round++ {
		out := consolidation.Find(in)
		if diff := cmp.Diff(out, consolidation.Find(in)); diff != "" {
			tb.Fatalf("a second call of Find returns another result: %s", diff)
		}
		checkResult(tb, in, out)
		checkSavedAtOnce(tb, in, out.Moves)
		if len(out.Moves) == 0 {
			return
		}
		if round == maxRounds {
			tb.Fatalf("after %d rounds a move of %v is left, want none", round, out.Moves[0].Nodes)
		}
		in = afterMoves(tb, in, out.Moves, round)
	}
}

// checkResult checks a result: prices, pods and savings are correct, each move saves money with any of its offerings,
// no node is in two moves, and verify accepts all moves together.
func checkResult(t rapid.TB, in consolidation.Input, out consolidation.Result) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range out.Moves {
		price, pods := catalog.Price(0), 0
		for _, name := range m.Nodes {
			if c, ok := in.Nodes[name]; !ok || seen[name] {
				t.Fatalf("node %s is in two moves, or is not a candidate", name)
			} else {
				price += c.Price
			}
			seen[name] = true
			pods += len(nodeIn(&in, name).Pods)
		}
		highest, lowest := catalog.Price(0), catalog.Price(0)
		for _, planned := range m.PlannedNodes {
			lowest += planned.Price()
			highest += slices.MaxFunc(planned.Offerings, func(a, b packing.Choice) int { return int(a.Price - b.Price) }).Price
		}
		if m.Price != price || m.Pods != pods || m.Saving != price-lowest || highest >= price {
			t.Fatalf("the move of %v has price %s, saving %s and %d pods; the nodes cost %s and have %d pods, the planned nodes cost %s to %s",
				m.Nodes, m.Price, m.Saving, m.Pods, price, pods, lowest, highest)
		}
	}
	for _, m := range out.Declined {
		for _, name := range m.Nodes {
			if seen[name] || m.Saving <= 0 {
				t.Fatalf("declined node %s is also in another move, or its move saves nothing: %s", name, m.Saving)
			}
			seen[name] = true
		}
	}
	s, plan := withMoves(in, out.Moves)
	if broken := verify.Check(s, in.Market, plan); len(broken) > 0 {
		t.Fatalf("all moves together break rules: %v", broken)
	}
}

// checkSavedAtOnce checks the saving if all moves are made at once: the planned nodes are ready and the removed nodes
// drain together. The moves whose pods kube-scheduler places must save more than the planned nodes of the other moves
// cost. It checks a result only if each move has one node, because Unschedulable considers nodes separately.
func checkSavedAtOnce(tb rapid.TB, in consolidation.Input, moves []consolidation.Move) {
	tb.Helper()
	s, plan := in.Snapshot, packing.Plan{}
	s.Nodes = slices.Clone(s.Nodes)
	var removed []string
	for _, m := range moves {
		if len(m.Nodes) > 1 {
			return
		}
		removed = append(removed, m.Nodes...)
		plan.Placements = append(plan.Placements, m.Placements...)
		for _, planned := range m.PlannedNodes {
			planned.Name = "new-" + planned.Name
			s.Nodes = append(s.Nodes, nodeOf(tb, planned, in.Market))
			for _, id := range planned.Pods {
				plan.Placements = append(plan.Placements, packing.Placement{Pod: id, Node: planned.Name})
			}
		}
	}
	lost := consolidation.Unschedulable(s, plan, removed, nil)
	saved := catalog.Price(0)
	for _, m := range moves {
		isLost := slices.ContainsFunc(nodeIn(&in, m.Nodes[0]).Pods, func(p cluster.Pod) bool { return slices.Contains(lost, p.ID()) })
		switch {
		case !isLost:
			saved += m.Saving
		case len(m.PlannedNodes) == 0:
			tb.Fatalf("%s cannot be drained: pods %v have no node", m.Nodes[0], lost)
		default:
			saved -= m.Price - m.Saving // the price of its planned nodes
		}
	}
	if len(moves) > 0 && saved <= 0 {
		tb.Fatalf("%d moves at once save %s, want more than 0: pods %v have no node", len(moves), saved, lost)
	}
}

// withMoves returns the snapshot in which the moves' nodes are terminating, and the plan of the moves.
func withMoves(in consolidation.Input, moves []consolidation.Move) (cluster.Snapshot, packing.Plan) {
	s, plan := in.Snapshot, packing.Plan{}
	s.Nodes, s.Pods = slices.Clone(s.Nodes), slices.Clone(s.Pods)
	for _, m := range moves {
		plan.PlannedNodes, plan.Placements = append(plan.PlannedNodes, m.PlannedNodes...), append(plan.Placements, m.Placements...)
		for _, planned := range m.PlannedNodes {
			plan.Price += planned.Price()
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if !slices.Contains(m.Nodes, n.Name) {
				continue
			}
			for _, p := range n.Pods {
				p.Node = n.Name
				s.Pods = append(s.Pods, p)
			}
			n.Leaving, n.Pods, n.Residents, n.Requested = true, nil, nil, resources.Amounts{}
		}
	}
	return s, plan
}

// afterMoves returns the fleet after the moves were made. round makes the names of launched nodes unique.
func afterMoves(tb rapid.TB, in consolidation.Input, moves []consolidation.Move, round int) consolidation.Input {
	out := in
	out.Nodes, out.Snapshot.Nodes = maps.Clone(in.Nodes), nil
	target := map[string]string{} // node name, by pod ID
	pods := map[string]cluster.Pod{}
	nodes := map[string]*cluster.Node{}
	for i := range in.Snapshot.Nodes {
		n := in.Snapshot.Nodes[i]
		nodes[n.Name] = &n
	}
	for _, m := range moves {
		for _, name := range m.Nodes {
			for _, p := range nodes[name].Pods {
				pods[p.ID()] = p
			}
			delete(nodes, name)
			delete(out.Nodes, name)
		}
		for _, p := range m.Placements {
			target[p.Pod] = p.Node
		}
		for _, planned := range m.PlannedNodes {
			planned.Name = fmt.Sprintf("round%d-%s", round, planned.Name)
			n := nodeOf(tb, planned, in.Market)
			nodes[n.Name] = &n
			out.Nodes[n.Name] = consolidation.Candidate{Price: planned.Price()}
			for _, id := range planned.Pods {
				target[id] = n.Name
			}
		}
	}
	for _, m := range moves {
		for _, id := range m.EvictionOrder {
			target[id] = emptiestNode(tb, nodes, pods[id])
			n := nodes[target[id]]
			n.Requested = n.Requested.Add(pods[id].Requests)
		}
	}
	for id, p := range pods {
		n := nodes[target[id]]
		n.Pods = append(slices.Clip(n.Pods), p)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		recount(n)
		if c, ok := out.Nodes[name]; ok {
			c.Cost = float64(len(n.Pods))
			out.Nodes[name] = c
		}
		out.Snapshot.Nodes = append(out.Snapshot.Nodes, *n)
	}
	return out
}

// emptiestNode returns the node on which kube-scheduler would place an unconstrained pod without an owner. kube-scheduler
// prefers the emptiest nodes, and nodes on which the pod makes the use of CPU and memory more even. Of equal nodes,
// emptiestNode returns the first by name.
func emptiestNode(tb rapid.TB, nodes map[string]*cluster.Node, p cluster.Pod) string {
	tb.Helper()
	best, highest := "", 0.0
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if !p.Requests.Fits(n.Allocatable.Sub(n.Requested)) {
			continue
		}
		shares := func(r resources.Amounts) (cpu, memory float64) {
			return float64(r.CPU) / float64(n.Allocatable.CPU), float64(r.Memory) / float64(n.Allocatable.Memory)
		}
		cpu, memory := shares(n.Requested.Add(p.Requests))
		cpuBefore, memoryBefore := shares(n.Requested)
		balance := (math.Abs(cpuBefore-memoryBefore) - math.Abs(cpu-memory)) / 4
		if score := (1-cpu+1-memory)/2 + balance + 1; score > highest+1e-9 {
			best, highest = name, score
		}
	}
	if best == "" {
		tb.Fatalf("no node has room for pod %s, which requests %s, when it is evicted in the EvictionOrder", p.Name, p.Requests)
	}
	return best
}

// nodeIn panics if the input has no node with the name.
func nodeIn(in *consolidation.Input, name string) *cluster.Node {
	i := slices.IndexFunc(in.Snapshot.Nodes, func(n cluster.Node) bool { return n.Name == name })
	return &in.Snapshot.Nodes[i]
}

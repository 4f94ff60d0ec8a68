package consolidation_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/catalog"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/consolidation"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/packing"
	"github.com/joiner-sh/joiner/packing/verify"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // what failed is printed
	os.Exit(m.Run())
}

// TestHoldsUp: for random fleets, the checker accepts the plan that all moves are together, each move saves what it says
// with whichever of its offerings, no node goes twice, and again and again it comes to rest.
func TestHoldsUp(t *testing.T) {
	t.Parallel()
	market := realMarket(t, 2, 16)
	small := market["default"]
	small.Types = slices.DeleteFunc(small.Types, func(t catalog.Type) bool { // some families are enough, and plans are made sooner
		family, _, _ := strings.Cut(t.Name, ".")
		return !slices.Contains([]string{"m5", "m6i", "m7g", "c6i", "c7g", "r6i", "t3", "t4g"}, family)
	})
	market["default"] = small
	rapid.Check(t, func(t *rapid.T) {
		in := drawFleet(t, market)
		for round := 0; ; round++ {
			out := consolidation.Find(in)
			if diff := cmp.Diff(out, consolidation.Find(in)); diff != "" {
				t.Fatalf("the second time it is another: %s", diff)
			}
			judge(t, in, out)
			if len(out.Moves) == 0 {
				return
			}
			if round == 8 {
				t.Fatalf("after %d rounds there is still something to move: %+v", round, out.Moves[0].Nodes)
			}
			in = done(t, in, out.Moves, round)
		}
	})
}

// drawFleet is a fleet of which some pods have gone since it was bought, and some nodes have become others.
func drawFleet(t *rapid.T, market catalog.Market) consolidation.Input {
	d := dice(rapid.Uint64().Draw(t, "seed"))
	pods := mixedPods(rapid.IntRange(1, 120).Draw(t, "pods"), rapid.IntRange(1, 12).Draw(t, "deployments"), &d)
	for i := range pods {
		app := cluster.Selector{Labels: constraint.Exactly(pods[i].Labels)}
		switch pods[i].Labels["app"] {
		case "0":
			pods[i].AntiAffinity = []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"default"}, Selector: app}}
		case "1":
			pods[i].Spread = []cluster.Spread{{Key: catalog.LabelZone, MaxSkew: 1, Selector: app}}
		}
	}
	in := fleet(t, []cluster.Pool{{Name: "general", NodeClass: "default"}}, pods, market)
	scaleDown(&in, rapid.IntRange(0, 90).Draw(t, "percent"), &d)
	in.SpotToSpot = rapid.Bool().Draw(t, "spot to spot")
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

// judge holds a result to what it says.
func judge(t *rapid.T, in consolidation.Input, out consolidation.Result) {
	seen := map[string]bool{}
	for _, m := range out.Moves {
		price, pods := catalog.Price(0), 0
		for _, name := range m.Nodes {
			if c, ok := in.Nodes[name]; !ok || seen[name] {
				t.Fatalf("node %s goes twice, or may not go at all", name)
			} else {
				price += c.Price
			}
			seen[name] = true
			pods += len(nodeIn(&in, name).Pods)
		}
		worst, best := catalog.Price(0), catalog.Price(0)
		for _, machine := range m.Machines {
			best += machine.Price()
			worst += slices.MaxFunc(machine.Offerings, func(a, b packing.Choice) int { return int(a.Price - b.Price) }).Price
		}
		if m.Price != price || m.Pods != pods || m.Saving != price-best || worst >= price {
			t.Fatalf("%v costs %s and is replaced for %s, %s at worst; it says %s, saves %s, %d pods", m.Nodes, price, best, worst, m.Price, m.Saving, m.Pods)
		}
	}
	s, plan := moved(in, out.Moves)
	if broken := verify.Check(s, in.Market, plan); len(broken) > 0 {
		t.Fatalf("all moves together: %v", broken)
	}
}

// moved is the snapshot in which the moves' nodes are leaving, and the plan that the moves are.
func moved(in consolidation.Input, moves []consolidation.Move) (cluster.Snapshot, packing.Plan) {
	s, plan := in.Snapshot, packing.Plan{}
	s.Nodes, s.Pods = slices.Clone(s.Nodes), slices.Clone(s.Pods)
	for _, m := range moves {
		plan.Machines, plan.Placements = append(plan.Machines, m.Machines...), append(plan.Placements, m.Placements...)
		for _, machine := range m.Machines {
			plan.Price += machine.Price()
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
			n.Leaving, n.Pods, n.Residents, n.Requested = true, nil, nil, capacity.Amounts{}
		}
	}
	return s, plan
}

// done is the fleet after the moves.
func done(tb rapid.TB, in consolidation.Input, moves []consolidation.Move, round int) consolidation.Input {
	out := in
	out.Nodes, out.Snapshot.Nodes = maps.Clone(in.Nodes), nil
	target := map[string]string{}
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
		for _, machine := range m.Machines {
			machine.Name = fmt.Sprintf("round%d-%s", round, machine.Name)
			n := nodeOf(tb, machine, in.Market)
			nodes[n.Name] = &n
			out.Nodes[n.Name] = consolidation.Candidate{Price: machine.Price()}
			for _, id := range machine.Pods {
				target[id] = n.Name
			}
		}
	}
	for id, p := range pods {
		n := nodes[target[id]]
		n.Pods = append(slices.Clip(n.Pods), p)
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		settle(n)
		if c, ok := out.Nodes[name]; ok {
			c.Cost = float64(len(n.Pods))
			out.Nodes[name] = c
		}
		out.Snapshot.Nodes = append(out.Snapshot.Nodes, *n)
	}
	return out
}

func nodeIn(in *consolidation.Input, name string) *cluster.Node {
	i := slices.IndexFunc(in.Snapshot.Nodes, func(n cluster.Node) bool { return n.Name == name })
	return &in.Snapshot.Nodes[i]
}

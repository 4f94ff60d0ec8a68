package existing_test

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scenario"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// text is a scenario with node a in zone a, nodes b and t in zone b, and the leaving node c in zone c. Zones d and e
// have an offering each; EC2 has no capacity for the one in e.
const text = `# Zones.
catalog
  m5.large us-east-1d spot 0.0400 cpu=2 mem=8Gi pods=110
  m5.large us-east-1e spot 0.0400 short
pools
  all
    require karpenter.sh/capacity-type In spot
nodes
  a pool=all cpu=2 mem=8Gi pods=110 used:cpu=1500m
    label topology.kubernetes.io/zone=us-east-1a
    resident app=web x2
  b pool=all cpu=2 mem=8Gi pods=110
    label topology.kubernetes.io/zone=us-east-1b
    taint slow:PreferNoSchedule
  c pool=all cpu=2 mem=8Gi pods=110 leaving
    label topology.kubernetes.io/zone=us-east-1c
    resident app=web
  t pool=all cpu=2 mem=8Gi pods=110
    label topology.kubernetes.io/zone=us-east-1b
    taint team=x:NoSchedule
pods
  web cpu=1 mem=1Gi
    label app=web
    spread app=web over topology.kubernetes.io/zone
`

func parse(t *testing.T) (*podgroup.Queue, *existing.Rooms, *existing.TopologyState) {
	t.Helper()
	s, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	q := podgroup.New(s.Snapshot)
	rooms := existing.NewRooms(s.Snapshot, q)
	st := offering.New(s.Snapshot, s.Market, func() *podgroup.Queue { return q })
	return q, rooms, existing.NewTopologyState(q, st.Accept(q), rooms, s.Snapshot.Nodes)
}

// TestTopologyState checks that a zone counts if pods or nodes stay there or a node can be launched there. Pods count
// in their zone.
func TestTopologyState(t *testing.T) {
	t.Parallel()
	q, rooms, topo := parse(t)
	zones := topo.Keys["topology.kubernetes.io/zone"]
	if got, want := fmt.Sprint(zones.Values), "[us-east-1a us-east-1b us-east-1c us-east-1d us-east-1e]"; got != want {
		t.Fatalf("the zones are %s, want %s", got, want)
	}
	spread := q.Topology.Profiles[q.Classes[0].Profile].Domain[0].Group
	if got, want := fmt.Sprint(topo.CountedDomains[spread]), "[true true true true false]"; got != want {
		t.Errorf("the zones that count are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(topo.CertainDomains[spread]), "[true true true false false]"; got != want {
		t.Errorf("the zones that count in every plan are %s, want %s", got, want)
	}
	profile := &q.Topology.Profiles[q.Classes[0].Profile]
	// Zones a to d have 2, 0, 1 and 0 pods: only the zones without pods may take one.
	for zone, takes := range []bool{false, true, false, true} {
		if got := topo.DomainCounts.Refusal(profile, []int{zone}) == nil; got != takes {
			t.Errorf("%s takes a pod: %t, want %t", zones.Values[zone], got, takes)
		}
	}
	fork := topo.Fork()
	fork.DomainCounts.Add(profile, []int{1}, 1)
	if topo.DomainCounts.Refusal(profile, []int{1}) != nil {
		t.Error("pods that were added to a fork count in the original, want them only in the fork")
	}
	// Zone c, with index 2, has only a leaving node.
	if got, want := fmt.Sprint(topo.DomainCombinations(profile)), "[[0] [1] [3] [4]]"; got != want {
		t.Errorf("the domain combinations are %s, want %s", got, want)
	}
	if in := topo.NodesIn(profile, []int{1}); in.Count() != 2 || len(rooms.Nodes) != 3 {
		t.Errorf("%d of %d nodes are in the second zone, want 2 of 3", in.Count(), len(rooms.Nodes))
	}
}

// TestRooms checks which nodes a signature accepts and prefers, and that a copy is filled independently.
func TestRooms(t *testing.T) {
	t.Parallel()
	q, rooms, _ := parse(t)
	sig := q.Classes[0].Sig
	number := map[string]int{}
	for i, n := range rooms.Nodes {
		number[n.Name] = i
	}
	for name, want := range map[string][2]bool{"a": {true, true}, "b": {true, false}, "t": {false, false}} {
		if got := [2]bool{rooms.Accepted[sig].Has(number[name]), rooms.Preferred[sig].Has(number[name])}; got != want {
			t.Errorf("node %s: [accepted preferred] is %v, want %v", name, got, want)
		}
	}
	if !rooms.Full.Has(number["a"]) || rooms.Full.Has(number["b"]) {
		t.Errorf("Full has node a: %t, node b: %t; want true, false", rooms.Full.Has(number["a"]), rooms.Full.Has(number["b"]))
	}
	filled := rooms.Clone()
	filled.Set(number["b"], make(resources.Vector, len(q.Dims)), nil, filled.Hosts[number["b"]])
	if filled.Room[number["b"]][0] != 0 || rooms.Room[number["b"]][0] != 2000 {
		t.Errorf("node b has %d millicores free in the copy and %d in the original, want 0 and 2000",
			filled.Room[number["b"]][0], rooms.Room[number["b"]][0])
	}
}

package consolidation_test

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/disruption/consolidation"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// dice is a deterministic generator of random numbers, with the constants of MMIX.
type dice uint64

func (d *dice) roll(n int) int {
	*d = *d*6364136223846793005 + 1442695040888963407
	return int(uint64(*d) >> 33 % uint64(n))
}

// realMarket returns the market of the embedded catalog of us-east-1, with the types of minCores to maxCores cores.
func realMarket(tb rapid.TB, minCores, maxCores int64) catalog.Market {
	tb.Helper()
	table, err := catalog.Embedded()
	if err != nil {
		tb.Fatal(err)
	}
	all, err := table.Catalog("us-east-1", catalog.Settings{})
	if err != nil {
		tb.Fatal(err)
	}
	all.Types = slices.DeleteFunc(all.Types,
		func(t catalog.Type) bool { return t.Capacity.CPU < minCores*1000 || t.Capacity.CPU > maxCores*1000 })
	return catalog.Market{"default": all}
}

// mixedPods returns pods of this many deployments. The requests of each deployment are random.
func mixedPods(podCount, deployments int, d *dice) []cluster.Pod {
	out := make([]cluster.Pod, 0, podCount)
	for n := range deployments {
		ask := resources.Amounts{CPU: int64(50 * (1 + d.roll(40))), Memory: int64(64*(1+d.roll(80))) << 20, Pods: 1}
		labels := requirements.Labels{"app": fmt.Sprint(n)}
		for i := n; i < podCount; i += deployments {
			out = append(out, cluster.Pod{
				Namespace: "default", Name: fmt.Sprintf("app-%04d-%05d", n, i), Requests: ask, Labels: labels, Owner: fmt.Sprint("ReplicaSet/app-", n),
			})
		}
	}
	return out
}

// constrainHalf adds a rule to the pods of every second Deployment: in turn spread over zones, spread over hosts and
// anti-affinity. The pods must be those of mixedPods. At most 20 pods per Deployment have anti-affinity.
func constrainHalf(pods []cluster.Pod) {
	type rules struct {
		spread []cluster.Spread
		apart  []cluster.Term
		pods   int
	}
	known := map[string]*rules{}
	for i := range pods {
		p := &pods[i]
		app := p.Labels["app"]
		r := known[app]
		if r == nil {
			r = &rules{}
			selector := cluster.Selector{Labels: requirements.Exactly(p.Labels)}
			switch n := len(known); {
			case n%2 == 1:
			case n%6 == 0:
				r.spread = []cluster.Spread{{Key: catalog.LabelZone, MaxSkew: 1, Selector: selector}}
			case n%6 == 2:
				r.spread = []cluster.Spread{{Key: corev1.LabelHostname, MaxSkew: 5, Selector: selector}}
			default:
				r.apart = []cluster.Term{{Key: corev1.LabelHostname, Namespaces: []string{p.Namespace}, Selector: selector}}
			}
			known[app] = r
		}
		p.Spread = r.spread
		if r.pods++; r.pods <= 20 {
			p.AntiAffinity = r.apart
		}
	}
}

// fleet returns a cluster in which the pods run on the nodes that packing.Solve plans for them. All nodes are
// candidates.
func fleet(tb rapid.TB, pools []cluster.Pool, pods []cluster.Pod, market catalog.Market) consolidation.Input {
	tb.Helper()
	s := cluster.Snapshot{Pools: pools, Pods: pods}
	plan := packing.Solve(s, market, packing.DefaultEffort)
	if len(plan.Refusals) > 0 {
		tb.Fatalf("the plan refuses %d pods, the first: %+v", len(plan.Refusals), plan.Refusals[0])
	}
	in := consolidation.Input{Snapshot: cluster.Snapshot{Pools: pools}, Market: market, Nodes: map[string]consolidation.Candidate{}}
	byID := map[string]*cluster.Pod{}
	for i := range pods {
		byID[pods[i].ID()] = &pods[i]
	}
	for _, m := range plan.PlannedNodes {
		n := nodeOf(tb, m, market)
		for _, id := range m.Pods {
			n.Pods = append(n.Pods, *byID[id])
		}
		recount(&n)
		in.Snapshot.Nodes = append(in.Snapshot.Nodes, n)
		in.Nodes[n.Name] = consolidation.Candidate{Price: m.Price(), Cost: float64(len(n.Pods))}
	}
	slices.SortFunc(in.Snapshot.Nodes, func(a, b cluster.Node) int { return compare(a.Name, b.Name) })
	return in
}

// nodeOf returns the planned node as a node, at its cheapest offering.
func nodeOf(tb rapid.TB, m packing.PlannedNode, market catalog.Market) cluster.Node {
	tb.Helper()
	types, c := market.Types(m.NodeClass, m.Pool), m.Offerings[0]
	i, ok := slices.BinarySearchFunc(types, c.InstanceType, func(t catalog.Type, name string) int { return compare(t.Name, name) })
	if !ok {
		tb.Fatalf("the market has no type %s", c.InstanceType)
	}
	labels := requirements.Labels{catalog.LabelZone: c.Zone, catalog.LabelCapacityType: c.CapacityType, "kubernetes.io/hostname": m.Name}
	for _, more := range []requirements.Labels{types[i].Labels, m.Labels} {
		for k, v := range more {
			labels[k] = v
		}
	}
	return cluster.Node{
		Name: m.Name, Claim: m.Name, Pool: m.Pool, NodeClass: m.NodeClass, Labels: labels, Taints: m.Taints,
		Capacity: types[i].Capacity, Allocatable: types[i].Allocatable, Joined: true, Initialized: true,
	}
}

// recount sets the node's Requested and Residents from its pods, which it sorts.
func recount(n *cluster.Node) {
	slices.SortFunc(n.Pods, func(a, b cluster.Pod) int { return compare(a.ID(), b.ID()) })
	n.Requested, n.Residents = resources.Amounts{}, nil
	for i := range n.Pods {
		p := &n.Pods[i]
		n.Requested = n.Requested.Add(p.Requests)
		at := slices.IndexFunc(n.Residents, func(r cluster.Resident) bool { return r.Labels["app"] == p.Labels["app"] })
		if at < 0 {
			at, n.Residents = len(n.Residents), append(n.Residents, cluster.Resident{PodKind: kindOf(p)})
		}
		n.Residents[at].Count++
	}
}

var podKinds sync.Map // *cluster.PodKind by kind, as text

// kindOf returns the kind of the pod. Equal pods share one kind.
func kindOf(p *cluster.Pod) *cluster.PodKind {
	kind := &cluster.PodKind{Namespace: p.Namespace, Labels: p.Labels}
	for _, term := range p.AntiAffinity {
		if term.Weight == 0 {
			kind.RequiredAntiAffinity = append(kind.RequiredAntiAffinity, term)
		}
	}
	shared, _ := podKinds.LoadOrStore(fmt.Sprintf("%+v", *kind), kind)
	return shared.(*cluster.PodKind)
}

// scaleDown removes roughly this percentage of all pods, at random.
func scaleDown(in *consolidation.Input, percent int, d *dice) {
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		n.Pods = slices.DeleteFunc(n.Pods, func(cluster.Pod) bool { return d.roll(100) < percent })
		recount(n)
		c := in.Nodes[n.Name]
		c.Cost = float64(len(n.Pods))
		in.Nodes[n.Name] = c
	}
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

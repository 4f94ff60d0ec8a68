package fleetprice

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Comparison is the result of Compare: the compared nodes, and the prices of a plan that replaces them all.
type Comparison struct {
	Pods   int           // number of pods on the compared nodes
	Claims []string      // names of the NodeClaims of the compared nodes, in the order of the snapshot
	Plan   catalog.Price // price per hour of the planned nodes
	Bound  catalog.Price // lower bound of the price per hour of nodes with room for these pods
}

// maxRounds limits how often Compare plans. Each round leaves out the nodes of pods that the previous plan refused.
const maxRounds = 4

// Compare plans the pods of all nodes that Joiner may launch again. It leaves out nodes that Joiner did not launch, nodes
// of an unusable NodePool, and nodes with a pod that the plan refuses: such a pod runs, but no node could be launched for
// it now. The second result is false if the plan still refuses a pod after maxRounds.
func Compare(s cluster.Snapshot, solve func(cluster.Snapshot) packing.Plan) (Comparison, bool) {
	isLeftOut := map[string]bool{} // by name of the node
	for range maxRounds {
		start := withoutComparedNodes(s, isLeftOut)
		out := Comparison{Pods: len(start.snapshot.Pods), Claims: start.claims}
		if out.Pods == 0 {
			return out, true
		}
		plan := solve(start.snapshot)
		if len(plan.Refusals) == 0 {
			out.Plan, out.Bound = plan.Price, plan.LowerBound
			return out, true
		}
		for _, r := range plan.Refusals {
			isLeftOut[start.nodeOf[r.Pod]] = true
		}
	}
	return Comparison{}, false
}

// freshStart is a snapshot without the compared nodes, in which their pods are pending.
type freshStart struct {
	snapshot cluster.Snapshot
	claims   []string          // NodeClaims of the compared nodes
	nodeOf   map[string]string // by "namespace/name" of a pod: its node
}

// withoutComparedNodes returns the fresh start of s. Of s.Pods it keeps only pods of compared nodes that are leaving.
func withoutComparedNodes(s cluster.Snapshot, isLeftOut map[string]bool) freshStart {
	out := freshStart{snapshot: s, nodeOf: map[string]string{}}
	fresh := &out.snapshot
	fresh.Nodes, fresh.Pods, fresh.Pools = nil, nil, slices.Clone(s.Pools)
	isCompared := map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		pool := poolOf(fresh.Pools, n.Pool)
		if n.Claim == "" || pool == nil || pool.Unusable != "" || isLeftOut[n.Name] {
			fresh.Nodes = append(fresh.Nodes, *n)
			continue
		}
		isCompared[n.Name] = true
		out.claims = append(out.claims, n.Claim)
		*pool = pool.WithoutNode(n.Capacity)
		for _, p := range n.Pods {
			out.addPod(p, n.Name)
		}
	}
	for _, p := range s.Pods {
		if isCompared[p.Node] {
			out.addPod(p, p.Node) // its node is leaving
		}
	}
	slices.SortFunc(fresh.Pods, cluster.ComparePods)
	return out
}

// addPod adds a pod of the node to the pending pods, unless it is one of them already.
func (f *freshStart) addPod(p cluster.Pod, node string) {
	if _, isKnown := f.nodeOf[p.ID()]; isKnown {
		return
	}
	f.nodeOf[p.ID()] = node
	p.Node = ""
	f.snapshot.Pods = append(f.snapshot.Pods, p)
}

// poolOf returns the pool with the name, or nil. pools is sorted by name.
func poolOf(pools []cluster.Pool, name string) *cluster.Pool {
	at, ok := slices.BinarySearchFunc(pools, name, func(p cluster.Pool, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return &pools[at]
}

package consolidation

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// arrivalOrder is the assumption of a simulation about the order in which moved pods arrive at kube-scheduler.
type arrivalOrder int

const (
	// smallFirst puts small pods before large ones. Since each pod goes to the emptiest node, the fewest pods find a
	// node in this order.
	smallFirst arrivalOrder = iota
	// drainOrders are orders in which package drain may evict pods: large pods first, and pods of StatefulSets last,
	// because a StatefulSet recreates a pod only after the old pod has ended. The order is not known exactly, so all
	// pods must be schedulable in several such orders. Up to maxUnorderedPods pods may arrive in any order, so the
	// simulation assumes the worst order for them, with the smallest pod first.
	drainOrders
	// oneAtATime is a sequence that the simulation searches for. Each pod is evicted after the previous one is
	// scheduled.
	oneAtATime
)

const (
	drainOrderCount  = 3   // number of drain orders
	drainJitter      = 0.2 // maximum relative variation of a pod's size between drain orders
	maxUnorderedPods = 8   // up to this number of pods may arrive in any order: see drainOrders

	maxSequences   = 24  // maximum number of sequences that are tried for oneAtATime
	sequenceJitter = 2.0 // maximum relative variation of a pod's size between sequences
)

type incomingPod struct {
	pod     *cluster.Pod
	from    string  // the node that the pod leaves
	group   string  // the move or node that the pod belongs to: see unschedulable
	planned string  // name of the node that the plan has for the pod; empty: none
	node    int     // index of the node on which the simulation scheduled the pod
	urgency float64 // of pods with equal rank and lateness, the pod with the highest urgency arrives first
}

// maxTries returns the maximum number of orders that the simulation tries until it has scheduled the pods.
func (sim *simulation) maxTries() int {
	if sim.order == oneAtATime {
		return maxSequences
	}
	return 1
}

// orderCount returns the number of orders in which the simulation schedules the pods. Each order must succeed. For pods
// with rules, no order is always the worst, so these are scheduled in the drain orders too.
func (sim *simulation) orderCount(arrivals []incomingPod) int {
	switch {
	case sim.order != smallFirst && len(arrivals) > maxUnorderedPods:
		return drainOrderCount
	case slices.ContainsFunc(arrivals, func(a incomingPod) bool { return isConstrained(a.pod) && followsRules(a.pod) }):
		return drainOrderCount + 1
	}
	return 1
}

// sort sorts the pods into order n of count: a drain order, or small pods first if it is the only order or follows the
// drain orders.
func sort(arrivals []incomingPod, n, count int) {
	if count > 1 && n < drainOrderCount {
		sortAsDrained(arrivals, n)
		return
	}
	slices.SortStableFunc(arrivals, func(one, other incomingPod) int {
		return cmp.Or(rank(one.pod)-rank(other.pod), cmp.Compare(one.pod.Requests.CPU, other.pod.Requests.CPU),
			cmp.Compare(one.pod.Requests.Memory, other.pod.Requests.Memory))
	})
}

// allOrders returns the pods in each of the orders in which the simulation schedules them.
func (sim *simulation) allOrders(arrivals []incomingPod) [][]incomingPod {
	out := make([][]incomingPod, sim.orderCount(arrivals))
	for n := range out {
		out[n] = slices.Clone(arrivals)
		sort(out[n], n, len(out))
	}
	return out
}

// sortAsDrained sorts the pods into drain order n. In order 0 all nodes evict at once: first the largest pod of each
// node, then the second largest, and so on. In the other orders the sizes of pods vary at random, and the nodes are
// ignored.
func sortAsDrained(arrivals []incomingPod, n int) {
	for i := range arrivals {
		p := arrivals[i].pod
		arrivals[i].urgency = p.Requests.Bulk()
		if n > 0 {
			arrivals[i].urgency *= 1 + drainJitter*pseudoRandom(p.ID(), n)
		}
	}
	slices.SortFunc(arrivals, compareIncoming)
	if n > 0 {
		return
	}
	count := map[string]int{}
	for i := range arrivals {
		a := &arrivals[i]
		a.urgency = float64(-count[a.from]) // count: pods of the same node that sort before
		count[a.from]++
	}
	slices.SortFunc(arrivals, compareIncoming)
}

// compareIncoming orders pods by arrival: lower rank first, then lower lateness, then higher urgency.
func compareIncoming(a, b incomingPod) int {
	return cmp.Or(rank(a.pod)-rank(b.pod), lateness(a.pod)-lateness(b.pod), cmp.Compare(b.urgency, a.urgency),
		cmp.Compare(a.from, b.from), cluster.ComparePods(*a.pod, *b.pod))
}

// pseudoRandom returns a number from 0 to 1 that depends only on the pod's ID and n.
func pseudoRandom(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte(id), uint64(n)))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// rank returns 0 for constrained pods, which arrive first because package drain evicts them first, and 1 for others.
func rank(p *cluster.Pod) int {
	if isConstrained(p) {
		return 0
	}
	return 1
}

// lateness returns 1 for pods whose replacement is created only after the old pod has ended, and 0 for others.
func lateness(p *cluster.Pod) int {
	if strings.HasPrefix(p.Owner, "StatefulSet/") {
		return 1
	}
	return 0
}

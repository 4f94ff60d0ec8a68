package consolidation

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// evictionOrder is the order in which moved pods arrive at kube-scheduler.
type evictionOrder int

const (
	// smallFirst puts small pods before large ones. Since each pod goes to the emptiest node, this order fits the
	// fewest pods.
	smallFirst evictionOrder = iota
	// drainOrders are orders in which package drain may evict pods: large pods first, pods of StatefulSets last,
	// because they are recreated only after the old ones have ended. The order is not known exactly, so all pods must
	// be schedulable in several such orders. Up to maxUnorderedPods pods may come in any order; for these, the order
	// with the smallest pod first is used instead, because it is the worst.
	drainOrders
	// oneAtATime is a sequence that the simulation searches for. Each pod is evicted after the previous one is
	// scheduled.
	oneAtATime
)

const (
	drainOrderCount  = 3   // number of drain orders
	drainJitter      = 0.2 // maximum relative variation of a pod's size between drain orders
	maxUnorderedPods = 8   // up to this number of pods may come in any order

	maxSequences   = 24  // maximum number of sequences that are tried for oneAtATime
	sequenceJitter = 2.0 // maximum relative variation of a pod's size between sequences
)

// incomingPod is a pod to schedule.
type incomingPod struct {
	pod      *cluster.Pod
	from     string  // the node that the pod leaves
	group    string  // see unschedulable
	planned  string  // name of the node of the plan; empty: none
	node     int     // index of the node on which the simulation scheduled the pod
	priority float64 // of pods of the same rank, the pod with the highest priority arrives first
}

// tries returns the maximum number of orders that the simulation tries until it has scheduled the pods.
func (sim *simulation) tries() int {
	if sim.order == oneAtATime {
		return maxSequences
	}
	return 1
}

// orders returns the number of orders in which the simulation schedules this number of pods. Each order must succeed.
func (sim *simulation) orders(pods int) int {
	if sim.order == smallFirst || pods <= maxUnorderedPods {
		return 1
	}
	return drainOrderCount
}

// sort sorts the pods into order n. If there is only one order, small pods come first.
func (sim *simulation) sort(arrivals []incomingPod, n int) {
	if sim.orders(len(arrivals)) > 1 {
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
	out := make([][]incomingPod, sim.orders(len(arrivals)))
	for n := range out {
		out[n] = slices.Clone(arrivals)
		sim.sort(out[n], n)
	}
	return out
}

// sortAsDrained sorts the pods into drain order n. In order 0 all nodes evict at once: first the largest pod of each
// node, then the second largest, and so on. In the other orders the sizes of pods vary at random, and the nodes are
// ignored.
func sortAsDrained(arrivals []incomingPod, n int) {
	for i := range arrivals {
		p := arrivals[i].pod
		arrivals[i].priority = p.Requests.Bulk()
		if n > 0 {
			arrivals[i].priority *= 1 + drainJitter*pseudoRandom(p.ID(), n)
		}
	}
	slices.SortFunc(arrivals, compareIncoming)
	if n > 0 {
		return
	}
	count := map[string]int{}
	for i := range arrivals {
		a := &arrivals[i]
		a.priority = float64(-count[a.from])
		count[a.from]++
	}
	slices.SortFunc(arrivals, compareIncoming)
}

// compareIncoming orders pods by their arrival, from their rank and priority. Pods whose replacement is created late
// come late.
func compareIncoming(a, b incomingPod) int {
	return cmp.Or(rank(a.pod)-rank(b.pod), replacedLate(a.pod)-replacedLate(b.pod), cmp.Compare(b.priority, a.priority),
		cmp.Compare(a.from, b.from), byID(*a.pod, *b.pod))
}

// pseudoRandom returns a number from 0 to 1 that depends only on pod and order.
func pseudoRandom(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte(id), uint64(n)))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// rank is lower for constrained pods, which have only one possible node.
func rank(p *cluster.Pod) int {
	if isConstrained(p) {
		return 0
	}
	return 1
}

// replacedLate is higher for pods whose replacement is created only after the old pod has ended.
func replacedLate(p *cluster.Pod) int {
	if strings.HasPrefix(p.Owner, "StatefulSet/") {
		return 1
	}
	return 0
}

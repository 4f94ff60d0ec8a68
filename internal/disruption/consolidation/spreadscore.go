package consolidation

import (
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// kube-scheduler scores nodes also by topology spread, with twice the weight of each score for resources. A pod without
// topology spread constraints that has a ReplicaSet or StatefulSet gets the system's default constraints: see
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints
const (
	spreadWeight       = 2
	defaultHostMaxSkew = 3
	defaultZoneMaxSkew = 5
)

// podKinds finds the kinds of pods and the nodes with pods of a kind. All simulations of the same nodes share it.
type podKinds struct {
	nodes   []cluster.Node
	all     []*cluster.PodKind // in the order of the nodes
	nodesOf map[*cluster.PodKind][]kindOnNode
	ofOwner map[podOwner]*cluster.PodKind // cache of defaultSpreadKind
}

type kindOnNode struct {
	node  int // index into podKinds.nodes
	count int // number of pods
}

type podOwner struct{ namespace, name string }

func newPodKinds(nodes []cluster.Node) *podKinds {
	k := &podKinds{nodes: nodes, nodesOf: map[*cluster.PodKind][]kindOnNode{}, ofOwner: map[podOwner]*cluster.PodKind{}}
	for i := range nodes {
		for _, r := range nodes[i].Residents {
			if k.nodesOf[r.PodKind] == nil {
				k.all = append(k.all, r.PodKind)
			}
			k.nodesOf[r.PodKind] = append(k.nodesOf[r.PodKind], kindOnNode{i, r.Count})
		}
	}
	return k
}

// defaultSpreadKind returns the kind of a pod that kube-scheduler spreads by default constraints. It returns nil for
// other pods, and if no pod of this kind has a node. Pods of the same owner have the same kind.
func (k *podKinds) defaultSpreadKind(p *cluster.Pod) *cluster.PodKind {
	if len(p.Spread) > 0 || !strings.HasPrefix(p.Owner, "ReplicaSet/") && !strings.HasPrefix(p.Owner, "StatefulSet/") {
		return nil
	}
	owner := podOwner{p.Namespace, p.Owner}
	kind, known := k.ofOwner[owner]
	if !known {
		if i := slices.IndexFunc(k.all, func(other *cluster.PodKind) bool { return isOfKind(other, p) }); i >= 0 {
			kind = k.all[i]
		}
		k.ofOwner[owner] = kind
	}
	return kind
}

// kindCounts counts the pods of one kind.
type kindCounts struct {
	onNode []int          // by index into simulation.nodes
	inZone map[string]int // by zone, on all nodes; cordoned and drained ones excluded
}

// countsOf returns the counts of the kind.
func (sim *simulation) countsOf(kind *cluster.PodKind) *kindCounts {
	if c := sim.counts[kind]; c != nil {
		return c
	}
	c := &kindCounts{make([]int, len(sim.nodes)), map[string]int{}}
	for _, on := range sim.kinds.nodesOf[kind] {
		if at := sim.indexOf[on.node]; at < 0 {
			if other := &sim.others[-1-at]; !other.cordoned && !other.isDrained {
				c.inZone[other.labels[catalog.LabelZone]] += on.count
			}
		} else if s := &sim.nodes[at]; !s.cordoned {
			c.onNode[at] += on.count
			c.inZone[s.zone] += on.count
		}
	}
	for at := range sim.nodes {
		for _, p := range sim.nodes[at].newPods {
			if sim.kinds.defaultSpreadKind(p) == kind {
				c.onNode[at]++
				c.inZone[sim.nodes[at].zone]++
			}
		}
	}
	sim.counts[kind] = c
	return c
}

// countKind adds pods of the kind on a node to the counts.
func (sim *simulation) countKind(kind *cluster.PodKind, at, pods int) {
	if c := sim.counts[kind]; c != nil {
		c.onNode[at] += pods
		c.inZone[sim.nodes[at].zone] += pods
	}
}

// spreadScores returns, for each of the nodes, kube-scheduler's score for topology spread, from 0 to 100. It returns nil
// if no spread is preferred. feasible has the indices of the nodes that can take the pod.
func (sim *simulation) spreadScores(p *cluster.Pod, feasible []int) []int {
	if kind := sim.kinds.defaultSpreadKind(p); kind != nil {
		c, zones := sim.countsOf(kind), map[string]bool{}
		for _, at := range feasible {
			zones[sim.nodes[at].zone] = true
		}
		hostWeight, zoneWeight := spreadTermWeight(len(feasible)), spreadTermWeight(len(zones))
		return normalizedSpread(feasible, func(at int) float64 {
			return float64(c.onNode[at])*hostWeight + float64(c.inZone[sim.nodes[at].zone])*zoneWeight + defaultHostMaxSkew + defaultZoneMaxSkew - 2
		})
	}
	sums := make(map[int]float64, len(feasible))
	isPreferred := false
	for i := range p.Spread {
		s := &p.Spread[i]
		if !s.Soft {
			continue
		}
		isPreferred = true
		r, domains := sim.spreadRule(p, s), map[string]bool{}
		for _, at := range feasible {
			domains[sim.nodes[at].domainOf(s.Key)] = true
		}
		weight := spreadTermWeight(len(domains))
		for _, at := range feasible {
			sums[at] += float64(r.matched[sim.nodes[at].domainOf(s.Key)])*weight + float64(s.MaxSkew-1)
		}
	}
	if !isPreferred {
		return nil
	}
	return normalizedSpread(feasible, func(at int) float64 { return sums[at] })
}

// spreadTermWeight returns the weight of a constraint. domains is the number of its domains that can take the pod.
func spreadTermWeight(domains int) float64 { return math.Log(float64(domains + 2)) }

// normalizedSpread converts the sum of matching pods of each node into a score from 0 to 100: fewer pods give more.
func normalizedSpread(feasible []int, sum func(at int) float64) []int {
	out := make([]int, len(feasible))
	lowest, highest := math.MaxInt, 0
	for i, at := range feasible {
		out[i] = int(math.Round(sum(at)))
		lowest, highest = min(lowest, out[i]), max(highest, out[i])
	}
	for i := range out {
		if highest == 0 {
			out[i] = 100
		} else {
			out[i] = 100 * (highest + lowest - out[i]) / highest
		}
	}
	return out
}

package packing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

type planBuilder struct {
	problem    *pending.Problem
	queue      *pending.Queue
	rooms      *existing.Rooms
	nodeOffers *nodeOffers
	work       *work
	sol        *solution
}

func newPlanBuilder(sol *solution) planBuilder {
	return planBuilder{problem: sol.problem, queue: sol.queue, rooms: sol.rooms, nodeOffers: sol.nodeOffers, work: sol.work, sol: sol}
}

// buildPlan returns the plan, without Refusals and Effort.
func (pb planBuilder) buildPlan() Plan {
	p := Plan{
		Pods:       pb.queue.Pods.Count(),
		Classes:    pb.queue.WholeCount,
		Steps:      pb.work.steps,
		LowerBound: pb.sol.prices.solver.PlanBound(pb.sol.plannedDemands()),
	}
	next := make([]int, len(pb.queue.Classes)) // by class: number of pods already assigned
	for _, placement := range pb.sol.placements {
		c := &pb.queue.Classes[placement.class]
		for _, pod := range c.Pods[next[placement.class]:][:placement.n*c.PodsPerUnit] {
			p.Placements = append(p.Placements, Placement{Pod: pod.ID(), Node: pb.rooms.Nodes[placement.node].Name})
		}
		next[placement.class] += placement.n * c.PodsPerUnit
	}
	slices.SortStableFunc(p.Placements, func(a, b Placement) int { return cmp.Compare(a.Pod, b.Pod) })

	for _, o := range pb.queue.Pods.Omissions {
		p.Omissions = append(p.Omissions, Omission{Pod: o.Pod.ID(), Preferences: o.Preferences})
	}
	slices.SortStableFunc(p.Omissions, func(a, b Omission) int { return cmp.Compare(a.Pod, b.Pod) })

	nodes := pb.nodesInLaunchOrder()
	pods := pb.distributePods(nodes, next)
	names, labels := map[string]int{}, map[*offering.Variant]requirements.Labels{}
	p.PlannedNodes = make([]PlannedNode, 0, pb.plannedCount())
	for i := range nodes {
		v := pb.problem.Stock.VariantOf(nodes[i].node.offer)
		if labels[v] == nil {
			labels[v] = v.LabelsAtLaunch()
		}
		pn := pb.describe(&nodes[i], labels[v])
		for n := range nodes[i].node.copies {
			names[pn.Pool]++
			pn.Name = pn.Pool + "-" + strconv.Itoa(names[pn.Pool])
			pn.Pods = pods[i][n]
			p.Price += pn.Price()
			p.PlannedNodes = append(p.PlannedNodes, pn)
		}
	}
	return p
}

func (pb planBuilder) plannedCount() int {
	n := 0
	for i := range pb.sol.planned {
		n += pb.sol.planned[i].copies
	}
	return n
}

type describedNode struct {
	node    plannedNode
	options *launchOptions
}

// launchOptions has the offerings that a node may be launched as. Nodes with the same feasible
// offerings share a launchOptions.
type launchOptions struct {
	offers       []int    // numbers of the offerings, cheapest first
	offerings    []Choice // the same offerings, for the plan
	requirements []requirements.Requirement
	relaxed      []Relaxation
}

// launchOptionsFor returns the launch options of a node with these feasible offerings. tight is as in launchChoices.
func (pb planBuilder) launchOptionsFor(feasible bitset.Set, pn *plannedNode, tight bool) *launchOptions {
	out := &launchOptions{offers: pb.problem.Stock.FewTypes(pb.problem.Stock.Choices(pn.offer, feasible, tight))}
	out.offerings = make([]Choice, 0, len(out.offers))
	for _, i := range out.offers {
		offer := &pb.problem.Stock.Offers[i]
		out.offerings = append(out.offerings, Choice{
			InstanceType: pb.problem.Stock.TypeOf(i).Name, Zone: offer.Zone, CapacityType: offer.CapacityType, Price: offer.Price,
			Reservation: offer.Reservation.ID,
		})
	}
	out.relaxed = pb.nodeOffers.relaxations(out.offers)
	out.requirements = narrowedRequirements(pb.problem.Stock.PoolOf(pn.offer), pb.problem.Stock.VariantOf(pn.offer), out)
	return out
}

// launchOptionsOfAll returns the launch options of each planned node. They depend on the feasible offerings,
// the variant and, near a limit, the model.
func (pb planBuilder) launchOptionsOfAll() []*launchOptions {
	tight := pb.tightPools()
	isTight := func(pn *plannedNode) bool { return tight[pb.problem.Stock.VariantOf(pn.offer).Pool] }
	feasible, keys := make([]bitset.Set, len(pb.sol.planned)), make([]string, len(pb.sol.planned))
	parallel.Each(len(pb.sol.planned), func(i int) {
		pn := &pb.sol.planned[i]
		feasible[i] = pb.nodeOffers.feasibleOffers(pn)
		key := hashkey.Int(hashkey.Int([]byte(feasible[i].Key()), pb.problem.Stock.Models[pb.problem.Stock.Offers[pn.offer].Model].Variant), -1)
		if isTight(pn) {
			key = hashkey.Int(key, pb.problem.Stock.Offers[pn.offer].Model)
		}
		keys[i] = string(key)
	})
	first := map[string]int{} // by key: the first node with these launch options
	var distinct []int        // the nodes in first
	for i, key := range keys {
		if _, ok := first[key]; !ok {
			first[key] = i
			distinct = append(distinct, i)
		}
	}
	out := make([]*launchOptions, len(pb.sol.planned))
	parallel.Each(len(distinct), func(n int) {
		i := distinct[n]
		pn := &pb.sol.planned[i]
		out[i] = pb.launchOptionsFor(feasible[i], pn, isTight(pn))
	})
	for i, key := range keys {
		out[i] = out[first[key]]
	}
	return out
}

// nodesInLaunchOrder returns the nodes with their launch options in launch order: nodes with devices
// last, then by price. If a node with devices joined first, kube-scheduler could fill it with pods without
// devices, because no other node exists yet.
func (pb planBuilder) nodesInLaunchOrder() []describedNode {
	parallel.Each(len(pb.sol.planned), func(i int) {
		slices.SortFunc(pb.sol.planned[i].allocations, func(a, b allocation) int { return a.class - b.class })
	})
	out := make([]describedNode, len(pb.sol.planned))
	for i, lo := range pb.launchOptionsOfAll() {
		out[i] = describedNode{node: pb.sol.planned[i], options: lo}
	}
	slices.SortStableFunc(out, func(a, b describedNode) int {
		return cmp.Or(
			cmp.Compare(pb.deviceRank(&a.node), pb.deviceRank(&b.node)),
			cmp.Compare(pb.problem.Stock.Offers[a.options.offers[0]].Price, pb.problem.Stock.Offers[b.options.offers[0]].Price),
			cmp.Compare(a.options.offers[0], b.options.offers[0]),
			slices.CompareFunc(a.node.allocations, b.node.allocations, func(x, y allocation) int {
				return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.n, y.n))
			}),
		)
	})
	return out
}

// deviceRank returns the rank of a node in the launch order: 1 if its pods request extended resources, otherwise 0.
func (pb planBuilder) deviceRank(pn *plannedNode) int {
	for _, a := range pn.allocations {
		if len(pb.queue.Classes[a.class].Amounts.Extended) > 0 {
			return 1
		}
	}
	return 0
}

// distributePods returns, by node and copy, the IDs of the copy's pods. It assigns the pods of a class round-robin in
// the order of their names. So pods with adjacent names, which usually belong to one workload, are on different nodes.
// next is, by class, the number of pods that are already assigned to existing nodes.
func (pb planBuilder) distributePods(nodes []describedNode, next []int) [][][]string {
	shares := make([][]podShare, len(pb.queue.Classes)) // by class: its share of each node, in the order of the nodes
	first := make([][]int, len(nodes))                  // by node and allocation: index in shares[class] of the first copy
	for i := range nodes {
		for _, a := range nodes[i].node.allocations {
			first[i] = append(first[i], len(shares[a.class]))
			for range nodes[i].node.copies {
				shares[a.class] = append(shares[a.class], podShare{want: a.n})
			}
		}
	}
	parallel.Each(len(shares), func(c int) { pb.distributeClass(c, shares[c], next[c]) })
	out := make([][][]string, len(nodes))
	parallel.Each(len(nodes), func(i int) {
		dn := &nodes[i]
		out[i] = make([][]string, dn.node.copies)
		var lists [][]string
		for n := range dn.node.copies {
			lists = lists[:0]
			for k, a := range dn.node.allocations {
				lists = append(lists, shares[a.class][first[i][k]+n].pods)
			}
			out[i][n] = mergeSorted(lists)
		}
	})
	return out
}

// mergeSorted returns all strings of the lists, sorted. It is fast if the lists are sorted and do not overlap.
func mergeSorted(lists [][]string) []string {
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	slices.SortFunc(lists, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	out := make([]string, 0, total)
	for _, list := range lists {
		out = append(out, list...)
	}
	if !slices.IsSorted(out) {
		slices.Sort(out)
	}
	return out
}

// podShare has the pods of one class on one node.
type podShare struct {
	want int // number of units that are still to be assigned
	pods []string
}

// distributeClass fills the shares with the pods of the class, one unit each in turn, starting with the pod at index
// next.
func (pb planBuilder) distributeClass(c int, shares []podShare, next int) {
	unit, total := pb.queue.Classes[c].PodsPerUnit, 0
	for i := range shares {
		total += shares[i].want * unit
	}
	pods, backing, open := podIDs(pb.queue.Classes[c].Pods[next:next+total]), make([]string, total), make([]*podShare, len(shares))
	for i := range shares {
		open[i] = &shares[i]
		n := shares[i].want * unit
		shares[i].pods, backing = backing[:0:n], backing[n:]
	}
	for len(open) > 0 {
		kept := open[:0]
		for _, share := range open {
			share.pods, pods = append(share.pods, pods[:unit]...), pods[unit:]
			if share.want--; share.want > 0 {
				kept = append(kept, share)
			}
		}
		open = kept
	}
}

// podIDs returns the IDs of the pods. They share one string, to save allocations.
func podIDs(pods []*cluster.Pod) []string {
	var text strings.Builder
	size := 0
	for _, p := range pods {
		size += len(p.Namespace) + 1 + len(p.Name)
	}
	text.Grow(size)
	for _, p := range pods {
		text.WriteString(p.Namespace)
		text.WriteByte('/')
		text.WriteString(p.Name)
	}
	out, rest := make([]string, len(pods)), text.String()
	for i, p := range pods {
		n := len(p.Namespace) + 1 + len(p.Name)
		out[i], rest = rest[:n], rest[n:]
	}
	return out
}

// describe returns the node without the fields in which its copies differ, Name and Pods. Nodes of one variant share
// the labels.
func (pb planBuilder) describe(dn *describedNode, labels requirements.Labels) PlannedNode {
	p := pb.problem.Stock.PoolOf(dn.node.offer)
	return PlannedNode{
		Pool: p.Name, NodeClass: p.NodeClass,
		Taints: p.Taints, StartupTaints: p.StartupTaints,
		Labels:    labels,
		Requests:  pb.requests(dn),
		Offerings: dn.options.offerings, Requirements: dn.options.requirements, Relaxed: dn.options.relaxed,
	}
}

// requests returns the total requests of the node's pods and of the DaemonSet pods that its cheapest offering would
// have.
func (pb planBuilder) requests(dn *describedNode) resources.Amounts {
	sum := pb.problem.Stock.ShapeOf(dn.options.offers[0]).Daemons
	for _, a := range dn.node.allocations {
		sum = sum.Add(pb.queue.Classes[a.class].Amounts.Times(int64(a.n)))
	}
	return sum
}

// narrowedRequirements returns the NodePool's requirements, limited to the instance types, zones and capacity types of
// the launch options, the capacity reservation and the chosen custom labels. It lowers minValues that the launch
// options violate to the number of values that remain, and drops minValues for a node on a reserved instance.
func narrowedRequirements(p *offering.Pool, v *offering.Variant, lo *launchOptions) []requirements.Requirement {
	var types, zones, capacityTypes []string
	for i := range lo.offerings {
		c := &lo.offerings[i]
		if i == 0 || c.InstanceType != lo.offerings[i-1].InstanceType { // offerings of one type are usually adjacent
			types = append(types, c.InstanceType)
		}
		if !slices.Contains(zones, c.Zone) {
			zones = append(zones, c.Zone)
		}
		if !slices.Contains(capacityTypes, c.CapacityType) {
			capacityTypes = append(capacityTypes, c.CapacityType)
		}
	}
	values := map[string][]string{catalog.LabelInstanceType: types, catalog.LabelZone: zones, catalog.LabelCapacityType: capacityTypes}
	for key, all := range values {
		slices.Sort(all)
		values[key] = slices.Compact(all)
	}
	reservation := lo.offerings[0].Reservation
	if reservation != "" {
		values[catalog.LabelReservationID] = []string{reservation}
	}
	for key, value := range v.Chosen {
		values[key] = []string{value}
	}
	minValues := map[string]int{} // by key in values
	var out []requirements.Requirement
	for _, r := range p.Requirements {
		if reservation != "" {
			r.MinValues = 0
		}
		for _, relaxation := range lo.relaxed {
			if relaxation.Key == r.Key {
				r.MinValues = min(r.MinValues, relaxation.Have)
			}
		}
		if _, ok := values[r.Key]; ok {
			minValues[r.Key] = max(minValues[r.Key], r.MinValues)
			continue
		}
		out = append(out, r)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, requirements.Requirement{Key: key, Operator: requirements.In, Values: values[key], MinValues: minValues[key]})
	}
	slices.SortStableFunc(out, func(a, b requirements.Requirement) int {
		return cmp.Or(
			cmp.Compare(a.Key, b.Key), cmp.Compare(string(a.Operator), string(b.Operator)), slices.Compare(a.Values, b.Values),
		)
	})
	return out
}

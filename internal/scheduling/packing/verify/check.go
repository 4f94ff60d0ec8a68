package verify

import (
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// Check returns a sentence for each rule that the plan violates, sorted; nil if
// the plan is valid.
func Check(s cluster.Snapshot, market catalog.Market, plan packing.Plan) []string {
	c := newChecker(s, market)

	// 1. Each planned node and each existing node by itself.
	for i := range plan.PlannedNodes {
		c.checkPlannedNode(&plan.PlannedNodes[i])
	}
	c.checkPlacements(plan.Placements)

	// 2. All nodes together.
	c.checkLimits()
	c.checkReservations()
	c.checkClaims()
	t := newTopology(c)
	t.checkRules()

	// 3. The refused pods, and whether each pod has a place or a refusal.
	c.checkRefusals(plan, t)
	c.checkOutcomes()
	c.checkPrice(plan)

	slices.Sort(c.violations)
	return slices.Compact(c.violations)
}

type checker struct {
	snapshot cluster.Snapshot
	market   catalog.Market

	pools    map[string]*cluster.Pool
	types    map[typeName]*catalog.Type
	pods     map[string]*cluster.Pod
	outcomes map[string]int // by ID of a pod: number of its places and refusals

	places []place         // the nodes, in the order of the snapshot, then the planned nodes
	nodes  map[string]int  // by name of an existing node: index in places
	names  map[string]bool // names of the planned nodes

	taken      map[string]int             // by capacity reservation: number of planned nodes and NodeClaims that will use an instance
	claimZones map[string]map[string]bool // by volume claim: the zones that its pods may be in

	demandIndex map[string]int       // by identity: index in demands
	demands     []demand             // the distinct requirements of pods on a node's labels and taints
	offers      map[offerName]*offer // cache of cachedOffer

	violations []string // the sentences about violated rules
}

// place is an existing node or a planned node, with the pods that the plan places there.
type place struct {
	name   string        // "node worker-1", "planned node general-1"
	node   *cluster.Node // nil for a planned node
	offers []*offer      // for a planned node: the offerings that it may be launched as
	pods   []*cluster.Pod
}

func newChecker(s cluster.Snapshot, market catalog.Market) *checker {
	c := &checker{
		snapshot: s, market: market,
		pools: map[string]*cluster.Pool{}, types: map[typeName]*catalog.Type{},
		pods: make(map[string]*cluster.Pod, len(s.Pods)), outcomes: make(map[string]int, len(s.Pods)),
		nodes: map[string]int{}, names: map[string]bool{}, claimZones: map[string]map[string]bool{}, taken: map[string]int{},
		demandIndex: map[string]int{}, offers: map[offerName]*offer{},
	}
	for i := range s.Pools {
		c.pools[s.Pools[i].Name] = &s.Pools[i]
	}
	for class, cat := range market {
		for i := range cat.Types {
			c.types[typeName{class, cat.Types[i].Name}] = &cat.Types[i]
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		c.nodes[n.Name] = len(c.places)
		c.places = append(c.places, place{name: "node " + n.Name, node: n})
	}
	for i := range s.Pods {
		c.pods[s.Pods[i].ID()] = &s.Pods[i]
	}
	return c
}

func (c *checker) report(format string, args ...any) {
	c.violations = append(c.violations, fmt.Sprintf(format, args...))
}

// recordPod returns the pod with that ID, and records that the plan places it; where names the node. It returns nil for
// a pod that is not in the snapshot.
func (c *checker) recordPod(id, where string) *cluster.Pod {
	p, ok := c.pods[id]
	if !ok {
		c.report("%s has pod %s, which is not in the snapshot", where, id)
		return nil
	}
	c.outcomes[id]++
	if p.Unplannable != "" {
		c.report("%s has pod %s, which cannot be planned for: %s", where, id, p.Unplannable)
	}
	return p
}

// checkOutcomes checks that every pod has exactly one place or refusal.
func (c *checker) checkOutcomes() {
	for i := range c.snapshot.Pods {
		id := c.snapshot.Pods[i].ID()
		if n := c.outcomes[id]; n != 1 {
			c.report("pod %s has %d places and refusals, want 1", id, n)
		}
	}
}

func (c *checker) checkPrice(plan packing.Plan) {
	var sum catalog.Price
	for _, pn := range plan.PlannedNodes {
		if len(pn.Offerings) > 0 {
			sum += pn.Offerings[0].Price // the cheapest
		}
	}
	if sum != plan.Price {
		c.report("the planned nodes cost %s, the plan says %s", sum, plan.Price)
	}
	if plan.Price < plan.LowerBound {
		c.report("the plan costs %s, less than its lower bound %s", plan.Price, plan.LowerBound)
	}
}

package workload

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/bench/fleet"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// WastefulFleet is a row of the consolidation benchmark: a fleet that is more expensive than necessary.
type WastefulFleet struct {
	Name  string // name, which the flag -run matches
	About string // short description

	// Build builds a new fleet. Its only error is a missing file: see ErrMissing.
	Build func() (*fleet.Fleet, error)

	SpotToSpot bool          // spot instances may be replaced by other spot instances
	ChurnTime  time.Duration // how long pods come and go; pods that run at its end stay. 0: pods do not come or go
}

// WastefulFleets returns the rows of the consolidation benchmark. traces is the folder with the traces.
func WastefulFleets(traces string) []WastefulFleet {
	var out []WastefulFleet
	for _, n := range []int{100, 500, 2000} {
		out = append(out,
			WastefulFleet{
				Name:  fmt.Sprint("halved-", n),
				About: fmt.Sprintf("%d nodes, after half of the pods have gone", n),
				Build: func() (*fleet.Fleet, error) { return halved(n) },
			},
			WastefulFleet{
				Name:  fmt.Sprint("cheaper-", n),
				About: fmt.Sprintf("%d full nodes, after AMD has become a third cheaper", n),
				Build: func() (*fleet.Fleet, error) { return cheaper(n) },
			},
			WastefulFleet{
				Name: fmt.Sprint("spot-", n), About: fmt.Sprintf("%d nodes, half of them spot, after two fifths of the pods have gone", n),
				Build: func() (*fleet.Fleet, error) { return halfSpot(n) }, SpotToSpot: true,
			},
		)
	}
	return append(out, WastefulFleet{
		Name: "openb-all", About: "the last two hours of each of the trace's last 30 days, replayed at the same time in one cluster, at the recorded speed", ChurnTime: replayFor,
		Build: func() (*fleet.Fleet, error) { return replay(traces) },
	})
}

// fleetPool returns a NodePool for amd64 instances of at most 32 vCPUs, with consolidation and a disruption budget of
// 10 %.
func fleetPool(capacityTypes karpv1.Requirement) *karpv1.NodePool {
	p := pool(poolName, amd64(), atMost32CPUs(), capacityTypes)
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
	p.Spec.Disruption.ConsolidateAfter = karpv1.After(0)
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "10%"}}
	return p
}

// podsPerNode is the approximate number of pods on a full node of at most 32 vCPUs.
const podsPerNode = 75

// halved returns a fleet of n nodes that were launched for twice as many pods as they have.
func halved(n int) (*fleet.Fleet, error) {
	market, err := realMarket()
	if err != nil {
		return nil, err
	}
	f := fleet.New([]*karpv1.NodePool{fleetPool(onDemand())}, market)
	return f, nodeStock{count: n, market: market, deleted: 50}.fill(f)
}

// cheaper returns a fleet of n nodes that were launched when the price of AMD instances was 1.5 times the current
// price. The nodes are nearly full: 5 % of their pods were deleted.
func cheaper(n int) (*fleet.Fleet, error) {
	market, err := realMarket()
	if err != nil {
		return nil, err
	}
	before := marketOf(nil)
	offered := before[className]
	for _, t := range market[className].Types {
		if t.Labels[catalog.LabelCPUManufacturer] == "amd" {
			t = t.WithOfferings(raisePrices(t.Offerings))
		}
		offered.Types = append(offered.Types, t)
	}
	before[className] = offered
	f := fleet.New([]*karpv1.NodePool{fleetPool(onDemand())}, market)
	return f, nodeStock{count: n, market: before, deleted: 5}.fill(f)
}

func raisePrices(offerings []catalog.Offering) []catalog.Offering {
	out := slices.Clone(offerings)
	for i := range out {
		out[i].Price = out[i].Price * 3 / 2
	}
	return out
}

// halfSpot returns a fleet of n nodes. Half of them were launched without spot capacity in the market, the others
// with it.
func halfSpot(n int) (*fleet.Fleet, error) {
	types, err := regionTypes()
	if err != nil {
		return nil, err
	}
	onDemandMarket, err := realMarket()
	if err != nil {
		return nil, err
	}
	market := marketOf(types)
	f := fleet.New([]*karpv1.NodePool{fleetPool(anyCapacityType())}, market)
	if err := (nodeStock{count: n / 2, market: onDemandMarket, deleted: 40, name: "steady"}).fill(f); err != nil {
		return nil, err
	}
	return f, nodeStock{count: n - n/2, market: market, deleted: 40, name: "cheap"}.fill(f)
}

// nodeStock describes nodes of a fleet. They were launched for pods of which a percentage has been deleted since.
type nodeStock struct {
	count   int            // number of nodes
	market  catalog.Market // offerings and prices when the nodes were launched
	deleted int            // percentage of the pods that have been deleted
	name    string         // prefix of the pods' names; empty: none
}

// fill adds the nodes to the fleet. It plans for a quarter more pods each time, until the plan has at least count
// nodes. Then it adds the most expensive nodes of this plan, because the cheapest nodes of a plan are not full.
func (s nodeStock) fill(f *fleet.Fleet) error {
	for pods := s.count * podsPerNode; pods < s.count*podsPerNode*16; pods += pods / 4 {
		deployments := mixedDeployments(pods, max(pods/100, 20), 21) // 100 pods each, if that gives 20 deployments
		for i := range deployments {
			deployments[i] = withPrefix(deployments[i], s.name)
		}
		objects := podsOf(deployments)
		o := snapshot.Objects{Pools: f.Pools, Pods: objects}
		plan := packing.Solve(o.Snapshot(snapshot.View{Now: fleet.Start, Market: s.market}), s.market, packing.DefaultEffort)
		if len(plan.PlannedNodes) < s.count {
			continue
		}
		return s.place(f, plan.PlannedNodes[len(plan.PlannedNodes)-s.count:], objects)
	}
	return fmt.Errorf("make a fleet: a plan for up to %d pods has fewer than %d nodes", s.count*podsPerNode*16, s.count)
}

func withPrefix(d deployment, prefix string) deployment {
	if prefix == "" {
		return d
	}
	out := newDeployment(prefix+"-"+d.name, d.replicas, 0, 0)
	out.template = d.template
	return out
}

// place adds the planned nodes to the fleet, with their pods that are not deleted.
func (s nodeStock) place(f *fleet.Fleet, planned []packing.PlannedNode, objects []*corev1.Pod) error {
	byID := make(map[string]*corev1.Pod, len(objects))
	for _, p := range objects {
		byID[p.Namespace+"/"+p.Name] = p
	}
	random := seededRandom(22)
	for _, m := range planned {
		order, err := OrderOf(f.Market, m)
		if err != nil {
			return err
		}
		var pods []*corev1.Pod
		for _, id := range m.Pods {
			if random.IntN(100) >= s.deleted {
				pods = append(pods, byID[id])
			}
		}
		order.NominatedPods = nil // the pods are bound already
		f.Place(order, pods)
	}
	return nil
}

// OrderOf returns the order that launches a planned node with its cheapest offering, at the market's price. It is an
// error if the market does not have this offering.
func OrderOf(market catalog.Market, m packing.PlannedNode) (fleet.Order, error) {
	c := m.Offerings[0]
	for _, t := range market.Types(m.NodeClass, m.Pool) {
		for _, o := range t.Offerings {
			if t.Name == c.InstanceType && o.Zone == c.Zone && o.CapacityType == c.CapacityType {
				return fleet.Order{Pool: m.Pool, Class: m.NodeClass, Type: t, Offering: o, NominatedPods: m.Pods}, nil
			}
		}
	}
	return fleet.Order{}, fmt.Errorf("order %s %s in %s: the market has no such offering", c.CapacityType, c.InstanceType, c.Zone)
}

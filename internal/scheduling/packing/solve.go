package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Effort limits the work for one plan, in steps. A step compares one class of pods for one node.
// The zero value means DefaultEffort.
type Effort int

// DefaultEffort is enough for 100,000 pods in 5,000 classes. A plan that uses all of these steps takes about ten
// seconds; most plans take a thousandth of that time.
const DefaultEffort Effort = 1_000_000_000

// Solve places every pod of the snapshot on an existing node or a new one, at the lowest price that
// it finds. It is a pure function: the same NodePools, nodes, pods and offerings, in any order,
// give the same plan. effort limits the work; 0 and negative values mean DefaultEffort.
func Solve(s cluster.Snapshot, market catalog.Market, effort Effort) Plan {
	if effort <= 0 {
		effort = DefaultEffort
	}
	// 1. Group the pods and list the offerings.
	queue := parallel.Later(func() *podgroup.Queue { return offering.Queue(s, market) }) // in parallel with reading the market
	st := offering.New(s, market, queue)
	pods := queue()
	accepts := st.Accept(pods)
	q := pending.NewQueue(pods)
	q.SetAccepted(accepts)
	rooms := existing.NewRooms(s, pods)
	topo := existing.NewTopologyState(pods, accepts, rooms, s.Nodes)
	q.ApplyDaemonPods(topo.DaemonPods, accepts)

	// 2. Assign pods with domain rules to zones or other domains.
	pr := &pending.Problem{Stock: st, Accepts: accepts, Queue: q, Rooms: rooms, Effort: int(effort), Weight: pending.BulkWeights(st.Dims)}
	sol := newSolution(pr, topo)
	newSplitter(sol).split()
	for attempt := 1; ; attempt++ {
		// 3. Fill existing nodes. 4. Plan new nodes for the rest.
		newPlacer(sol).placeAll()

		// 5. New nodes may add domains that spreads did not count. If a domain had no room for
		// pods that were assigned to the domain, pods in other domains may violate their spread. In both
		// cases, plan again with the added domains, and with the number of pods that each domain could take.
		if projected := newDomainProjection(sol).projectDomains(topo); projected != nil {
			topo = projected
			if attempt < maxAttempts && sol.work.steps <= sol.work.limit/2 {
				sol = sol.restart(topo)
				continue
			}
		}
		if !sol.queue.HasShortDomain() {
			break
		}
		next := sol.restart(topo)
		if sol.placedAsAssigned(next) {
			break
		}
		if attempt == maxAttempts || next.work.steps > next.work.limit/2 {
			sol.removeUnassigned(next)
			break
		}
		sol = next
	}

	// 6. Drop placements that depend on pods that were not placed.
	newBindingFilter(sol).removeUnbindable(topo)

	// 7. Retry the unplaced pods once more, then explain the rest.
	sol = retryUnplaced(sol, topo)
	plan := newPlanBuilder(sol).buildPlan()
	plan.Refusals, plan.Effort = refusals(sol, topo), effort
	return plan
}

type placer struct {
	queue  *pending.Queue
	prices *pricer
	sol    *solution
}

func newPlacer(sol *solution) placer {
	return placer{queue: sol.queue, prices: sol.prices, sol: sol}
}

// placeAll places the unplaced pods: on existing nodes, then on new nodes. Some pods cannot be placed together with the
// pods that their preferred affinity selects. placeAll then places them without this preference.
func (pc placer) placeAll() {
	newExistingFiller(pc.sol).placeOnExisting(pc.queue.Order)
	newExistingFiller(pc.sol).placeOnExisting(pc.sol.bundler().BundleRequired())
	newExistingFiller(pc.sol).placeOnExisting(pc.queue.AffinityFollowers())
	newExistingFiller(pc.sol).placeOnExisting(pc.sol.bundler().ColocatePreferred())
	pc.placeRestOnNewNodes()
	alone := pc.sol.bundler().RelaxColocation()
	pc.sol.bundler().Unbundle()
	if len(alone) > 0 {
		newExistingFiller(pc.sol).placeOnExisting(alone)
		pc.placeRestOnNewNodes()
		pc.sol.bundler().Unbundle()
	}
}

// placeRestOnNewNodes places unplaced pods on planned nodes with free room, then plans new nodes for the other
// unplaced pods. Placing on planned nodes needs the dual prices.
func (pc placer) placeRestOnNewNodes() {
	if len(pc.sol.planned) > 0 {
		pc.prices.priceClasses(pc.queue.Active())
	}
	newNodeChooser(pc.sol).placeOnNewNodes()
}

// removeUnbindable removes from the plan the pods that kube-scheduler would not bind. topo is the topology state
// before any pod was placed.
func (bf bindingFilter) removeUnbindable(topo *existing.TopologyState) {
	newSpreadVisibility(bf.sol).narrowOfferings()
	bf.removeBlockedPods(topo)
	for bf.removeAffinityCycles(topo) {
		bf.removeBlockedPods(topo)
	}
	bf.sol.bundler().Unbundle()
}

package packing

import (
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// Effort limits the work for one plan, in steps. A step compares one class of pods for one node.
// The zero value means Usual.
type Effort int

// Usual is enough for 100,000 pods in 5,000 classes. A plan that uses all of it takes about ten
// seconds; most take a thousandth of that.
const Usual Effort = 1_000_000_000

// Solve places every pod of the snapshot on an existing node or a new one, at the lowest price that
// it finds. It is a pure function: the same NodePools, nodes, pods and offerings, in any order,
// give the same plan. effort limits the work; 0 and less mean Usual.
func Solve(s cluster.Snapshot, market catalog.Market, effort Effort) Plan {
	if effort <= 0 {
		effort = Usual
	}
	// 1. Group the pods and list the offerings.
	queue := parallel.Later(func() *podgroup.Queue { return offering.Queue(s, market) }) // in parallel with reading the market
	st := offering.New(s, market, queue)
	pods := queue()
	accepts := st.Accept(pods)
	q := newQueue(pods)
	q.setAccepted(accepts)
	rooms := existing.NewRooms(s, pods)
	ground := existing.NewGround(pods, accepts, rooms, s.Nodes)
	q.applyDaemonPods(ground.Guests, accepts)

	// 2. Assign pods with domain rules to zones or other domains.
	pl := newPlanner(st, q, accepts, rooms, ground, int(effort))
	pl.split()
	for attempt := 1; ; attempt++ {
		// 3. Fill existing nodes. 4. Plan new nodes for the rest.
		pl.placeAll()

		// 5. New nodes may add domains that spreads did not count. If a domain could not take the
		// pods assigned to it, pods in other domains may violate their spread. Either way, plan
		// again with what is known now.
		if found := pl.projectDomains(ground); found != nil {
			ground = found
			if attempt < maxAttempts && pl.steps <= pl.effort/2 {
				pl = pl.restart(rooms, ground, q)
				continue
			}
		}
		if !pl.hasShortDomain() {
			break
		}
		next := pl.restart(rooms, ground, q)
		if pl.placedAsAssigned(next) {
			break
		}
		if attempt == maxAttempts || next.steps > next.effort/2 {
			pl.removeUnassigned(next)
			break
		}
		pl = next
	}

	// 6. Drop placements that depend on pods that were not placed.
	pl.removeUnbindable(ground, rooms)

	// 7. Retry the unplaced pods once more, then explain the rest.
	pl = pl.retryUnplaced(ground, rooms, q)
	plan := pl.buildPlan()
	plan.Refusals, plan.Effort = pl.refusals(ground, rooms, q), effort
	return plan
}

// placeAll places the unplaced pods: on existing nodes, then on new ones. Pods that could not be
// placed together with pods that they prefer are then placed alone.
func (pl *planner) placeAll() {
	pl.placeOnExisting(pl.order)
	pl.placeOnExisting(pl.bundleRequired())
	pl.placeOnExisting(pl.affinityFollowers())
	pl.placeOnExisting(pl.colocatePreferred())
	pl.placeRestOnNewNodes()
	alone := pl.relaxColocation()
	pl.unbundle()
	if len(alone) > 0 {
		pl.placeOnExisting(alone)
		pl.placeRestOnNewNodes()
		pl.unbundle()
	}
}

// placeRestOnNewNodes plans new nodes for all unplaced pods, after filling up those already
// planned.
func (pl *planner) placeRestOnNewNodes() {
	if len(pl.planned) > 0 {
		pl.priceClasses(pl.active())
	}
	pl.placeOnNewNodes()
}

// removeUnbindable removes the pods from the plan that kube-scheduler would not bind.
func (pl *planner) removeUnbindable(ground *existing.Ground, r *existing.Rooms) {
	pl.narrowOfferings()
	pl.simulateBinding(ground, r)
	for pl.removeAffinityCycles(ground, r) {
		pl.simulateBinding(ground, r)
	}
	pl.unbundle()
}

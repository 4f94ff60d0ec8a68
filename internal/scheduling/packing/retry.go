package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/packing/pending"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// maxRetries is the maximum number of attempts to place unplaced pods again.
const maxRetries = 24

// retryUnplaced tries to place the unplaced pods again on a copy of the finished plan. Their domain may have had
// no room, or pods that were later unplaced may have used their room. It first
// tries all classes together, then one by one, and returns the better plan. topo is the
// topology state before any pod was placed.
func retryUnplaced(sol *solution, topo *existing.TopologyState) *solution {
	if sol.queue.Unplaced() == 0 {
		return sol
	}
	caps, failed := map[string]int{}, map[int]bool{} // caps of parts, and classes that were tried without success
	together := true
	for range maxRetries {
		if sol.queue.Unplaced() == 0 {
			return sol
		}
		settled := newDomainProjection(sol).topologyAfterPlan(topo)
		next := sol.copyForRetry(settled)
		retry := newRetrier(next)
		next.domainCaps = caps
		retryable := retry.retryableClasses(retry.releaseParts(), failed)
		if len(retryable) == 0 || sol.work.steps > sol.work.limit/2 {
			break
		}
		if !together {
			retryable = retryable[:1]
		}
		retry.placeOnly(retryable)
		better := retry.removeInvalid(settled) && retry.isBetter(sol)
		sol.work.steps = next.work.steps
		if better {
			sol = next
		}
		if !together && !retry.capUnplacedParts(retryable[0], caps) && !better {
			failed[retryable[0]] = true
		}
		together = together && better
	}
	return topUpSpread(retryOneByOne(sol, topo), topo)
}

// retryOneByOne retries pod by pod, because NodePool limits may allow only some pods of a class. If several
// domains get pods at once, the last nodes within the limits may be used for pods that can only be bound after
// the others.
func retryOneByOne(sol *solution, topo *existing.TopologyState) *solution {
	failed := map[int]bool{}
	for range maxRetries {
		if sol.queue.Unplaced() == 0 || !sol.hasLimits() || sol.work.steps > sol.work.limit/2 {
			break
		}
		settled := newDomainProjection(sol).topologyAfterPlan(topo)
		next := sol.copyForRetry(settled)
		retry := newRetrier(next)
		isSplit := func(c int) bool { return len(next.queue.Profile(&next.queue.Classes[c]).Keys) > 0 }
		retryable := slices.DeleteFunc(retry.retryableClasses(retry.releaseParts(), failed), func(c int) bool { return !isSplit(c) })
		if len(retryable) == 0 {
			break
		}
		c := retryable[0]
		rest := retry.keepOneUnit(c)
		retry.placeOnly(retryable[:1])
		next.queue.Classes[c].Pods = append(slices.Clip(next.queue.Classes[c].Pods), rest...)
		next.queue.Left[c] += len(rest) / next.queue.Classes[c].PodsPerUnit
		better := retry.removeInvalid(settled) && retry.isBetter(sol)
		sol.work.steps = next.work.steps
		if better {
			sol = next
		}
		failed[c] = !better
	}
	return sol
}

// retrier tries to place the pods that a solution left, on a copy of that solution.
type retrier struct {
	problem *pending.Problem
	queue   *pending.Queue
	topo    *existing.TopologyState
	prices  *pricer
	work    *work
	sol     *solution
}

func newRetrier(sol *solution) retrier {
	return retrier{problem: sol.problem, queue: sol.queue, topo: sol.topo, prices: sol.prices, work: sol.work, sol: sol}
}

// keepOneUnit removes all unplaced pods but one unit from the class, and returns them.
func (rt retrier) keepOneUnit(c int) []*cluster.Pod {
	class := &rt.queue.Classes[c]
	from := len(class.Pods) - (rt.queue.Left[c]-1)*class.PodsPerUnit
	rest := class.Pods[from:]
	class.Pods, rt.queue.Left[c] = class.Pods[:from], 1
	return rest
}

// removeInvalid removes the pods that kube-scheduler would not bind, given the domains that the plan's nodes
// add. It reports whether the remaining plan is valid.
func (rt retrier) removeInvalid(topo *existing.TopologyState) bool {
	if found := newDomainProjection(rt.sol).projectDomains(topo); found != nil {
		if len(found.EmptyHosts) > len(topo.EmptyHosts) {
			return false
		}
		topo, rt.topo.CountedDomains = found, found.CountedDomains
	}
	newBindingCheck(rt.sol).removeUnbindable(topo)
	return newDomainProjection(rt.sol).projectDomains(topo) == nil
}

// topUpSpread places unplaced pods that a host spread applies to or selects on nodes of the plan.
// Once all nodes have some of these pods, each may have more, as long as no other node is launched
// for them. Pods that are bound last may also use hosts where others could not have been bound
// after them.
func topUpSpread(sol *solution, topo *existing.TopologyState) *solution {
	left := func(c int) bool { return sol.queue.Left[c] > 0 && sol.queue.IsInHostSpread(c) }
	if !slices.ContainsFunc(sol.queue.Order, left) {
		return sol
	}
	settled := newDomainProjection(sol).topologyAfterPlan(topo)
	next := sol.copyForRetry(settled)
	retry := newRetrier(next)
	even := slices.DeleteFunc(retry.releaseParts(), func(c int) bool { return !next.queue.IsInHostSpread(c) })
	if len(even) == 0 || sol.work.steps > sol.work.limit/2 {
		return sol
	}
	retry.markUnplaceableExcept(even)
	newSplitter(next).splitClasses(even)
	for before := -1; before != next.queue.Unplaced(); {
		before = next.queue.Unplaced()
		retry.topUpEvenly()
	}
	if !retry.removeInvalid(settled) || !retry.isBetter(sol) {
		return sol
	}
	return next
}

// topUpEvenly adds pods to planned and existing nodes, as many as host spreads allow given the node with the
// fewest pods now.
func (rt retrier) topUpEvenly() {
	stage, light := slices.Clone(rt.queue.Stage), slices.Clone(rt.queue.DroppedWeight)
	rt.sol.findPlanFewest()
	newExistingFiller(rt.sol).placeOnExisting(rt.queue.Order)
	for active := rt.queue.Active(); len(active) > 0; active = rt.queue.Active() {
		rt.sol.findPlanFewest()
		rt.prices.priceClasses(active)
		f := newFiller(rt.sol, rt.queue.Left)
		rt.sol.planned = f.topUp(rt.sol.planned, active)
		for _, c := range active {
			rt.queue.DropPreference(c)
		}
	}
	rt.queue.Stage, rt.queue.DroppedWeight = stage, light
}

// placeOnly places only pods of these classes.
func (rt retrier) placeOnly(classes []int) {
	rt.markUnplaceableExcept(classes)
	newSplitter(rt.sol).splitClasses(classes)
	newPlacer(rt.sol).placeAll()
}

// markUnplaceableExcept makes all other classes accept no offering and no node.
func (rt retrier) markUnplaceableExcept(classes []int) {
	for c := range rt.queue.Whole {
		if rt.queue.Left[c] > 0 && !slices.Contains(classes, c) {
			newSplitter(rt.sol).markUnplaceable(c)
		}
	}
}

// releaseParts returns the unplaced pods of parts to their whole classes, which then try all stages
// again. It returns the whole classes with unplaced pods.
func (rt retrier) releaseParts() (left []int) {
	for c := range rt.queue.Classes {
		p := &rt.queue.Classes[c]
		if p.Domains == nil || rt.queue.Left[c] == 0 {
			continue
		}
		whole, n := &rt.queue.Classes[p.Base], rt.queue.Left[c]
		from := len(p.Pods) - n*p.PodsPerUnit
		whole.Pods = append(slices.Clip(whole.Pods), p.Pods[from:]...)
		p.Pods = p.Pods[:from]
		rt.queue.Left[p.Base] += n
		rt.queue.Assigned[c] -= n
		rt.queue.Left[c] = 0
	}
	for c := range rt.problem.Queue.Classes {
		if rt.queue.Left[c] > 0 {
			rt.queue.Classes[c].Stages, rt.queue.Classes[c].Nodes = rt.problem.Queue.Classes[c].Stages, rt.problem.Queue.Classes[c].Nodes
			rt.queue.Stage[c], rt.queue.DroppedWeight[c] = 0, rt.queue.InitialDroppedWeight(c)
			left = append(left, c)
		}
	}
	return left
}

// retryableClasses returns the classes for which some node has room that no rule forbids.
func (rt retrier) retryableClasses(classes []int, failed map[int]bool) []int {
	affordable := map[int]bool{} // by accept set
	affords := func(set int) bool {
		yes, ok := affordable[set]
		if !ok {
			yes = rt.anyWithinLimits(set)
			affordable[set] = yes
		}
		return yes
	}
	return slices.DeleteFunc(classes, func(c int) bool { return failed[c] || !rt.mayBePlaced(c, affords) })
}

// mayBePlaced reports whether some existing or new node might take a pod of the class.
func (rt retrier) mayBePlaced(c int, affordable func(set int) bool) bool {
	class := &rt.queue.Classes[c]
	affords := func(set int) bool { return affordable(set) || rt.fitsPlannedNode(class, set) }
	profile := rt.queue.Profile(class)
	if len(profile.Keys) == 0 {
		return slices.ContainsFunc(class.Stages, affords) || rt.sol.existingRoomFor(class, class.AcceptedNodes(rt.sol.rooms)) > 0
	}
	return slices.ContainsFunc(newSplitter(rt.sol).candidatePlaces(c), func(at topology.Place) bool {
		stages, _ := newSplitter(rt.sol).stagesIn(class, at.Domains)
		return (at.Free > 0 || slices.ContainsFunc(stages, affords)) && rt.topo.DomainCounts.Refusal(profile, at.Domains) == nil
	})
}

// fitsPlannedNode reports whether a planned node in the accept set has room for one more unit of the
// class.
func (rt retrier) fitsPlannedNode(class *pending.Class, set int) bool {
	return slices.ContainsFunc(rt.sol.planned, func(pn plannedNode) bool {
		return rt.problem.Accepts.Sets[set].Has(pn.offer) && class.Ask.Fits(pn.free)
	})
}

// anyWithinLimits reports whether the limits allow one more node of the accept set.
func (rt retrier) anyWithinLimits(set int) bool {
	isAllowed := false
	rt.problem.Accepts.Sets[set].Each(func(o int) {
		isAllowed = isAllowed || rt.sol.copiesAllowed(o, 1) > 0
	})
	return isAllowed
}

// capUnplacedParts sets the cap of the class's parts with unplaced pods to 0, so that no pod is
// assigned there again. It reports whether there are any.
func (rt retrier) capUnplacedParts(class int, caps map[string]int) bool {
	hasUnplaced := false
	for c := range rt.queue.Classes {
		if p := &rt.queue.Classes[c]; p.Domains != nil && p.Base == class && rt.queue.Left[c] > 0 {
			caps[pending.PartKey(class, p.Domains)] = 0
			hasUnplaced = true
		}
	}
	return hasUnplaced
}

// isBetter reports whether this plan leaves fewer pods unplaced than other does. Pods of the highest priority
// decide first.
func (rt retrier) isBetter(other *solution) bool {
	diff := map[int32]int{}
	for _, side := range []struct {
		*solution
		sign int
	}{{rt.sol, 1}, {other, -1}} {
		for c := range side.queue.Classes {
			class := &side.queue.Classes[c]
			diff[class.Priority] += side.sign * side.queue.Left[c] * class.PodsPerUnit
		}
	}
	priorities := slices.Sorted(maps.Keys(diff))
	for _, p := range slices.Backward(priorities) {
		if diff[p] != 0 {
			return diff[p] < 0
		}
	}
	return false
}

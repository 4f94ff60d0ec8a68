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

// retryUnplaced tries to place the unplaced pods again, each time on a copy of the plan so far. The domain of a pod
// may have had no room, or pods that were removed later may have used the room. It first tries all classes together,
// as long as each attempt places more pods. Then it tries class by class. It returns the best plan. topo is the
// topology state before any pod was placed.
func retryUnplaced(sol *solution, topo *existing.TopologyState) *solution {
	if sol.queue.Unplaced() == 0 {
		return sol
	}
	caps, failed := map[string]int{}, map[int]bool{} // caps: as solution.domainCaps; failed: classes tried without success
	together := true
	for range maxRetries {
		if sol.queue.Unplaced() == 0 {
			return sol
		}
		after := newDomainProjection(sol).topologyAfterPlan(topo)
		next := sol.copyForRetry(after)
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
		better := retry.removeInvalid(after) && retry.isBetter(sol)
		sol.work.steps = next.work.steps
		if better {
			sol = next
		}
		// A class fails if the plan got no better and capUnplacedParts found no full domain to exclude.
		if !together && !retry.capUnplacedParts(retryable[0], caps) && !better {
			failed[retryable[0]] = true
		}
		together = together && better
	}
	return topUpSpread(retryOneByOne(sol, topo), topo)
}

// retryOneByOne retries classes with domain rules unit by unit, and returns the best plan. NodePool limits may allow
// only some pods of a class. If several domains get pods at once, pods that must be bound late may use up the limits.
// Then no node is left for the pods that must be bound earlier, so no pod can be bound.
func retryOneByOne(sol *solution, topo *existing.TopologyState) *solution {
	failed := map[int]bool{}
	for range maxRetries {
		if sol.queue.Unplaced() == 0 || !sol.hasLimits() || sol.work.steps > sol.work.limit/2 {
			break
		}
		after := newDomainProjection(sol).topologyAfterPlan(topo)
		next := sol.copyForRetry(after)
		retry := newRetrier(next)
		hasDomainRules := func(c int) bool { return len(next.queue.Profile(&next.queue.Classes[c]).Keys) > 0 }
		retryable := slices.DeleteFunc(retry.retryableClasses(retry.releaseParts(), failed), func(c int) bool { return !hasDomainRules(c) })
		if len(retryable) == 0 {
			break
		}
		c := retryable[0]
		rest := retry.keepOneUnit(c)
		retry.placeOnly(retryable[:1])
		next.queue.Classes[c].Pods = append(slices.Clip(next.queue.Classes[c].Pods), rest...)
		next.queue.Left[c] += len(rest) / next.queue.Classes[c].PodsPerUnit
		better := retry.removeInvalid(after) && retry.isBetter(sol)
		sol.work.steps = next.work.steps
		if better {
			sol = next
		}
		failed[c] = !better
	}
	return sol
}

// retrier tries to place the unplaced pods of a solution, on a copy of that solution.
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

// keepOneUnit removes the unplaced pods of the class, except one unit, and returns the removed pods.
func (rt retrier) keepOneUnit(c int) []*cluster.Pod {
	class := &rt.queue.Classes[c]
	from := len(class.Pods) - (rt.queue.Left[c]-1)*class.PodsPerUnit
	rest := class.Pods[from:]
	class.Pods, rt.queue.Left[c] = class.Pods[:from], 1
	return rest
}

// removeInvalid removes the pods that kube-scheduler would not bind, given the domains that the plan's nodes add to
// topo. It reports whether the remaining plan is valid. It reports false, without removing pods, if planned nodes
// violate a host spread of pods that are already placed.
func (rt retrier) removeInvalid(topo *existing.TopologyState) bool {
	if projected := newDomainProjection(rt.sol).projectDomains(topo); projected != nil {
		if len(projected.EmptyHosts) > len(topo.EmptyHosts) {
			return false
		}
		topo, rt.topo.CountedDomains = projected, projected.CountedDomains
	}
	newBindingFilter(rt.sol).removeUnbindable(topo)
	return newDomainProjection(rt.sol).projectDomains(topo) == nil
}

// topUpSpread places unplaced pods on existing and planned nodes if a host spread applies to the pods or selects them,
// and returns the better plan. Once all nodes have some of these pods, each node may have more of them, as long as no
// other node is launched. These pods are bound last, so the spreads of other pods on a node do not limit them.
func topUpSpread(sol *solution, topo *existing.TopologyState) *solution {
	isLeft := func(c int) bool { return sol.queue.Left[c] > 0 && sol.queue.IsInHostSpread(c) }
	if !slices.ContainsFunc(sol.queue.Order, isLeft) {
		return sol
	}
	after := newDomainProjection(sol).topologyAfterPlan(topo)
	next := sol.copyForRetry(after)
	retry := newRetrier(next)
	classes := slices.DeleteFunc(retry.releaseParts(), func(c int) bool { return !next.queue.IsInHostSpread(c) })
	if len(classes) == 0 || sol.work.steps > sol.work.limit/2 {
		return sol
	}
	retry.markUnplaceableExcept(classes)
	newSplitter(next).splitClasses(classes)
	for before := -1; before != next.queue.Unplaced(); {
		before = next.queue.Unplaced()
		retry.topUpEvenly()
	}
	if !retry.removeInvalid(after) || !retry.isBetter(sol) {
		return sol
	}
	return next
}

// topUpEvenly adds pods to existing and planned nodes, as many as host spreads allow with the current number of pods
// on the node with the fewest. It leaves the stages and dropped preferences of the classes as they were.
func (rt retrier) topUpEvenly() {
	stage, droppedWeight := slices.Clone(rt.queue.Stage), slices.Clone(rt.queue.DroppedWeight)
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
	rt.queue.Stage, rt.queue.DroppedWeight = stage, droppedWeight
}

func (rt retrier) placeOnly(classes []int) {
	rt.markUnplaceableExcept(classes)
	newSplitter(rt.sol).splitClasses(classes)
	newPlacer(rt.sol).placeAll()
}

// markUnplaceableExcept makes all other classes with unplaced pods accept no offering and no node.
func (rt retrier) markUnplaceableExcept(classes []int) {
	for c := range rt.queue.WholeCount {
		if rt.queue.Left[c] > 0 && !slices.Contains(classes, c) {
			newSplitter(rt.sol).markUnplaceable(c)
		}
	}
}

// releaseParts moves the unplaced pods of parts back to their whole classes. It returns the whole classes with
// unplaced pods, which start again with their first stage and all preferences.
func (rt retrier) releaseParts() (left []int) {
	for c := range rt.queue.Classes {
		p := &rt.queue.Classes[c]
		if p.Domains == nil || rt.queue.Left[c] == 0 {
			continue
		}
		whole, n := &rt.queue.Classes[p.WholeClass], rt.queue.Left[c]
		from := len(p.Pods) - n*p.PodsPerUnit
		whole.Pods = append(slices.Clip(whole.Pods), p.Pods[from:]...)
		p.Pods = p.Pods[:from]
		rt.queue.Left[p.WholeClass] += n
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

// retryableClasses returns the classes in the list that did not fail before and that some node might take.
func (rt retrier) retryableClasses(classes []int, failed map[int]bool) []int {
	cache := map[int]bool{} // by accept set: result of anyWithinLimits
	withinLimits := func(set int) bool {
		allowed, ok := cache[set]
		if !ok {
			allowed = rt.anyWithinLimits(set)
			cache[set] = allowed
		}
		return allowed
	}
	return slices.DeleteFunc(classes, func(c int) bool { return failed[c] || !rt.mayBePlaced(c, withinLimits) })
}

// mayBePlaced reports whether some existing, planned or new node might take a pod of the class. withinLimits
// reports whether limits allow a new node of an accept set.
func (rt retrier) mayBePlaced(c int, withinLimits func(set int) bool) bool {
	class := &rt.queue.Classes[c]
	mayTake := func(set int) bool { return withinLimits(set) || rt.fitsPlannedNode(class, set) }
	profile := rt.queue.Profile(class)
	if len(profile.Keys) == 0 {
		return slices.ContainsFunc(class.Stages, mayTake) || rt.sol.existingRoomFor(class, class.AcceptedNodes(rt.sol.rooms)) > 0
	}
	return slices.ContainsFunc(newSplitter(rt.sol).candidatePlaces(c), func(place topology.Place) bool {
		stages, _ := newSplitter(rt.sol).stagesIn(class, place.Domains)
		return (place.Free > 0 || slices.ContainsFunc(stages, mayTake)) && rt.topo.DomainCounts.Refusal(profile, place.Domains) == nil
	})
}

// fitsPlannedNode reports whether a planned node, whose offering is in the accept set, has room for one more unit of
// the class.
func (rt retrier) fitsPlannedNode(class *pending.Class, set int) bool {
	return slices.ContainsFunc(rt.sol.planned, func(pn plannedNode) bool {
		return rt.problem.Accepts.Sets[set].Has(pn.offer) && class.Ask.Fits(pn.free)
	})
}

// anyWithinLimits reports whether NodePool limits and reservations allow one more node of the accept set.
func (rt retrier) anyWithinLimits(set int) bool {
	isAllowed := false
	rt.problem.Accepts.Sets[set].Each(func(o int) {
		isAllowed = isAllowed || rt.sol.copiesAllowed(o, 1) > 0
	})
	return isAllowed
}

// capUnplacedParts sets caps to 0 for the class's parts with unplaced pods, so that no pod is assigned to their
// domains again. It reports whether there are such parts. caps is as solution.domainCaps.
func (rt retrier) capUnplacedParts(class int, caps map[string]int) bool {
	hasUnplaced := false
	for c := range rt.queue.Classes {
		if p := &rt.queue.Classes[c]; p.Domains != nil && p.WholeClass == class && rt.queue.Left[c] > 0 {
			caps[pending.PartKey(class, p.Domains)] = 0
			hasUnplaced = true
		}
	}
	return hasUnplaced
}

// isBetter reports whether the retrier's plan leaves fewer pods unplaced than other. The highest priority with a
// difference decides.
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

package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// maxRetries bounds how often unplaced pods are tried again.
const maxRetries = 24

// retryUnplaced tries to place the unplaced pods once more, given the rest of the plan. They may
// have lost their place to pods that then found none, or their domain could not take them. It first
// tries all classes together, then one by one, and returns the better plan. ground, r and q are
// those from before any pod was placed.
func (pl *planner) retryUnplaced(ground *existing.Ground, r *existing.Rooms, q *queue) *planner {
	if pl.unplaced() == 0 {
		return pl
	}
	caps, failed := map[string]int{}, map[int]bool{} // parts and classes that were tried without success
	together := true
	for range maxRetries {
		if pl.unplaced() == 0 {
			return pl
		}
		settled := pl.groundAfterPlan(ground)
		next := pl.copyForRetry(settled, r, q)
		next.domainCaps = caps
		retryable := next.retryableClasses(next.releaseParts(q), failed)
		if len(retryable) == 0 || pl.steps > pl.effort/2 {
			break
		}
		if !together {
			retryable = retryable[:1]
		}
		next.placeOnly(retryable)
		better := next.removeInvalid(settled, r) && next.isBetter(pl)
		pl.steps = next.steps
		if better {
			pl = next
		}
		if !together && !next.capUnplacedParts(retryable[0], caps) && !better {
			failed[retryable[0]] = true
		}
		together = together && better
	}
	return pl.retryOneByOne(ground, r, q).topUpSpread(ground, r, q)
}

// retryOneByOne does the same pod by pod, where limits allow only some pods of a class. If several
// domains get pods at once, the last nodes may go to pods that can only be bound after the others.
func (pl *planner) retryOneByOne(ground *existing.Ground, r *existing.Rooms, q *queue) *planner {
	failed := map[int]bool{}
	for range maxRetries {
		if pl.unplaced() == 0 || !pl.hasLimits() || pl.steps > pl.effort/2 {
			break
		}
		settled := pl.groundAfterPlan(ground)
		next := pl.copyForRetry(settled, r, q)
		isSplit := func(c int) bool { return len(next.q.profile(&next.q.classes[c]).Keys) > 0 }
		retryable := slices.DeleteFunc(next.retryableClasses(next.releaseParts(q), failed), func(c int) bool { return !isSplit(c) })
		if len(retryable) == 0 {
			break
		}
		c := retryable[0]
		rest := next.keepOneUnit(c)
		next.placeOnly(retryable[:1])
		next.q.classes[c].Pods = append(slices.Clip(next.q.classes[c].Pods), rest...)
		next.left[c] += len(rest) / next.q.classes[c].podsPerUnit
		better := next.removeInvalid(settled, r) && next.isBetter(pl)
		pl.steps = next.steps
		if better {
			pl = next
		}
		failed[c] = !better
	}
	return pl
}

// keepOneUnit removes all unplaced pods but one unit from the class, and returns them.
func (pl *planner) keepOneUnit(c int) []*cluster.Pod {
	class := &pl.q.classes[c]
	from := len(class.Pods) - (pl.left[c]-1)*class.podsPerUnit
	rest := class.Pods[from:]
	class.Pods, pl.left[c] = class.Pods[:from], 1
	return rest
}

// removeInvalid removes what kube-scheduler would not bind, given the domains that the plan's nodes
// add. It reports whether the rest is valid.
func (pl *planner) removeInvalid(ground *existing.Ground, r *existing.Rooms) bool {
	if found := pl.projectDomains(ground); found != nil {
		if len(found.Bare) > len(ground.Bare) {
			return false
		}
		ground, pl.ground.Domains = found, found.Domains
	}
	pl.removeUnbindable(ground, r)
	return pl.projectDomains(ground) == nil
}

// topUpSpread places unplaced pods that a host spread applies to or selects on nodes of the plan.
// Once all nodes have some of these pods, each may have more, as long as no other node is launched
// for them. Pods that are bound last may also use hosts where others could not have been bound
// after them.
func (pl *planner) topUpSpread(ground *existing.Ground, r *existing.Rooms, q *queue) *planner {
	left := func(c int) bool { return pl.left[c] > 0 && pl.isInHostSpread(c) }
	if !slices.ContainsFunc(pl.order, left) {
		return pl
	}
	settled := pl.groundAfterPlan(ground)
	next := pl.copyForRetry(settled, r, q)
	even := slices.DeleteFunc(next.releaseParts(q), func(c int) bool { return !next.isInHostSpread(c) })
	if len(even) == 0 || pl.steps > pl.effort/2 {
		return pl
	}
	next.markUnplaceableExcept(even)
	next.splitClasses(even)
	for before := -1; before != next.unplaced(); {
		before = next.unplaced()
		next.topUpEvenly()
	}
	if !next.removeInvalid(settled, r) || !next.isBetter(pl) {
		return pl
	}
	return next
}

// topUpEvenly adds pods to planned and existing nodes as far as the nodes with the fewest pods
// currently allow.
func (pl *planner) topUpEvenly() {
	stage, light := slices.Clone(pl.stage), slices.Clone(pl.droppedWeight)
	pl.findPlanFewest()
	pl.placeOnExisting(pl.order)
	for active := pl.active(); len(active) > 0; active = pl.active() {
		pl.findPlanFewest()
		pl.priceClasses(active)
		f := filler{planner: pl, left: pl.left}
		pl.planned = f.topUp(pl.planned, active)
		for _, c := range active {
			pl.dropPreference(c)
		}
	}
	pl.stage, pl.droppedWeight = stage, light
}

// isInHostSpread reports whether a host spread applies to pods of the class or selects them.
func (pl *planner) isInHostSpread(c int) bool {
	p := pl.q.profile(&pl.q.classes[c])
	spread := func(r topology.Rule) bool { return r.Form == topology.Spread && r.Weight == 0 }
	return slices.ContainsFunc(p.Host, spread) ||
		slices.ContainsFunc(p.HostIn, func(g int) bool { return pl.q.Book.Groups[g].Form == topology.Spread })
}

// unplaced returns how many units are not placed.
func (pl *planner) unplaced() int {
	n := 0
	for _, left := range pl.left {
		n += left
	}
	return n
}

// placeOnly places pods of these classes alone.
func (pl *planner) placeOnly(classes []int) {
	pl.markUnplaceableExcept(classes)
	pl.splitClasses(classes)
	pl.placeAll()
}

// markUnplaceableExcept makes all other classes accept no offering and no node.
func (pl *planner) markUnplaceableExcept(classes []int) {
	for c := range pl.wholeClasses {
		if pl.left[c] > 0 && !slices.Contains(classes, c) {
			pl.markUnplaceable(c)
		}
	}
}

// copyForRetry returns a copy of the plan with rooms, counts and limits computed anew, so that all
// pods placed so far count.
func (pl *planner) copyForRetry(ground *existing.Ground, r *existing.Rooms, q *queue) *planner {
	next := newPlanner(pl.stock, q, pl.accepts, r, ground, pl.effort)
	next.steps, next.withoutHostPreferences, next.narrowedSets = pl.steps, pl.withoutHostPreferences, pl.narrowedSets
	next.q.classes, next.left = slices.Clone(pl.q.classes), slices.Clone(pl.left)
	next.stage, next.droppedWeight = slices.Clone(pl.stage), slices.Clone(pl.droppedWeight)
	next.assigned, next.hostAssigned = maps.Clone(pl.assigned), maps.Clone(pl.hostAssigned)
	next.placements = slices.Clone(pl.placements)
	next.recount()
	for i := range pl.planned {
		next.planned = append(next.planned, next.recomputedNode(&pl.planned[i]))
	}
	next.removeUncounted()
	return next
}

// recount subtracts the placed pods from the rooms and adds them to the counts.
func (pl *planner) recount() {
	for _, at := range pl.placements {
		c := &pl.q.classes[at.class]
		free, host := pl.rooms.Room[at.node].Clone(), pl.rooms.Hosts[at.node].Clone()
		free.Take(c.Ask, at.n)
		pl.addToTally(&host, c, at.n)
		pl.rooms.Set(at.node, free, append(pl.rooms.Ports[at.node], c.Lists...), host)
	}
	pl.ground.FindFewest(pl.rooms, pl.q.Book, pl.ground.Counted)
	for c := range pl.q.classes {
		if p := &pl.q.classes[c]; p.domains != nil {
			pl.ground.Census.Add(pl.q.profile(p), p.domains, pl.unitCount(c)-pl.left[c])
		}
	}
}

// recomputedNode returns the planned node with room and counts computed from its pods, and spends
// the limits for it.
func (pl *planner) recomputedNode(pn *plannedNode) plannedNode {
	out := pl.nodeWith(pn.offer, slices.Clone(pn.allocations))
	out.copies, out.value = pn.copies, pn.value
	out.price = pl.cheapestPrice(&out)
	pl.budgets[pl.stock.VariantOf(pn.offer).Pool].Spend(pl.stock.TypeOf(pn.offer).Capacity, pn.copies)
	return out
}

// releaseParts returns the unplaced pods of parts to their whole classes, which then try all stages
// again. It returns the whole classes with unplaced pods.
func (pl *planner) releaseParts(q *queue) (left []int) {
	for c := range pl.q.classes {
		p := &pl.q.classes[c]
		if p.domains == nil || pl.left[c] == 0 {
			continue
		}
		whole, n := &pl.q.classes[p.base], pl.left[c]
		from := len(p.Pods) - n*p.podsPerUnit
		whole.Pods = append(slices.Clip(whole.Pods), p.Pods[from:]...)
		p.Pods = p.Pods[:from]
		pl.left[p.base] += n
		pl.assigned[c] -= n
		pl.left[c] = 0
	}
	for c := range q.classes {
		if pl.left[c] > 0 {
			pl.q.classes[c].stages, pl.q.classes[c].nodes = q.classes[c].stages, q.classes[c].nodes
			pl.stage[c], pl.droppedWeight[c] = 0, pl.initialDroppedWeight(c)
			left = append(left, c)
		}
	}
	return left
}

// retryableClasses returns those classes for which some node has room and no rule forbids it.
func (pl *planner) retryableClasses(classes []int, failed map[int]bool) []int {
	affordable := map[int]bool{} // by accept set
	affords := func(set int) bool {
		yes, ok := affordable[set]
		if !ok {
			yes = pl.anyWithinLimits(set)
			affordable[set] = yes
		}
		return yes
	}
	return slices.DeleteFunc(classes, func(c int) bool { return failed[c] || !pl.mayBePlaced(c, affords) })
}

// mayBePlaced reports whether some existing or new node might take a pod of the class.
func (pl *planner) mayBePlaced(c int, affordable func(set int) bool) bool {
	class := &pl.q.classes[c]
	affords := func(set int) bool { return affordable(set) || pl.fitsPlannedNode(class, set) }
	profile := pl.q.profile(class)
	if len(profile.Keys) == 0 {
		return slices.ContainsFunc(class.stages, affords) || pl.existingRoomFor(class, pl.acceptedNodes(class)) > 0
	}
	return slices.ContainsFunc(pl.candidatePlaces(c), func(at topology.Place) bool {
		stages, _ := pl.stagesIn(class, at.Domains)
		return (at.Free > 0 || slices.ContainsFunc(stages, affords)) && pl.ground.Census.Refusal(profile, at.Domains) == nil
	})
}

// fitsPlannedNode reports whether a planned node in the accept set has room for one more of the
// class.
func (pl *planner) fitsPlannedNode(class *class, set int) bool {
	return slices.ContainsFunc(pl.planned, func(pn plannedNode) bool { return pl.accepts.Sets[set].Has(pn.offer) && class.Ask.Fits(pn.free) })
}

// anyWithinLimits reports whether the limits allow one more node of the accept set.
func (pl *planner) anyWithinLimits(set int) bool {
	any := false
	pl.accepts.Sets[set].Each(func(o int) {
		any = any || pl.copiesAllowed(o, 1) > 0
	})
	return any
}

// capUnplacedParts sets the cap of the class's parts with unplaced pods to 0, so that no pod is
// assigned there again. It reports whether there are any.
func (pl *planner) capUnplacedParts(class int, caps map[string]int) bool {
	any := false
	for c := range pl.q.classes {
		if p := &pl.q.classes[c]; p.domains != nil && p.base == class && pl.left[c] > 0 {
			caps[capKey(class, p.domains)] = 0
			any = true
		}
	}
	return any
}

// isBetter reports whether this plan leaves fewer pods than other, those of the highest priority
// first.
func (pl *planner) isBetter(other *planner) bool {
	diff := map[int32]int{}
	for _, side := range []struct {
		*planner
		sign int
	}{{pl, 1}, {other, -1}} {
		for c := range side.q.classes {
			class := &side.q.classes[c]
			diff[class.Priority] += side.sign * side.left[c] * class.podsPerUnit
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

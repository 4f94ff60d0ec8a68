package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// mostRescues bounds how often those without a place are tried once more.
const mostRescues = 24

// rescue looks once more for places for those who have none, now that it is known who
// else has: pods may have lost their place to somebody who then found none, or
// have been sent to a domain that could not have them. First all are tried together, then class by
// class. It returns the better plan. ground, r and q are those from before any pod was placed.
func (w *work) rescue(ground *existing.Ground, r *existing.Rooms, q *queue) *work {
	if w.unplaced() == 0 {
		return w
	}
	closed, given := map[string]int{}, map[int]bool{} // parts and classes that were tried in vain
	together := true
	for range mostRescues {
		if w.unplaced() == 0 {
			return w
		}
		there := w.standing(ground)
		next := w.reopened(there, r, q)
		next.caps = closed
		hopeful := next.hopeful(next.release(q), given)
		if len(hopeful) == 0 || w.steps > w.effort/2 {
			break
		}
		if !together {
			hopeful = hopeful[:1]
		}
		next.retry(hopeful)
		better := next.trim(there, r) && next.isBetter(w)
		w.steps = next.steps
		if better {
			w = next
		}
		if !together && !next.close(hopeful[0], closed) && !better {
			given[hopeful[0]] = true
		}
		together = together && better
	}
	return w.singly(ground, r, q).raise(ground, r, q)
}

// singly does the same pod by pod where limits allow for some of a class only: of those that are sent to several domains
// at once, some may get the last machines who can be bound only after the others.
func (w *work) singly(ground *existing.Ground, r *existing.Rooms, q *queue) *work {
	given := map[int]bool{}
	for range mostRescues {
		if w.unplaced() == 0 || !w.limited() || w.steps > w.effort/2 {
			break
		}
		there := w.standing(ground)
		next := w.reopened(there, r, q)
		sent := func(c int) bool { return len(next.q.profile(&next.q.classes[c]).Keys) > 0 }
		hopeful := slices.DeleteFunc(next.hopeful(next.release(q), given), func(c int) bool { return !sent(c) })
		if len(hopeful) == 0 {
			break
		}
		c := hopeful[0]
		rest := next.setAside(c)
		next.retry(hopeful[:1])
		next.q.classes[c].Pods = append(slices.Clip(next.q.classes[c].Pods), rest...)
		next.left[c] += len(rest) / next.q.classes[c].unit
		better := next.trim(there, r) && next.isBetter(w)
		w.steps = next.steps
		if better {
			w = next
		}
		given[c] = !better
	}
	return w
}

// setAside takes all pods that are left of a class out of it but one unit, and returns them.
func (w *work) setAside(c int) []*cluster.Pod {
	class := &w.q.classes[c]
	from := len(class.Pods) - (w.left[c]-1)*class.unit
	rest := class.Pods[from:]
	class.Pods, w.left[c] = class.Pods[:from], 1
	return rest
}

// trim takes out of the plan what kube-scheduler would not bind, with the domains that its machines bring along, and
// reports whether the rest holds.
func (w *work) trim(ground *existing.Ground, r *existing.Rooms) bool {
	if found := w.foresee(ground); found != nil {
		if len(found.Bare) > len(ground.Bare) {
			return false
		}
		ground, w.ground.Domains = found, found.Domains
	}
	w.judge(ground, r)
	return w.foresee(ground) == nil
}

// raise puts pods that are spread over hosts, or counted by such spreads, and have no place, onto the nodes and machines of
// the plan: if all of those have some, they may have more, as long as nothing else is bought for them; and who is bound
// last may go where others would not have been bound after it.
func (w *work) raise(ground *existing.Ground, r *existing.Rooms, q *queue) *work {
	left := func(c int) bool { return w.left[c] > 0 && w.countsOverHosts(c) }
	if !slices.ContainsFunc(w.order, left) {
		return w
	}
	there := w.standing(ground)
	next := w.reopened(there, r, q)
	even := slices.DeleteFunc(next.release(q), func(c int) bool { return !next.countsOverHosts(c) })
	if len(even) == 0 || w.steps > w.effort/2 {
		return w
	}
	next.strandAllBut(even)
	next.splitAll(even)
	for before := -1; before != next.unplaced(); {
		before = next.unplaced()
		next.topUpEvenly()
	}
	if !next.trim(there, r) || !next.isBetter(w) {
		return w
	}
	return next
}

// topUpEvenly adds pods to machines and nodes, as far as those with the fewest allow it at the moment.
func (w *work) topUpEvenly() {
	stage, light := slices.Clone(w.stage), slices.Clone(w.light)
	w.findLevel()
	w.place(w.order)
	for active := w.active(); len(active) > 0; active = w.active() {
		w.findLevel()
		w.appraise(active)
		f := filler{work: w, left: w.left}
		w.machines = f.topUp(w.machines, active)
		for _, c := range active {
			w.giveUp(c)
		}
	}
	w.stage, w.light = stage, light
}

// countsOverHosts reports whether pods of the class are spread over hosts, or counted by those that are.
func (w *work) countsOverHosts(c int) bool {
	p := w.q.profile(&w.q.classes[c])
	spread := func(r topology.Rule) bool { return r.Form == topology.Spread && r.Weight == 0 }
	return slices.ContainsFunc(p.Host, spread) ||
		slices.ContainsFunc(p.HostIn, func(g int) bool { return w.q.Book.Groups[g].Form == topology.Spread })
}

// unplaced is how many units have no place.
func (w *work) unplaced() int {
	n := 0
	for _, left := range w.left {
		n += left
	}
	return n
}

// retry gives places to pods of these classes alone.
func (w *work) retry(classes []int) {
	w.strandAllBut(classes)
	w.splitAll(classes)
	w.fillAll()
}

// strandAllBut notes that pods of other classes may go nowhere.
func (w *work) strandAllBut(classes []int) {
	for c := range w.whole {
		if w.left[c] > 0 && !slices.Contains(classes, c) {
			w.strand(c)
		}
	}
}

// reopened returns the plan as it stands, with all rooms, counts and limits worked out anew.
func (w *work) reopened(ground *existing.Ground, r *existing.Rooms, q *queue) *work {
	next := newWork(w.st, q, w.accepts, r, ground, w.effort)
	next.steps, next.eased, next.narrowed = w.steps, w.eased, w.narrowed
	next.q.classes, next.left = slices.Clone(w.q.classes), slices.Clone(w.left)
	next.stage, next.light = slices.Clone(w.stage), slices.Clone(w.light)
	next.sent, next.clumped = maps.Clone(w.sent), maps.Clone(w.clumped)
	next.placed = slices.Clone(w.placed)
	next.recount()
	for i := range w.machines {
		next.machines = append(next.machines, next.restocked(&w.machines[i]))
	}
	next.discount()
	return next
}

// recount takes what is placed off the rooms, and notes it in the counts.
func (w *work) recount() {
	for _, at := range w.placed {
		c := &w.q.classes[at.class]
		free, host := w.rooms.Room[at.node].Clone(), w.rooms.Hosts[at.node].Clone()
		free.Take(c.Ask, at.n)
		w.tally(&host, c, at.n)
		w.rooms.Set(at.node, free, append(w.rooms.Ports[at.node], c.Lists...), host)
	}
	w.ground.FindFewest(w.rooms, w.q.Book, w.ground.Counted)
	for c := range w.q.classes {
		if p := &w.q.classes[c]; p.cell != nil {
			w.ground.Census.Add(w.q.profile(p), p.cell, w.all(c)-w.left[c])
		}
	}
}

// restocked returns the machine with its room and counts worked out from its pods, and spends the limits for it.
func (w *work) restocked(m *machine) machine {
	out := w.laden(m.offer, slices.Clone(m.takes))
	out.copies, out.worth = m.copies, m.worth
	out.price = w.cheapest(&out)
	w.budgets[w.st.VariantOf(m.offer).Pool].Spend(w.st.TypeOf(m.offer).Capacity, m.copies)
	return out
}

// release gives the pods of parts that have no place back to their whole classes, which may try
// everything again. It returns the whole classes with pods left.
func (w *work) release(q *queue) (left []int) {
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if p.cell == nil || w.left[c] == 0 {
			continue
		}
		whole, n := &w.q.classes[p.base], w.left[c]
		from := len(p.Pods) - n*p.unit
		whole.Pods = append(slices.Clip(whole.Pods), p.Pods[from:]...)
		p.Pods = p.Pods[:from]
		w.left[p.base] += n
		w.sent[c] -= n
		w.left[c] = 0
	}
	for c := range q.classes {
		if w.left[c] > 0 {
			w.q.classes[c].stages, w.q.classes[c].nodes = q.classes[c].stages, q.classes[c].nodes
			w.stage[c], w.light[c] = 0, w.easedTo(c)
			left = append(left, c)
		}
	}
	return left
}

// hopeful returns those of the classes for which there is room somewhere, where no rule is against it.
func (w *work) hopeful(classes []int, given map[int]bool) []int {
	affordable := map[int]bool{} // by accept set
	affords := func(set int) bool {
		yes, ok := affordable[set]
		if !ok {
			yes = w.affordsAny(set)
			affordable[set] = yes
		}
		return yes
	}
	return slices.DeleteFunc(classes, func(c int) bool { return given[c] || !w.hopes(c, affords) })
}

// hopes reports whether some node or machine might take a pod of the class.
func (w *work) hopes(c int, affordable func(set int) bool) bool {
	class := &w.q.classes[c]
	affords := func(set int) bool { return affordable(set) || w.anyMachine(class, set) }
	profile := w.q.profile(class)
	if len(profile.Keys) == 0 {
		return slices.ContainsFunc(class.stages, affords) || w.roomFor(class, w.nodesOf(class)) > 0
	}
	return slices.ContainsFunc(w.places(c), func(at topology.Place) bool {
		stages, _ := w.stagesIn(class, at.Domains)
		return (at.Free > 0 || slices.ContainsFunc(stages, affords)) && w.ground.Census.Refusal(profile, at.Domains) == nil
	})
}

// anyMachine reports whether a machine of the plan that the accept set has has room for one more of the class.
func (w *work) anyMachine(class *class, set int) bool {
	return slices.ContainsFunc(w.machines, func(m machine) bool { return w.accepts.Sets[set].Has(m.offer) && class.Ask.Fits(m.free) })
}

// affordsAny reports whether the limits allow one more machine of the accept set.
func (w *work) affordsAny(set int) bool {
	any := false
	w.accepts.Sets[set].Each(func(o int) {
		any = any || w.affordable(o, 1) > 0
	})
	return any
}

// close notes the parts of the class that have pods without a place, so that nobody is sent there again, and
// reports whether there are any.
func (w *work) close(class int, closed map[string]int) bool {
	any := false
	for c := range w.q.classes {
		if p := &w.q.classes[c]; p.cell != nil && p.base == class && w.left[c] > 0 {
			closed[capKey(class, p.cell)] = 0
			any = true
		}
	}
	return any
}

// isBetter reports whether fewer pods are left than in other, those of the highest priority first.
func (w *work) isBetter(other *work) bool {
	diff := map[int32]int{}
	for _, side := range []struct {
		*work
		sign int
	}{{w, 1}, {other, -1}} {
		for c := range side.q.classes {
			class := &side.q.classes[c]
			diff[class.Priority] += side.sign * side.left[c] * class.unit
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

package verify

import "slices"

// greedy binds pods that the rules allow until no such pod is left, and reports whether all pods are bound. Pods
// without rules (class.free) are held back until other pods need them.
func (o *order) greedy() bool {
	o.buckets, o.bucketsOf, o.waiting = map[obstacle]*bucket{}, map[rule][]*bucket{}, map[company][]int{}
	o.findFirsts()
	var free []int
	for _, i := range o.members {
		if o.classes[o.groups[i].class].free() {
			free = append(free, i)
		} else {
			o.queue = append(o.queue, errand{group: i})
		}
	}
	for {
		o.drain()
		waiting := o.waitingBuckets()
		switch {
		case len(waiting) == 0:
			o.bindAll(free)
			return true
		case o.release(free, waiting):
		case len(o.until) > 0:
			o.until = nil
			for _, b := range o.bucketsOf[heldRule] {
				o.wake(b)
			}
		case o.bindAll(free):
		case o.retry():
		default:
			o.explain()
			return false
		}
	}
}

// findFirsts sets until and first: the affinity rules that count no pod yet, and the groups that must have the first
// pod. These groups select themselves, and no other pod can satisfy the rule in their domain. The other groups that the
// rule counts wait, because the exception for the first pod ends when one of their pods is bound.
func (o *order) findFirsts() {
	o.until, o.first = map[int]bool{}, map[int]bool{}
	supply := map[int]*nearness{} // by affinity rule: the state after all pods are bound that do not have the rule themselves
	for n, r := range o.near {
		if r.pods == 0 {
			supply[n] = o.nears[n].nearness()
		}
	}
	for _, i := range o.members {
		g := &o.groups[i]
		c := &o.classes[g.class]
		for _, n := range o.kinds[c.kind].nears {
			if s := supply[n]; s != nil && c.near != n {
				s.add(g.place, len(g.pods))
			}
		}
	}
	for _, i := range o.members {
		g := &o.groups[i]
		c := &o.classes[g.class]
		s := supply[c.near]
		if c.near < 0 || s == nil || !c.self {
			continue
		}
		at := func(term int) reach { return s.views[term].at(g.place) }
		if _, _, bad := s.misses(at, g.place, false); bad {
			o.until[c.near], o.first[i] = true, true
		}
	}
}

// held returns the affinity rule whose first pod the group must wait for, if any.
func (o *order) held(group int) (int, bool) {
	if len(o.until) == 0 || o.first[group] {
		return 0, false
	}
	for _, n := range o.kinds[o.classes[o.groups[group].class].kind].nears {
		if o.until[n] && o.near[n].pods == 0 {
			return n, true
		}
	}
	return 0, false
}

// drain processes all errands in the queue, and those that are added meanwhile.
func (o *order) drain() {
	for len(o.queue) > 0 {
		e := o.queue[0]
		o.queue = o.queue[1:]
		if e.bucket == nil {
			o.try(e.group)
			continue
		}
		b := e.bucket
		b.queued = false
		for len(b.groups) > 0 {
			i := b.groups[0]
			b.groups = b.groups[1:]
			if o.groups[i].waits != b {
				continue // the group now waits in another bucket
			}
			if o.try(i); o.groups[i].waits == b {
				break
			}
		}
	}
}

// try binds pods of the group until a rule does not allow the next pod.
func (o *order) try(group int) {
	o.groups[group].waits = nil
	for o.groups[group].left > 0 {
		if n, held := o.held(group); held {
			o.park(group, obstacle{rule: heldRule, domain: n, held: true})
			return
		}
		if ob := o.obstacle(group); ob != nil {
			o.park(group, *ob)
			return
		}
		o.bind(group)
	}
}

// park adds the group to the bucket of its obstacle.
func (o *order) park(group int, ob obstacle) {
	b := o.buckets[ob]
	if b == nil {
		b = &bucket{obstacle: ob}
		o.buckets[ob] = b
		o.bucketsOf[ob.rule] = append(o.bucketsOf[ob.rule], b)
	}
	b.groups = append(b.groups, group)
	o.groups[group].waits = b
	if ob.near && !ob.held {
		at := company{near: ob.number, place: o.groups[group].place}
		o.waiting[at] = append(o.waiting[at], group)
	}
}

// bind binds one pod of the group and wakes the waiting groups that this pod may help.
func (o *order) bind(group int) {
	g := &o.groups[group]
	k := &o.kinds[o.classes[g.class].kind]
	before := make([]int, len(k.spreads))
	for i, n := range k.spreads {
		before[i] = o.spread[n].even.least
	}
	o.move(group, 1)
	for i, n := range k.spreads {
		if e := o.spread[n]; e.even.least != before[i] || e.anyCountMatters() {
			for _, b := range o.bucketsOf[rule{number: n}] {
				o.wake(b)
			}
		}
	}
	for _, n := range k.nears {
		o.arrived(n, g.place)
	}
}

// arrived wakes the groups that wait for a pod that the affinity rule near counts, after such a pod was bound to the
// place.
func (o *order) arrived(near, place int) {
	r := o.near[near]
	for term, v := range r.views {
		at := v.at(place)
		if d, ok := at.certain(); ok && r.sure[term][d] == 1 {
			if b := o.buckets[obstacle{rule: rule{near: true, number: near}, term: term, domain: d}]; b != nil {
				for _, i := range b.groups { // one pod helps all of these groups
					o.queue = append(o.queue, errand{group: i})
				}
				b.groups = nil
			}
		}
	}
	at := company{near: near, place: place}
	for _, i := range o.waiting[at] {
		if b := o.groups[i].waits; b != nil && b.near && b.number == near && !b.held {
			o.queue = append(o.queue, errand{group: i})
			o.groups[i].waits = nil
		}
	}
	delete(o.waiting, at)
	if b := o.buckets[obstacle{rule: heldRule, domain: near, held: true}]; b != nil {
		for _, i := range b.groups {
			o.queue = append(o.queue, errand{group: i})
		}
		b.groups = nil
	}
}

// wake adds the bucket to the queue, unless it is there already or has no groups.
func (o *order) wake(b *bucket) {
	if !b.queued && len(b.groups) > 0 {
		b.queued = true
		o.queue = append(o.queue, errand{bucket: b})
	}
}

// waitingBuckets returns the buckets in which groups wait, each once.
func (o *order) waitingBuckets() []*bucket {
	var out []*bucket
	seen := map[*bucket]bool{}
	for _, i := range o.members {
		if b := o.groups[i].waits; b != nil && !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	return out
}

// retry tries the pods of all groups again, and reports whether it bound any. Only if it bound none does greedy fail.
func (o *order) retry() bool {
	bound := false
	for _, i := range o.members {
		before := o.groups[i].left
		o.try(i)
		bound = bound || o.groups[i].left < before
	}
	return bound
}

// release binds one pod of each group in free that may help waiting pods, and reports whether it bound any. These are
// pods in the domains with the fewest pods, and pods to which a waiting pod has affinity.
func (o *order) release(free []int, waiting []*bucket) bool {
	helped := false
	for _, i := range free {
		g := &o.groups[i]
		if g.left == 0 {
			continue
		}
		if _, held := o.held(i); held {
			continue
		}
		if slices.ContainsFunc(waiting, func(b *bucket) bool { return o.helps(g, b) }) {
			o.bind(i)
			helped = true
		}
	}
	return helped
}

// helps reports whether binding a pod of the group may help the groups in the bucket.
func (o *order) helps(g *group, b *bucket) bool {
	k := &o.kinds[o.classes[g.class].kind]
	if b.held {
		return false
	}
	if b.near {
		_, counted := slices.BinarySearch(k.nears, b.number)
		return counted
	}
	if _, counted := slices.BinarySearch(k.spreads, b.number); !counted {
		return false
	}
	e := o.spread[b.number]
	for _, d := range e.view.at(g.place).domains {
		if e.even.count[d] == e.even.least && d != b.domain {
			return true
		}
	}
	return false
}

// bindAll binds all unbound pods of the groups in free, and reports whether there were any.
func (o *order) bindAll(free []int) bool {
	isBound := false
	for _, i := range free {
		for o.groups[i].left > 0 {
			o.bind(i)
			isBound = true
		}
	}
	return isBound
}

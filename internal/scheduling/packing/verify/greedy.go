package verify

import "slices"

// greedy binds pods that the rules allow until no such pod is left, and reports whether all pods are bound. Pods
// without spread and affinity rules (class.isFree) are held back until other pods need them.
func (o *order) greedy() bool {
	o.buckets, o.bucketsOf, o.waiting = map[obstacle]*bucket{}, map[rule][]*bucket{}, map[rulePlace][]int{}
	o.findFirstPods()
	var free []int
	for _, i := range o.members {
		if o.classes[o.groups[i].class].isFree() {
			free = append(free, i)
		} else {
			o.queue = append(o.queue, queueItem{group: i})
		}
	}
	for {
		o.processQueue()
		waiting := o.waitingBuckets()
		switch {
		case len(waiting) == 0:
			o.bindAll(free)
			return true
		case o.release(free, waiting):
		case len(o.awaitFirst) > 0: // the first pods cannot be bound, so the other groups wait for them no longer
			o.awaitFirst = nil
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

// findFirstPods sets firstGroups: the groups that must provide the first pod of an affinity rule that counts no pod
// yet. The affinity rule of such a group selects the group's own pods, and no other pod can satisfy the rule in the
// group's domain. findFirstPods sets awaitFirst to these rules. Other groups that such a rule counts must wait: once
// one of their pods is bound, kube-scheduler's exception for the first pod of a rule ends.
func (o *order) findFirstPods() {
	o.awaitFirst, o.firstGroups = map[int]bool{}, map[int]bool{}
	supply := map[int]*affinityState{} // by affinity rule: the state after all pods without the rule are bound
	for n, r := range o.affinityStates {
		if r.pods == 0 {
			supply[n] = o.affinities[n].initialState()
		}
	}
	for _, i := range o.members {
		g := &o.groups[i]
		c := &o.classes[g.class]
		for _, n := range o.kinds[c.kind].affinities {
			if s := supply[n]; s != nil && c.affinity != n {
				s.add(g.place, len(g.pods))
			}
		}
	}
	for _, i := range o.members {
		g := &o.groups[i]
		c := &o.classes[g.class]
		s := supply[c.affinity]
		if c.affinity < 0 || s == nil || !c.self {
			continue
		}
		at := func(term int) reach { return s.views[term].reachOfPlace(g.place) }
		if _, _, unmet := s.unmetTerm(at, g.place, false); unmet {
			o.awaitFirst[c.affinity], o.firstGroups[i] = true, true
		}
	}
}

// heldBy returns the affinity rule for whose first pod the group must wait; false if there is none.
func (o *order) heldBy(group int) (int, bool) {
	if len(o.awaitFirst) == 0 || o.firstGroups[group] {
		return 0, false
	}
	for _, n := range o.kinds[o.classes[o.groups[group].class].kind].affinities {
		if o.awaitFirst[n] && o.affinityStates[n].pods == 0 {
			return n, true
		}
	}
	return 0, false
}

func (o *order) processQueue() {
	for len(o.queue) > 0 {
		item := o.queue[0]
		o.queue = o.queue[1:]
		if item.bucket == nil {
			o.try(item.group)
			continue
		}
		b := item.bucket
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
		if n, held := o.heldBy(group); held {
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

func (o *order) park(group int, ob obstacle) {
	b := o.buckets[ob]
	if b == nil {
		b = &bucket{obstacle: ob}
		o.buckets[ob] = b
		o.bucketsOf[ob.rule] = append(o.bucketsOf[ob.rule], b)
	}
	b.groups = append(b.groups, group)
	o.groups[group].waits = b
	if ob.isAffinity && !ob.held {
		at := rulePlace{affinity: ob.number, place: o.groups[group].place}
		o.waiting[at] = append(o.waiting[at], group)
	}
}

// bind binds one pod of the group and wakes the waiting groups that this pod may help.
func (o *order) bind(group int) {
	g := &o.groups[group]
	k := &o.kinds[o.classes[g.class].kind]
	before := make([]int, len(k.spreads))
	for i, n := range k.spreads {
		before[i] = o.spreadStates[n].certain.least
	}
	o.move(group, 1)
	for i, n := range k.spreads {
		if e := o.spreadStates[n]; e.certain.least != before[i] || e.anyCountMatters() {
			for _, b := range o.bucketsOf[rule{number: n}] {
				o.wake(b)
			}
		}
	}
	for _, n := range k.affinities {
		o.wakeAffine(n, g.place)
	}
}

// wakeAffine wakes the groups that wait for a pod that the affinity rule counts, after such a pod was bound to the
// place.
func (o *order) wakeAffine(affinity, place int) {
	r := o.affinityStates[affinity]
	for term, v := range r.views {
		at := v.reachOfPlace(place)
		if d, ok := at.certain(); ok && r.sure[term][d] == 1 { // later pods help no further group
			if b := o.buckets[obstacle{rule: rule{isAffinity: true, number: affinity}, term: term, domain: d}]; b != nil {
				for _, i := range b.groups { // one pod helps all of these groups
					o.queue = append(o.queue, queueItem{group: i})
				}
				b.groups = nil
			}
		}
	}
	at := rulePlace{affinity: affinity, place: place}
	for _, i := range o.waiting[at] {
		if b := o.groups[i].waits; b != nil && b.isAffinity && b.number == affinity && !b.held {
			o.queue = append(o.queue, queueItem{group: i})
			o.groups[i].waits = nil
		}
	}
	delete(o.waiting, at)
	if b := o.buckets[obstacle{rule: heldRule, domain: affinity, held: true}]; b != nil {
		for _, i := range b.groups {
			o.queue = append(o.queue, queueItem{group: i})
		}
		b.groups = nil
	}
}

// wake adds the bucket to the queue, unless it is there already or has no groups.
func (o *order) wake(b *bucket) {
	if !b.queued && len(b.groups) > 0 {
		b.queued = true
		o.queue = append(o.queue, queueItem{bucket: b})
	}
}

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

// retry tries the pods of all groups again, and reports whether it bound any. If it bound none, greedy fails.
func (o *order) retry() bool {
	bound := false
	for _, i := range o.members {
		before := o.groups[i].left
		o.try(i)
		bound = bound || o.groups[i].left < before
	}
	return bound
}

// release binds one pod of each group in free that may help waiting pods, and reports whether it bound any. A pod may
// help if it is in a domain with the fewest pods, or if a waiting pod has affinity to it.
func (o *order) release(free []int, waiting []*bucket) bool {
	helped := false
	for _, i := range free {
		g := &o.groups[i]
		if g.left == 0 {
			continue
		}
		if _, held := o.heldBy(i); held {
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
	if b.isAffinity {
		_, counted := slices.BinarySearch(k.affinities, b.number)
		return counted
	}
	if _, counted := slices.BinarySearch(k.spreads, b.number); !counted {
		return false
	}
	e := o.spreadStates[b.number]
	for _, d := range e.view.reachOfPlace(g.place).domains {
		if e.certain.count[d] == e.certain.least && d != b.domain {
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

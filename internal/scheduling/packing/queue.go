package packing

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// queue is the pending pods, grouped into classes, and the progress of each class.
type queue struct {
	pods       *podgroup.Queue
	classes    []class // by priority, then the larger first; parts and bundles follow the whole classes
	whole      int     // number of classes before parts and bundles were added
	daemonPods *existing.DaemonPods

	order                  []int        // the classes by priority, then the larger first
	left                   []int        // by class: units that are not placed
	stage                  []int        // by class: index of the stage to try
	droppedWeight          []int        // by class: its preferences about hosts up to this weight are dropped
	assigned               map[int]int  // by part: units assigned to its domains
	withoutHostPreferences map[int]bool // by whole class: drop all preferences about hosts
}

func newQueue(pods *podgroup.Queue) *queue {
	q := &queue{pods: pods, whole: len(pods.Classes)}
	for c, of := range pods.Classes {
		q.classes = append(q.classes, class{Class: of, podsPerUnit: 1, base: c, initialUnits: len(of.Pods)})
	}
	return q
}

// start returns a copy of the queue in which no unit is placed.
func (q *queue) start(pr *problem) *queue {
	own := *q
	own.classes = slices.Clone(q.classes)
	own.assigned, own.withoutHostPreferences = map[int]int{}, map[int]bool{}
	for i := range own.classes {
		own.classes[i].bulk = pr.bulkOf(own.classes[i].Ask)
		own.left = append(own.left, own.classes[i].units())
	}
	return &own
}

// setAccepted sets the accept sets of the classes.
func (q *queue) setAccepted(a *offering.Acceptance) {
	for i := range q.classes {
		c := &q.classes[i]
		c.hardSet, c.firstStage = a.Hard[c.Sig], -1
		c.stages = a.Stages(&c.Class)
		if len(c.stages) > 0 {
			c.firstStage = c.stages[0]
		}
	}
}

// applyDaemonPods removes the offerings from the accept sets whose DaemonSet pods a class must
// avoid, or that avoid the class.
func (q *queue) applyDaemonPods(g *existing.DaemonPods, a *offering.Acceptance) {
	if g == nil {
		return
	}
	q.daemonPods = g
	for i := range q.classes {
		c := &q.classes[i]
		forbidden := g.Forbidden(q.pods.Topology, q.profile(c))
		if forbidden == nil {
			continue
		}
		without := func(set int) int {
			left := a.Sets[set].Clone()
			left.AndNot(forbidden)
			return a.Number(left)
		}
		c.hardSet = without(c.hardSet)
		var stages []int
		for _, stage := range c.stages {
			if n := without(stage); !slices.Contains(stages, n) && a.AnyTakes(a.Sets[n], &c.Class) {
				stages = append(stages, n)
			}
		}
		if c.stages, c.firstStage = stages, -1; len(stages) > 0 {
			c.firstStage = stages[0]
		}
	}
}

// profile returns the topology rules of the class's pods.
func (q *queue) profile(c *class) *topology.Profile { return &q.pods.Topology.Profiles[c.Profile] }

// eachProfile visits the topology profile of the class, or those of the members of a bundle.
func (q *queue) eachProfile(class int, visit func(*topology.Profile)) {
	c := &q.classes[class]
	if c.members == nil {
		visit(q.profile(c))
	}
	for _, m := range c.members {
		visit(q.profile(&q.classes[m.class]))
	}
}

// active returns the classes with unplaced pods and an accept set left to try.
func (q *queue) active() []int {
	var out []int
	for _, c := range q.order {
		if q.left[c] > 0 && q.currentSet(c) >= 0 {
			out = append(out, c)
		}
	}
	return out
}

// unplaced returns how many units are not placed.
func (q *queue) unplaced() int {
	n := 0
	for _, left := range q.left {
		n += left
	}
	return n
}

// countWaiting returns how many of the classes have unplaced units.
func (q *queue) countWaiting(classes []int) int {
	n := 0
	for _, c := range classes {
		if q.left[c] > 0 {
			n++
		}
	}
	return n
}

// hasShortDomain reports whether some domain took fewer pods than were assigned to it.
func (q *queue) hasShortDomain() bool {
	for c := range q.classes {
		if q.classes[c].domains != nil && q.left[c] > 0 {
			return true
		}
	}
	return false
}

// tiersOf splits classes, which are in order, by priority.
func (q *queue) tiersOf(classes []int) [][]int {
	var out [][]int
	for _, c := range classes {
		last := len(out) - 1
		if last < 0 || q.classes[out[last][0]].Priority != q.classes[c].Priority {
			out = append(out, nil)
			last++
		}
		out[last] = append(out[last], c)
	}
	return out
}

// sortClasses orders the classes by priority, then the larger first.
func (q *queue) sortClasses() {
	for len(q.stage) < len(q.classes) {
		c := len(q.stage)
		q.stage, q.droppedWeight = append(q.stage, 0), append(q.droppedWeight, q.initialDroppedWeight(q.classes[c].base))
	}
	q.order = q.order[:0]
	for c := range q.classes {
		q.order = append(q.order, c)
	}
	slices.SortStableFunc(q.order, func(a, b int) int {
		x, y := &q.classes[a], &q.classes[b]
		return cmp.Or(
			cmp.Compare(y.Priority, x.Priority), y.Amounts.Compare(x.Amounts), cmp.Compare(x.base, y.base), cmp.Compare(a, b),
		)
	})
}

// compareUnplaced compares the numbers of unplaced pods, the highest priority first.
func (q *queue) compareUnplaced(a, b []int, active []int) int {
	diff := 0
	for i, c := range active {
		if i > 0 && diff != 0 && q.classes[c].Priority != q.classes[active[i-1]].Priority {
			break
		}
		diff += a[c] - b[c]
	}
	return diff
}

// leavesPods reports whether an outcome leaves pods of the active classes unplaced. left is, by class,
// how many of its units the outcome does not place.
func (q *queue) leavesPods(left, active []int) bool {
	return slices.ContainsFunc(active, func(c int) bool { return left[c] > 0 })
}

// unitCount returns how many units the class has, including those in bundles.
func (q *queue) unitCount(c int) int {
	if q.classes[c].domains == nil {
		return q.classes[c].units()
	}
	return q.assigned[c]
}

// placedByPart returns how many units of each part are placed, for parts with any.
func (q *queue) placedByPart() map[string]int {
	out := map[string]int{}
	for c := range q.classes {
		p := &q.classes[c]
		if n := q.unitCount(c) - q.left[c]; p.domains != nil && n > 0 {
			out[capKey(p.base, p.domains)] = n
		}
	}
	return out
}

// assignedByPart returns how many units were assigned to each part.
func (q *queue) assignedByPart() map[string]int {
	out := map[string]int{}
	for c, n := range q.assigned {
		p := &q.classes[c]
		out[capKey(p.base, p.domains)] = n
	}
	return out
}

// soleClasses returns, by group, the only whole class that the group concerns, or -1.
func (q *queue) soleClasses() []int {
	const none, many = -2, -1
	out := slices.Repeat([]int{none}, len(q.pods.Topology.Groups))
	note := func(group, base int) {
		if out[group] != base && out[group] != none {
			base = many
		}
		out[group] = base
	}
	for i := range q.classes {
		c := &q.classes[i]
		p := q.profile(c)
		for r := range p.Host {
			note(p.Host[r].Group, c.base)
		}
		for _, g := range p.HostIn {
			note(g, c.base)
		}
	}
	return out
}

// hasPortConflict reports whether the class has a host port that is in one of the lists.
func (q *queue) hasPortConflict(c *class, lists []int) bool {
	return slices.ContainsFunc(c.Lists, func(list int) bool { return q.pods.Ports.ClashAny(list, lists) })
}

// affinityFollowers returns the classes with unplaced pods that have required host affinity.
func (q *queue) affinityFollowers() []int {
	var out []int
	for _, c := range q.order {
		if q.left[c] > 0 && q.profile(&q.classes[c]).HasRequiredHostAffinity() {
			out = append(out, c)
		}
	}
	return out
}

// mayFollow reports whether pods that were just placed may have made room for others, through host
// rules.
func (q *queue) mayFollow(classes []int) bool {
	return slices.ContainsFunc(classes, func(c int) bool {
		return q.left[c] > 0 && len(q.profile(&q.classes[c]).Host) > 0
	})
}

// isInHostSpread reports whether a host spread applies to pods of the class or selects them.
func (q *queue) isInHostSpread(c int) bool {
	p := q.profile(&q.classes[c])
	spread := func(r topology.Rule) bool { return r.Kind == topology.Spread && r.Weight == 0 }
	return slices.ContainsFunc(p.Host, spread) ||
		slices.ContainsFunc(p.HostIn, func(g int) bool { return q.pods.Topology.Groups[g].Kind == topology.Spread })
}

// addToTally adds n units of the class to the counts of a host.
func (q *queue) addToTally(t *topology.HostCounts, c *class, n int) {
	if c.members == nil {
		if p := q.profile(c); len(p.Host) > 0 || len(p.HostIn) > 0 {
			t.Add(p, n)
		}
		return
	}
	for _, m := range c.members {
		t.Add(q.profile(&q.classes[m.class]), n*m.n)
	}
}

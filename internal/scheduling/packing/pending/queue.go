package pending

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Queue has the pending pods, grouped into classes, and the progress of each class.
type Queue struct {
	Pods       *podgroup.Queue      // the pods in their groups
	Classes    []Class              // highest priority first, then largest first; parts and bundles follow the whole classes
	WholeCount int                  // number of classes before parts and bundles were added
	DaemonPods *existing.DaemonPods // nil if no rule matches a DaemonSet pod

	Order                  []int        // numbers of all classes, highest priority first, then largest first
	Left                   []int        // by class: number of unplaced units
	Stage                  []int        // by class: index in Class.Stages of the current stage
	DroppedWeight          []int        // by class: the weight up to which its preferences about hosts are dropped
	Assigned               map[int]int  // by number of a part: units assigned to its domains
	WithoutHostPreferences map[int]bool // by whole class: drop all preferences about hosts
}

// NewQueue returns the queue of grouped pods, none of them placed.
func NewQueue(pods *podgroup.Queue) *Queue {
	q := &Queue{Pods: pods, WholeCount: len(pods.Classes)}
	for c, group := range pods.Classes {
		q.Classes = append(q.Classes, Class{Class: group, PodsPerUnit: 1, WholeClass: c, InitialUnits: len(group.Pods)})
	}
	return q
}

// ForSolution returns a copy of the queue for a new solution, in which no unit is placed. The caller must call
// SortClasses next, which sets Order, Stage and DroppedWeight.
func (q *Queue) ForSolution(pr *Problem) *Queue {
	out := *q
	out.Classes = slices.Clone(q.Classes)
	out.Assigned, out.WithoutHostPreferences = map[int]int{}, map[int]bool{}
	for i := range out.Classes {
		out.Classes[i].Bulk = pr.BulkOf(out.Classes[i].Ask)
		out.Left = append(out.Left, out.Classes[i].Units())
	}
	return &out
}

// SetAccepted sets HardSet, FirstStage and Stages of the classes.
func (q *Queue) SetAccepted(a *offering.Acceptance) {
	for i := range q.Classes {
		c := &q.Classes[i]
		c.HardSet, c.FirstStage = a.Hard[c.Sig], -1
		c.Stages = a.Stages(&c.Class)
		if len(c.Stages) > 0 {
			c.FirstStage = c.Stages[0]
		}
	}
}

// ApplyDaemonPods sets DaemonPods. It removes offerings from the accept sets of a class if a required anti-affinity
// separates the class from DaemonSet pods of these offerings. If pods is nil, nothing changes.
func (q *Queue) ApplyDaemonPods(pods *existing.DaemonPods, a *offering.Acceptance) {
	if pods == nil {
		return
	}
	q.DaemonPods = pods
	for i := range q.Classes {
		c := &q.Classes[i]
		forbidden := pods.Forbidden(q.Pods.Topology, q.Profile(c))
		if forbidden == nil {
			continue
		}
		without := func(set int) int {
			left := a.Sets[set].Clone()
			left.AndNot(forbidden)
			return a.Number(left)
		}
		c.HardSet = without(c.HardSet)
		var stages []int
		for _, stage := range c.Stages {
			if n := without(stage); !slices.Contains(stages, n) && a.AnyHasRoom(a.Sets[n], &c.Class) {
				stages = append(stages, n)
			}
		}
		if c.Stages, c.FirstStage = stages, -1; len(stages) > 0 {
			c.FirstStage = stages[0]
		}
	}
}

// Profile returns the topology rules of the class's pods. A bundle has several profiles, those of its members; see
// EachProfile.
func (q *Queue) Profile(c *Class) *topology.Profile { return &q.Pods.Topology.Profiles[c.Profile] }

// EachProfile visits the topology profile of the class, or the profiles of a bundle's members.
func (q *Queue) EachProfile(class int, visit func(*topology.Profile)) {
	c := &q.Classes[class]
	if c.Members == nil {
		visit(q.Profile(c))
	}
	for _, m := range c.Members {
		visit(q.Profile(&q.Classes[m.Class]))
	}
}

// Active returns the classes that have unplaced pods and an accept set to try, in the order of Order.
func (q *Queue) Active() []int {
	var out []int
	for _, c := range q.Order {
		if q.Left[c] > 0 && q.CurrentSet(c) >= 0 {
			out = append(out, c)
		}
	}
	return out
}

// Unplaced returns how many units are not placed.
func (q *Queue) Unplaced() int {
	n := 0
	for _, left := range q.Left {
		n += left
	}
	return n
}

// CountWaiting returns how many of the classes have unplaced units.
func (q *Queue) CountWaiting(classes []int) int {
	n := 0
	for _, c := range classes {
		if q.Left[c] > 0 {
			n++
		}
	}
	return n
}

// HasShortDomain reports whether a part has unplaced pods: its domains took fewer than were assigned to them.
func (q *Queue) HasShortDomain() bool {
	for c := range q.Classes {
		if q.Classes[c].Domains != nil && q.Left[c] > 0 {
			return true
		}
	}
	return false
}

// TiersOf splits classes, which are sorted by priority, into tiers: one for each priority.
func (q *Queue) TiersOf(classes []int) [][]int {
	var out [][]int
	for _, c := range classes {
		last := len(out) - 1
		if last < 0 || q.Classes[out[last][0]].Priority != q.Classes[c].Priority {
			out = append(out, nil)
			last++
		}
		out[last] = append(out[last], c)
	}
	return out
}

// SortClasses sets Order: highest priority first, then largest first. It adds the missing entries of Stage and
// DroppedWeight for new classes.
func (q *Queue) SortClasses() {
	for len(q.Stage) < len(q.Classes) {
		c := len(q.Stage)
		q.Stage, q.DroppedWeight = append(q.Stage, 0), append(q.DroppedWeight, q.InitialDroppedWeight(q.Classes[c].WholeClass))
	}
	q.Order = q.Order[:0]
	for c := range q.Classes {
		q.Order = append(q.Order, c)
	}
	slices.SortStableFunc(q.Order, func(a, b int) int {
		x, y := &q.Classes[a], &q.Classes[b]
		return cmp.Or(
			cmp.Compare(y.Priority, x.Priority), y.Amounts.Compare(x.Amounts), cmp.Compare(x.WholeClass, y.WholeClass), cmp.Compare(a, b),
		)
	})
}

// CompareUnplaced compares two outcomes by their unplaced units of the active classes, which are sorted by priority.
// a and b are the numbers of unplaced units, by class. The result is negative if a has fewer. The highest priority with
// a difference decides.
func (q *Queue) CompareUnplaced(a, b []int, active []int) int {
	diff := 0
	for i, c := range active {
		if i > 0 && diff != 0 && q.Classes[c].Priority != q.Classes[active[i-1]].Priority {
			break
		}
		diff += a[c] - b[c]
	}
	return diff
}

// LeavesPods reports whether an outcome leaves pods of the active classes unplaced. left is, by class,
// the number of units that the outcome does not place.
func (q *Queue) LeavesPods(left, active []int) bool {
	return slices.ContainsFunc(active, func(c int) bool { return left[c] > 0 })
}

// UnitCount returns how many units the class has. For a part, these are all units that were assigned to its domains,
// including those that were moved to bundles. For a whole class, units that were moved to parts or bundles are not
// included.
func (q *Queue) UnitCount(c int) int {
	if q.Classes[c].Domains == nil {
		return q.Classes[c].Units()
	}
	return q.Assigned[c]
}

// PlacedByPart returns, by PartKey, how many units of each part are placed, or moved to bundles. Parts without such
// units are left out.
func (q *Queue) PlacedByPart() map[string]int {
	out := map[string]int{}
	for c := range q.Classes {
		p := &q.Classes[c]
		if n := q.UnitCount(c) - q.Left[c]; p.Domains != nil && n > 0 {
			out[PartKey(p.WholeClass, p.Domains)] = n
		}
	}
	return out
}

// AssignedByPart returns, by PartKey, how many units were assigned to each part.
func (q *Queue) AssignedByPart() map[string]int {
	out := map[string]int{}
	for c, n := range q.Assigned {
		p := &q.Classes[c]
		out[PartKey(p.WholeClass, p.Domains)] = n
	}
	return out
}

// SoleClasses returns, by group, the only whole class that has a host rule about the group or that the group selects;
// -1 if there are several, -2 if there is none.
func (q *Queue) SoleClasses() []int {
	const none, many = -2, -1
	out := slices.Repeat([]int{none}, len(q.Pods.Topology.Groups))
	add := func(group, class int) {
		if out[group] != class && out[group] != none {
			class = many
		}
		out[group] = class
	}
	for i := range q.Classes {
		c := &q.Classes[i]
		p := q.Profile(c)
		for r := range p.Host {
			add(p.Host[r].Group, c.WholeClass)
		}
		for _, g := range p.HostIn {
			add(g, c.WholeClass)
		}
	}
	return out
}

// HasPortConflict reports whether a host port of the class conflicts with one in the lists with these numbers in
// Pods.Ports.
func (q *Queue) HasPortConflict(c *Class, lists []int) bool {
	return slices.ContainsFunc(c.PortLists, func(list int) bool { return q.Pods.Ports.ConflictAny(list, lists) })
}

// AffinityFollowers returns the classes with unplaced pods that have required host affinity.
func (q *Queue) AffinityFollowers() []int {
	var out []int
	for _, c := range q.Order {
		if q.Left[c] > 0 && q.Profile(&q.Classes[c]).HasRequiredHostAffinity() {
			out = append(out, c)
		}
	}
	return out
}

// MayPlaceMore reports whether another pass could place pods of the classes. It is true if some unplaced pods have host
// rules, which may allow more pods after other pods were placed.
func (q *Queue) MayPlaceMore(classes []int) bool {
	return slices.ContainsFunc(classes, func(c int) bool {
		return q.Left[c] > 0 && len(q.Profile(&q.Classes[c]).Host) > 0
	})
}

// IsInHostSpread reports whether a required host spread applies to pods of the class, or any host spread selects them.
func (q *Queue) IsInHostSpread(c int) bool {
	p := q.Profile(&q.Classes[c])
	isRequiredSpread := func(r topology.Rule) bool { return r.Kind == topology.Spread && r.Weight == 0 }
	return slices.ContainsFunc(p.Host, isRequiredSpread) ||
		slices.ContainsFunc(p.HostIn, func(g int) bool { return q.Pods.Topology.Groups[g].Kind == topology.Spread })
}

// AddToHostCounts adds n units of the class to the host counts t.
func (q *Queue) AddToHostCounts(t *topology.HostCounts, c *Class, n int) {
	if c.Members == nil {
		if p := q.Profile(c); len(p.Host) > 0 || len(p.HostIn) > 0 {
			t.Add(p, n)
		}
		return
	}
	for _, m := range c.Members {
		t.Add(q.Profile(&q.Classes[m.Class]), n*m.N)
	}
}

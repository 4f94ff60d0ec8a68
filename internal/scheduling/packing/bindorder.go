package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// simulateBinding removes the pods from the plan that topology rules would keep kube-scheduler from
// binding. Pods that a rule relied on may be unplaced, or on nodes where the rule does not count
// them.
//
// kube-scheduler binds one pod at a time, so the plan is valid if the pods can be bound in some
// order. Usually every order works. r is the existing nodes before the plan placed pods.
func (pl *planner) simulateBinding(ground *existing.Ground, r *existing.Rooms) {
	a := newBindSimulator(pl, ground, r)
	if a.anyOrderBinds() && !a.usesMinDomains {
		return
	}
	if a.ground = pl.groundAfterPlan(ground); a.anyOrderBinds() {
		return
	}
	for _, step := range a.bindInOrder() {
		pl.removeAt(step.class, step.host, step.left)
	}
	pl.planned = slices.DeleteFunc(pl.planned, func(m plannedNode) bool { return m.copies == 0 || len(m.allocations) == 0 })
	pl.placements = slices.DeleteFunc(pl.placements, func(p existingPlacement) bool { return p.n == 0 })
}

// bindSimulator binds the pods of a plan step by step, as kube-scheduler does.
type bindSimulator struct {
	*planner
	ground         *existing.Ground
	initialRooms   *existing.Rooms // the existing nodes before the plan placed pods
	census         *topology.Census
	pending        []bindStep
	usesMinDomains bool                 // a spread has minDomains above 1: the cluster may have fewer domains than could be launched
	podOnHost      map[podLocation]bool // a pod of the group is bound on the host
	podAnywhere    map[int]bool         // by group over host names: a pod of it is bound on some host
}

// bindStep is a number of pods of one class, on one node or anywhere, of which left are not bound
// yet.
type bindStep struct {
	class, left  int
	host         int           // index as in podLocation, or anyHost
	slack        int           // number of pods that a spread lets others bind before these: with more, they can wait longer
	isSelfAffine bool          // the pods have required affinity to themselves: the first may go to any domain without matching pods elsewhere
	uncounted    []groupDomain // the groups that do not count the pods there
}

// isUnconstrained reports whether no spread over domains applies to the pods.
func (step *bindStep) isUnconstrained() bool { return step.slack == math.MaxInt }

// rank orders steps of the same slack: self-affine pods are bound first.
func (step *bindStep) rank() int {
	if step.isSelfAffine {
		return 0
	}
	return 1
}

// anyHost is the host of pods whose exact node does not matter, only their domains.
const anyHost = -1

func newBindSimulator(pl *planner, ground *existing.Ground, r *existing.Rooms) *bindSimulator {
	a := &bindSimulator{planner: pl, ground: ground, initialRooms: r}
	s := pl.newSpreadVisibility()
	hostMatters := make([]bool, len(pl.q.classes)) // by class: the node of its pods matters
	any := false
	for c := range pl.q.classes {
		p := &pl.q.classes[c]
		if hostMatters[c] = a.hasHostAffinity(p) || p.domains != nil && s.mayBeUncounted(p); hostMatters[c] {
			any = true
		} else if n := pl.unitCount(c) - pl.left[c]; p.domains != nil && n > 0 {
			a.addStep(bindStep{class: c, left: n, host: anyHost})
		}
	}
	if !any {
		return a
	}
	for _, loc := range pl.podLocations() {
		if hostMatters[loc.class] {
			a.addStep(bindStep{class: loc.class, left: loc.n, host: loc.host, uncounted: s.uncountedBy(loc)})
		}
	}
	return a
}

func (a *bindSimulator) addStep(step bindStep) {
	step.slack = math.MaxInt
	for _, r := range a.q.profile(&a.q.classes[step.class]).Domain {
		if r.Form == topology.Spread && r.Weight == 0 {
			most := 2 * r.MaxSkew
			if r.Self {
				most++
			}
			step.slack = min(step.slack, most)
			a.usesMinDomains = a.usesMinDomains || r.MinDomains > 1
		}
		step.isSelfAffine = step.isSelfAffine || r.Form == topology.Near && r.Weight == 0 && r.Self
	}
	a.pending = append(a.pending, step)
}

// hasHostAffinity reports whether pods of the class have required host affinity, or are the target
// of one.
func (a *bindSimulator) hasHostAffinity(c *class) bool {
	p := a.q.profile(c)
	return p.Follows() || slices.ContainsFunc(p.HostIn, func(g int) bool {
		return a.q.Book.Groups[g].Form == topology.Near && a.q.Book.Groups[g].Hard
	})
}

// anyOrderBinds reports whether every pod could be bound as the last one. Then the order does not
// matter.
func (a *bindSimulator) anyOrderBinds() bool {
	a.census = a.ground.Fork().Census
	for i := range a.pending {
		a.countPods(&a.pending[i], a.pending[i].left)
	}
	for i := range a.pending {
		step := &a.pending[i]
		a.countPods(step, -1)
		bad := a.blockingRule(step) != nil
		a.countPods(step, 1)
		if bad {
			return false
		}
	}
	return true
}

// countPods adds n pods of the step to the census.
func (a *bindSimulator) countPods(step *bindStep, n int) {
	c := &a.q.classes[step.class]
	if c.domains == nil {
		return
	}
	a.census.Add(a.q.profile(c), c.domains, n)
	for _, u := range step.uncounted {
		a.census.Resident(u.group, u.domain, -n)
	}
}

// blockingRule returns the domain rule that keeps a pod of the step from being bound now; nil if
// none does.
func (a *bindSimulator) blockingRule(step *bindStep) *topology.Rule {
	c := &a.q.classes[step.class]
	if c.domains == nil {
		return nil
	}
	return a.census.Refusal(a.q.profile(c), c.domains)
}

// missingGroup returns the group of a required host affinity that has no pod on the step's host
// yet; -1 if there is none.
func (a *bindSimulator) missingGroup(step *bindStep) int {
	for _, rule := range a.q.profile(&a.q.classes[step.class]).Host {
		if rule.Form != topology.Near || rule.Weight > 0 || a.podOnHost[podLocation{class: rule.Group, host: step.host}] {
			continue
		}
		there := step.host < len(a.initialRooms.Nodes) && a.initialRooms.Hosts[step.host].Matched(rule.Group) > 0
		first := rule.Self && !a.podAnywhere[rule.Group] && !a.hasPodOn(a.initialRooms, rule.Group)
		if !there && !first {
			return rule.Group
		}
	}
	return -1
}

// bind binds up to n pods of the step, and reports whether it bound any.
func (a *bindSimulator) bind(step *bindStep, n int) bool {
	any := false
	for ; n > 0 && step.left > 0 && a.blockingRule(step) == nil && a.missingGroup(step) < 0; n-- {
		a.countPods(step, 1)
		step.left--
		any = true
		if step.host == anyHost {
			continue
		}
		for _, g := range a.q.profile(&a.q.classes[step.class]).HostIn {
			a.podOnHost[podLocation{class: g, host: step.host}], a.podAnywhere[g] = true, true
		}
	}
	return any
}

// bindInOrder binds pods in an order that kube-scheduler accepts and returns the steps that cannot
// be bound completely. Pods with the tightest spread go first. Pods without a spread wait until a
// blocked pod needs them.
func (a *bindSimulator) bindInOrder() []bindStep {
	slices.SortStableFunc(a.pending, func(x, y bindStep) int {
		return cmp.Or(cmp.Compare(x.slack, y.slack), cmp.Compare(x.rank(), y.rank()))
	})
	a.census, a.podOnHost, a.podAnywhere = a.ground.Fork().Census, map[podLocation]bool{}, map[int]bool{}
	for {
		for a.bindAll(false) {
		}
		if a.bindUnblocking() {
			continue
		}
		if !a.bindAll(true) {
			break
		}
	}
	return slices.DeleteFunc(a.pending, func(step bindStep) bool { return step.left == 0 })
}

// bindAll binds as many pods of each step as possible, and reports whether it bound any. Steps
// without a spread are included only if free is set.
func (a *bindSimulator) bindAll(free bool) bool {
	any := false
	for i := range a.pending {
		if step := &a.pending[i]; free || !step.isUnconstrained() {
			any = a.bind(step, math.MaxInt) || any
		}
	}
	return any
}

// neededPods is the pods that blocked steps wait for.
type neededPods struct {
	spreads  map[int]bool         // groups: a pod in a domain with the fewest pods
	inDomain map[groupDomain]bool // a pod of the group in the domain
	onHost   map[podLocation]bool // a pod of the group on the host
}

// bindUnblocking binds one pod of each unconstrained step that unblocks others, and reports whether
// it bound any.
func (a *bindSimulator) bindUnblocking() bool {
	h := a.neededPods()
	any := false
	for i := range a.pending {
		if step := &a.pending[i]; step.isUnconstrained() && step.left > 0 && a.unblocks(step, h) {
			any = a.bind(step, 1) || any
		}
	}
	return any
}

// neededPods returns the pods that blocked steps wait for.
func (a *bindSimulator) neededPods() neededPods {
	h := neededPods{map[int]bool{}, map[groupDomain]bool{}, map[podLocation]bool{}}
	for i := range a.pending {
		step := &a.pending[i]
		if step.left == 0 {
			continue
		}
		if g := a.missingGroup(step); g >= 0 {
			h.onHost[podLocation{class: g, host: step.host}] = true
		} else if r := a.blockingRule(step); r != nil && r.Form == topology.Spread {
			h.spreads[r.Group] = true
		} else if r != nil && r.Form == topology.Near {
			h.inDomain[groupDomain{r.Group, a.domainOf(&a.q.classes[step.class], r.Group)}] = true
		}
	}
	return h
}

// unblocks reports whether binding a pod of the step helps a blocked one.
func (a *bindSimulator) unblocks(step *bindStep, h neededPods) bool {
	c := &a.q.classes[step.class]
	profile := a.q.profile(c)
	first := func(g int) bool {
		loc := podLocation{class: g, host: step.host}
		return h.onHost[loc] && !a.podOnHost[loc]
	}
	there := func(g int) bool { return h.inDomain[groupDomain{g, a.domainOf(c, g)}] }
	return slices.ContainsFunc(profile.HostIn, first) ||
		c.domains != nil && (a.census.IsFewest(profile, c.domains, h.spreads) || slices.ContainsFunc(profile.In, there))
}

// domainOf returns the class's domain of the group's topology key; -1 if the class is not split by
// that key.
func (a *bindSimulator) domainOf(c *class, group int) int {
	if k := slices.Index(a.q.profile(c).Keys, a.q.Book.Groups[group].Key); k >= 0 {
		return c.domains[k]
	}
	return -1
}

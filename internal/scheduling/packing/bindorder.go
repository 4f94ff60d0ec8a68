package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// bindingCheck removes the pods from a solution that kube-scheduler would not bind.
type bindingCheck struct {
	problem *problem
	queue   *queue
	sol     *solution
}

func newBindingCheck(sol *solution) bindingCheck {
	return bindingCheck{problem: sol.problem, queue: sol.queue, sol: sol}
}

// simulateBinding removes the pods from the plan that topology rules would keep kube-scheduler from
// binding. Pods that a rule relied on may be unplaced, or on nodes where the rule does not count
// them.
//
// kube-scheduler binds one pod at a time, so the plan is valid if the pods can be bound in some
// order. Usually every order works. r is the existing nodes before the plan placed pods.
func (bk bindingCheck) simulateBinding(ground *existing.Ground) {
	bs := newBindSimulator(bk.sol, ground)
	if bs.anyOrderBinds() && !bs.usesMinDomains {
		return
	}
	if bs.ground = newDomainProjection(bk.sol).groundAfterPlan(ground); bs.anyOrderBinds() {
		return
	}
	for _, step := range bs.bindInOrder() {
		bk.sol.removeAt(step.class, step.host, step.left)
	}
	bk.sol.planned = slices.DeleteFunc(bk.sol.planned, func(pn plannedNode) bool { return pn.copies == 0 || len(pn.allocations) == 0 })
	bk.sol.placements = slices.DeleteFunc(bk.sol.placements, func(p existingPlacement) bool { return p.n == 0 })
}

// bindSimulator binds the pods of a plan step by step, as kube-scheduler does.
type bindSimulator struct {
	sol            *solution
	queue          *queue
	ground         *existing.Ground
	initialRooms   *existing.Rooms // the existing nodes before the plan placed pods
	census         *topology.Census
	pending        []bindStep
	usesMinDomains bool               // a spread has minDomains above 1: the cluster may have fewer domains than could be launched
	podOnHost      map[groupHost]bool // a pod of the group is bound on the host
	podAnywhere    map[int]bool       // by group over host names: a pod of it is bound on some host
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

// groupHost is a topology group over host names and a host, numbered as in podLocation.
type groupHost struct{ group, host int }

// rank orders steps of the same slack: self-affine pods are bound first.
func (step *bindStep) rank() int {
	if step.isSelfAffine {
		return 0
	}
	return 1
}

// anyHost is the host of pods whose exact node does not matter, only their domains.
const anyHost = -1

func newBindSimulator(sol *solution, ground *existing.Ground) *bindSimulator {
	bs := &bindSimulator{sol: sol, queue: sol.queue, ground: ground, initialRooms: sol.problem.rooms}
	sv := newSpreadVisibility(sol)
	hostMatters := make([]bool, len(sol.queue.classes)) // by class: the node of its pods matters
	any := false
	for c := range sol.queue.classes {
		p := &sol.queue.classes[c]
		if hostMatters[c] = bs.hasHostAffinity(p) || p.domains != nil && sv.mayBeUncounted(p); hostMatters[c] {
			any = true
		} else if n := sol.queue.unitCount(c) - sol.queue.left[c]; p.domains != nil && n > 0 {
			bs.addStep(bindStep{class: c, left: n, host: anyHost})
		}
	}
	if !any {
		return bs
	}
	for _, loc := range sol.podLocations() {
		if hostMatters[loc.class] {
			bs.addStep(bindStep{class: loc.class, left: loc.n, host: loc.host, uncounted: sv.uncountedBy(loc)})
		}
	}
	return bs
}

func (bs *bindSimulator) addStep(step bindStep) {
	step.slack = math.MaxInt
	for _, r := range bs.queue.profile(&bs.queue.classes[step.class]).Domain {
		if r.Form == topology.Spread && r.Weight == 0 {
			most := 2 * r.MaxSkew
			if r.Self {
				most++
			}
			step.slack = min(step.slack, most)
			bs.usesMinDomains = bs.usesMinDomains || r.MinDomains > 1
		}
		step.isSelfAffine = step.isSelfAffine || r.Form == topology.Near && r.Weight == 0 && r.Self
	}
	bs.pending = append(bs.pending, step)
}

// hasHostAffinity reports whether pods of the class have required host affinity, or are the target
// of one.
func (bs *bindSimulator) hasHostAffinity(c *class) bool {
	p := bs.queue.profile(c)
	return p.Follows() || slices.ContainsFunc(p.HostIn, func(g int) bool {
		return bs.queue.pods.Book.Groups[g].Form == topology.Near && bs.queue.pods.Book.Groups[g].Hard
	})
}

// anyOrderBinds reports whether every pod could be bound as the last one. Then the order does not
// matter.
func (bs *bindSimulator) anyOrderBinds() bool {
	bs.census = bs.ground.Fork().Census
	for i := range bs.pending {
		bs.countPods(&bs.pending[i], bs.pending[i].left)
	}
	for i := range bs.pending {
		step := &bs.pending[i]
		bs.countPods(step, -1)
		bad := bs.blockingRule(step) != nil
		bs.countPods(step, 1)
		if bad {
			return false
		}
	}
	return true
}

// countPods adds n pods of the step to the census.
func (bs *bindSimulator) countPods(step *bindStep, n int) {
	c := &bs.queue.classes[step.class]
	if c.domains == nil {
		return
	}
	bs.census.Add(bs.queue.profile(c), c.domains, n)
	for _, u := range step.uncounted {
		bs.census.Resident(u.group, u.domain, -n)
	}
}

// blockingRule returns the domain rule that keeps a pod of the step from being bound now; nil if
// none does.
func (bs *bindSimulator) blockingRule(step *bindStep) *topology.Rule {
	c := &bs.queue.classes[step.class]
	if c.domains == nil {
		return nil
	}
	return bs.census.Refusal(bs.queue.profile(c), c.domains)
}

// missingGroup returns the group of a required host affinity that has no pod on the step's host
// yet; -1 if there is none.
func (bs *bindSimulator) missingGroup(step *bindStep) int {
	for _, rule := range bs.queue.profile(&bs.queue.classes[step.class]).Host {
		if rule.Form != topology.Near || rule.Weight > 0 || bs.podOnHost[groupHost{rule.Group, step.host}] {
			continue
		}
		there := step.host < len(bs.initialRooms.Nodes) && bs.initialRooms.Hosts[step.host].Matched(rule.Group) > 0
		first := rule.Self && !bs.podAnywhere[rule.Group] && !bs.sol.hasPodOn(bs.initialRooms, rule.Group)
		if !there && !first {
			return rule.Group
		}
	}
	return -1
}

// bind binds up to n pods of the step, and reports whether it bound any.
func (bs *bindSimulator) bind(step *bindStep, n int) bool {
	any := false
	for ; n > 0 && step.left > 0 && bs.blockingRule(step) == nil && bs.missingGroup(step) < 0; n-- {
		bs.countPods(step, 1)
		step.left--
		any = true
		if step.host == anyHost {
			continue
		}
		for _, g := range bs.queue.profile(&bs.queue.classes[step.class]).HostIn {
			bs.podOnHost[groupHost{g, step.host}], bs.podAnywhere[g] = true, true
		}
	}
	return any
}

// bindInOrder binds pods in an order that kube-scheduler accepts and returns the steps that cannot
// be bound completely. Pods with the tightest spread go first. Pods without a spread wait until a
// blocked pod needs them.
func (bs *bindSimulator) bindInOrder() []bindStep {
	slices.SortStableFunc(bs.pending, func(x, y bindStep) int {
		return cmp.Or(cmp.Compare(x.slack, y.slack), cmp.Compare(x.rank(), y.rank()))
	})
	bs.census, bs.podOnHost, bs.podAnywhere = bs.ground.Fork().Census, map[groupHost]bool{}, map[int]bool{}
	for {
		for bs.bindAll(false) {
		}
		if bs.bindUnblocking() {
			continue
		}
		if !bs.bindAll(true) {
			break
		}
	}
	return slices.DeleteFunc(bs.pending, func(step bindStep) bool { return step.left == 0 })
}

// bindAll binds as many pods of each step as possible, and reports whether it bound any. It
// skips steps without a spread unless unconstrained is set.
func (bs *bindSimulator) bindAll(unconstrained bool) bool {
	any := false
	for i := range bs.pending {
		if step := &bs.pending[i]; unconstrained || !step.isUnconstrained() {
			any = bs.bind(step, math.MaxInt) || any
		}
	}
	return any
}

// neededPods is the pods that blocked steps wait for.
type neededPods struct {
	spreads  map[int]bool         // groups: a pod in a domain with the fewest pods
	inDomain map[groupDomain]bool // a pod of the group in the domain
	onHost   map[groupHost]bool   // a pod of the group on the host
}

// bindUnblocking binds one pod of each unconstrained step that unblocks others, and reports whether
// it bound any.
func (bs *bindSimulator) bindUnblocking() bool {
	needed := bs.neededPods()
	any := false
	for i := range bs.pending {
		if step := &bs.pending[i]; step.isUnconstrained() && step.left > 0 && bs.unblocks(step, needed) {
			any = bs.bind(step, 1) || any
		}
	}
	return any
}

// neededPods returns the pods that blocked steps wait for.
func (bs *bindSimulator) neededPods() neededPods {
	needed := neededPods{map[int]bool{}, map[groupDomain]bool{}, map[groupHost]bool{}}
	for i := range bs.pending {
		step := &bs.pending[i]
		if step.left == 0 {
			continue
		}
		if g := bs.missingGroup(step); g >= 0 {
			needed.onHost[groupHost{g, step.host}] = true
		} else if r := bs.blockingRule(step); r != nil && r.Form == topology.Spread {
			needed.spreads[r.Group] = true
		} else if r != nil && r.Form == topology.Near {
			needed.inDomain[groupDomain{r.Group, bs.domainOf(&bs.queue.classes[step.class], r.Group)}] = true
		}
	}
	return needed
}

// unblocks reports whether binding a pod of the step helps a blocked one.
func (bs *bindSimulator) unblocks(step *bindStep, needed neededPods) bool {
	c := &bs.queue.classes[step.class]
	profile := bs.queue.profile(c)
	first := func(g int) bool {
		loc := groupHost{g, step.host}
		return needed.onHost[loc] && !bs.podOnHost[loc]
	}
	there := func(g int) bool { return needed.inDomain[groupDomain{g, bs.domainOf(c, g)}] }
	return slices.ContainsFunc(profile.HostIn, first) ||
		c.domains != nil && (bs.census.IsFewest(profile, c.domains, needed.spreads) || slices.ContainsFunc(profile.In, there))
}

// domainOf returns the class's domain of the group's topology key; -1 if the class is not split by
// that key.
func (bs *bindSimulator) domainOf(c *class, group int) int {
	if k := slices.Index(bs.queue.profile(c).Keys, bs.queue.pods.Book.Groups[group].Key); k >= 0 {
		return c.domains[k]
	}
	return -1
}

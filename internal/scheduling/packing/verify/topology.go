package verify

import (
	"fmt"
	"slices"
)

// topology checks the plan against the rules between pods.
type topology struct {
	*checker
	*ruleSet
	groups  []group
	leaving bool // whether some node is leaving

	// The state of the rules after all pods that can be bound are bound, by index in ruleSet.spreads and
	// ruleSet.affinities.
	spreadEnd   []*spreadState
	affinityEnd []*affinityState
}

// group has the planned pods of one class on one place.
type group struct {
	class int      // index in ruleSet.classes
	place int      // index in checker.places
	pods  []string // IDs
	left  int      // number of pods that are not bound yet
	waits *bucket  // the bucket in which the group waits, or nil
}

func newTopology(c *checker) *topology {
	t := &topology{checker: c, ruleSet: newRuleSet(c)}
	t.leaving = slices.ContainsFunc(c.places, func(p place) bool { return p.node != nil && p.node.Leaving })
	for i := range c.places {
		first := len(t.groups)
		for _, p := range c.places[i].pods {
			class := t.classOf[p]
			n := slices.IndexFunc(t.groups[first:], func(g group) bool { return g.class == class })
			if n < 0 {
				n = len(t.groups) - first
				t.groups = append(t.groups, group{class: class, place: i})
			}
			g := &t.groups[first+n]
			g.pods = append(g.pods, p.ID())
			g.left++
		}
	}
	for _, g := range t.groups {
		c := &t.classes[g.class]
		t.addConcerned(&t.kinds[c.kind], c.avoids, concernedPods{
			placedPods: placedPods{placeWithTraits: t.facts.withAllTraits(g.place), pods: len(g.pods)},
			name:       "pod " + g.pods[0], planned: true,
		})
	}
	for _, r := range t.spreads {
		t.spreadEnd = append(t.spreadEnd, r.initialState(false))
	}
	for _, r := range t.affinities {
		t.affinityEnd = append(t.affinityEnd, r.initialState())
	}
	return t
}

func (t *topology) checkRules() {
	for _, r := range t.antiAffinities {
		r.countPods()
		t.violations = append(t.violations, r.violations(t.places)...)
	}
	for i := range t.groups {
		t.checkLabels(&t.groups[i])
	}
	for _, component := range t.components() {
		t.checkComponent(component)
	}
}

// checkLabels adds a violation for each rule of the group's pods whose topology key the place may lack. kube-scheduler
// never binds the pods to a node without the topology key.
func (t *topology) checkLabels(g *group) {
	c := &t.classes[g.class]
	check := func(v *view, rule string) {
		if r := t.facts.labelView(v.axis.key).reach[t.facts.traitSetOf[g.place]]; !r.sure {
			t.report("pod %s on %s: its %s needs the label %s, which the node may lack",
				g.pods[0], t.places[g.place].name, rule, v.axis.key)
		}
	}
	for _, u := range c.uses {
		check(t.spreads[u.rule].view, "spread constraint")
	}
	if c.affinity >= 0 {
		for _, v := range t.affinities[c.affinity].views {
			check(v, "affinity")
		}
	}
}

// checkComponent finds an order of binding for the groups of a component, or adds violations about the pods that it
// cannot bind. One order is enough: for the time before leaving nodes are gone, or for the time after.
func (t *topology) checkComponent(groups []int) {
	times := []bool{false} // whether leaving nodes are gone
	if t.leaving {
		times = append(times, true)
	}
	var firstStuck []string
	for _, gone := range times {
		o := newOrder(t, groups, gone)
		if o.greedy() || o.search() {
			o.storeState()
			return
		}
		if firstStuck == nil {
			firstStuck = o.stuck
			o.storeState()
		}
	}
	t.violations = append(t.violations, firstStuck...)
}

// components returns the indices of the groups by component: groups that rules connect are in one component. Groups for
// which the order of binding does not matter are left out.
func (t *topology) components() [][]int {
	u := newUnion(len(t.spreads) + len(t.affinities))
	rules := make([][]int, len(t.classes)) // by class: spread rules, then affinity rules
	for i := range t.classes {
		c := &t.classes[i]
		k := &t.kinds[c.kind]
		rules[i] = slices.Clone(k.spreads)
		for _, use := range c.uses {
			rules[i] = append(rules[i], use.rule)
		}
		for _, n := range k.affinities {
			rules[i] = append(rules[i], len(t.spreads)+n)
		}
		if c.affinity >= 0 {
			rules[i] = append(rules[i], len(t.spreads)+c.affinity)
		}
	}
	for _, g := range t.groups {
		for _, r := range rules[g.class] {
			u.join(rules[g.class][0], r)
		}
	}
	componentOf := map[int]int{} // by root of a rule in u
	var out [][]int
	for i, g := range t.groups {
		if len(rules[g.class]) == 0 {
			continue
		}
		root := u.root(rules[g.class][0])
		n, ok := componentOf[root]
		if !ok {
			n = len(out)
			componentOf[root] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// union is a disjoint-set structure (union-find) over numbers.
type union []int

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = i
	}
	return u
}

func (u union) root(i int) int {
	for u[i] != i {
		u[i] = u[u[i]]
		i = u[i]
	}
	return i
}

func (u union) join(a, b int) { u[u.root(a)] = u.root(b) }

func (g *group) String() string {
	if len(g.pods) == 1 {
		return "pod " + g.pods[0]
	}
	return fmt.Sprintf("pod %s (one of %d alike)", g.pods[0], len(g.pods))
}

package verify

import (
	"fmt"
	"slices"
)

// topology checks the plan against the rules between pods.
type topology struct {
	*checker
	*book
	groups  []group
	leaving bool // whether some node is leaving

	// The state of the rules, by index in book.spreads and book.nears, after all pods are bound that can be bound.
	spreadEnd []*evenness
	nearEnd   []*nearness
}

// group has the planned pods of one class on one place.
type group struct {
	class int      // index in book.classes
	place int      // index in checker.places
	pods  []string // IDs
	left  int      // number of pods that are not bound yet
	waits *bucket  // the bucket in which the group waits, or nil
}

func newTopology(c *checker) *topology {
	t := &topology{checker: c, book: newBook(c)}
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
		t.addStander(&t.kinds[c.kind], c.avoids, stander{
			standing: standing{spot: t.ground.spot(g.place), pods: len(g.pods)}, who: "pod " + g.pods[0], planned: true,
		})
	}
	for _, r := range t.spreads {
		t.spreadEnd = append(t.spreadEnd, r.evenness(false))
	}
	for _, r := range t.nears {
		t.nearEnd = append(t.nearEnd, r.nearness())
	}
	return t
}

// judge checks all rules between pods.
func (t *topology) judge() {
	for _, r := range t.aparts {
		r.gather()
		t.found = append(t.found, r.judge(t.places)...)
	}
	for i := range t.groups {
		t.unlabelled(&t.groups[i])
	}
	for _, part := range t.parts() {
		t.part(part)
	}
}

// unlabelled adds a sentence for each rule of the group's pods whose topology key the place may lack: kube-scheduler
// never binds the pods there.
func (t *topology) unlabelled(g *group) {
	c := &t.classes[g.class]
	check := func(v *view, rule string) {
		if r := t.ground.bare(v.axis.key).reach[t.ground.faceOf[g.place]]; !r.sure {
			t.broken("pod %s on %s: its %s needs the label %s, which the node may lack",
				g.pods[0], t.places[g.place].name, rule, v.axis.key)
		}
	}
	for _, u := range c.uses {
		check(t.spreads[u.rule].view, "spread constraint")
	}
	if c.near >= 0 {
		for _, v := range t.nears[c.near].views {
			check(v, "affinity")
		}
	}
}

// part finds an order of binding for groups that are connected by rules, or adds sentences about the pods that no order
// binds. An order for the time before leaving nodes are gone is enough, or one for the time after.
func (t *topology) part(groups []int) {
	times := []bool{false} // whether leaving nodes are gone
	if t.leaving {
		times = append(times, true)
	}
	var first []string
	for _, gone := range times {
		o := newOrder(t, groups, gone)
		if o.greedy() || o.search() {
			o.keep()
			return
		}
		if first == nil {
			first = o.stuck
			o.keep()
		}
	}
	t.found = append(t.found, first...)
}

// parts returns the indices of the groups in parts: groups in one part are connected by rules. Groups for which the
// order of binding does not matter are left out.
func (t *topology) parts() [][]int {
	u := newUnion(len(t.spreads) + len(t.nears))
	rules := make([][]int, len(t.classes)) // by class: spread rules, then near rules
	for i := range t.classes {
		c := &t.classes[i]
		k := &t.kinds[c.kind]
		rules[i] = slices.Clone(k.spreads)
		for _, use := range c.uses {
			rules[i] = append(rules[i], use.rule)
		}
		for _, n := range k.nears {
			rules[i] = append(rules[i], len(t.spreads)+n)
		}
		if c.near >= 0 {
			rules[i] = append(rules[i], len(t.spreads)+c.near)
		}
	}
	for _, g := range t.groups {
		for _, r := range rules[g.class] {
			u.join(rules[g.class][0], r)
		}
	}
	partOf := map[int]int{} // by root of a rule in u
	var out [][]int
	for i, g := range t.groups {
		if len(rules[g.class]) == 0 {
			continue
		}
		root := u.root(rules[g.class][0])
		n, ok := partOf[root]
		if !ok {
			n = len(out)
			partOf[root] = n
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

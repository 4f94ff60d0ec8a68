package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// order binds the pods of one part of a plan, one by one.
type order struct {
	*topology
	members []int             // indices in topology.groups of the groups of the part; those with the strictest rules first
	spread  map[int]*evenness // by index in book.spreads, for the rules of the part
	near    map[int]*nearness // by index in book.nears, for the rules of the part
	stuck   []string          // sentences about the pods that greedy could not bind

	// The state of greedy.
	queue     []errand
	buckets   map[obstacle]*bucket
	bucketsOf map[rule][]*bucket // by rule: the buckets of the groups whose obstacle it is
	waiting   map[company][]int  // groups that a pod counted by the near rule on the place would help
	until     map[int]bool       // near rules that wait for their first pod: no other pod that they count is bound before it
	first     map[int]bool       // groups whose pod may be the first pod of a near rule
}

// rule identifies a spread rule or a near rule.
type rule struct {
	near   bool
	number int // index in book.nears if near, else in book.spreads
}

// heldRule is the rule of obstacles that are held.
var heldRule = rule{near: true, number: -1}

// obstacle is the reason why pods cannot be bound now: a rule, and the domain in which they would violate the rule.
type obstacle struct {
	rule
	term, domain int  // term is the index of the term of a near rule
	held         bool // the pods wait for the first pod of a near rule that counts them, whose index is in domain; see order.until
}

// company is a near rule, by its index, and a place.
type company struct{ near, place int }

// bucket has the groups with the same obstacle. When the obstacle may be gone, the groups are tried one by one, until a
// group must wait again.
type bucket struct {
	obstacle
	groups []int
	queued bool // the bucket is in order.queue
}

// errand is a group to try, or a bucket if that is not nil.
type errand struct {
	group  int
	bucket *bucket
}

// newOrder returns the order of the groups of one part, with all their pods unbound. gone is as in spreadRule.evenness.
func newOrder(t *topology, groups []int, gone bool) *order {
	o := &order{
		topology: t, members: slices.Clone(groups), spread: map[int]*evenness{}, near: map[int]*nearness{},
	}
	for _, i := range groups {
		g := &t.groups[i]
		g.left, g.waits = len(g.pods), nil
		c := &t.classes[g.class]
		k := &t.kinds[c.kind]
		for _, u := range c.uses {
			o.useSpread(u.rule, gone)
		}
		for _, n := range k.spreads {
			o.useSpread(n, gone)
		}
		if c.near >= 0 {
			o.useNear(c.near)
		}
		for _, n := range k.nears {
			o.useNear(n)
		}
	}
	slices.SortStableFunc(o.members, func(a, b int) int {
		return cmp.Compare(o.looseness(a), o.looseness(b))
	})
	return o
}

// useSpread adds the state of the spread rule, unless it is there already.
func (o *order) useSpread(n int, gone bool) {
	if o.spread[n] == nil {
		o.spread[n] = o.spreads[n].evenness(gone)
	}
}

// useNear adds the state of the near rule, unless it is there already.
func (o *order) useNear(n int) {
	if o.near[n] == nil {
		o.near[n] = o.nears[n].nearness()
	}
}

// looseness returns how late the pods of the group can be bound; 1<<30 without a spread. Pods with the smallest maxSkew
// must be bound first; of these, first the pods that their own rule does not count.
func (o *order) looseness(group int) int {
	least := 1 << 30
	for _, u := range o.classes[o.groups[group].class].uses {
		least = min(least, 2*u.maxSkew+u.self)
	}
	return least
}

// obstacle returns the reason why one more pod of the group cannot be bound now, or nil.
func (o *order) obstacle(group int) *obstacle {
	g := &o.groups[group]
	c := &o.classes[g.class]
	for _, u := range c.uses {
		e := o.spread[u.rule]
		if over, d := e.excess(u, e.view.at(g.place), g.place); over > 0 {
			return &obstacle{rule: rule{number: u.rule}, domain: d}
		}
	}
	if c.near >= 0 {
		n := o.near[c.near]
		at := func(term int) reach { return n.views[term].at(g.place) }
		if term, d, bad := n.misses(at, g.place, c.self); bad {
			return &obstacle{rule: rule{near: true, number: c.near}, term: term, domain: d}
		}
	}
	return nil
}

// move binds one pod of the group if n is 1, and unbinds one if n is -1.
func (o *order) move(group, n int) {
	g := &o.groups[group]
	k := &o.kinds[o.classes[g.class].kind]
	g.left -= n
	for _, r := range k.spreads {
		o.spread[r].add(g.place, n)
	}
	for _, r := range k.nears {
		o.near[r].add(g.place, n)
	}
}

// keep stores the final state of the rules of the part in spreadEnd and nearEnd.
func (o *order) keep() {
	for n, e := range o.spread {
		o.spreadEnd[n] = e
	}
	for n, near := range o.near {
		o.nearEnd[n] = near
	}
}

// explain sets stuck: a sentence for each group with pods that could not be bound.
func (o *order) explain() {
	o.stuck = nil
	for _, i := range o.members {
		g := &o.groups[i]
		if g.left == 0 {
			continue
		}
		ob := o.obstacle(i)
		if ob == nil {
			continue
		}
		where := o.places[g.place].name
		if ob.near {
			n := o.near[ob.number]
			o.stuck = append(o.stuck, fmt.Sprintf(
				"%s cannot be bound to %s in any order: no pod that its affinity selects is certain to be in the same %s",
				g, where, n.terms[ob.term].Key))
			continue
		}
		c := &o.classes[g.class]
		e := o.spread[ob.number]
		for _, u := range c.uses {
			if u.rule == ob.number {
				o.stuck = append(o.stuck, fmt.Sprintf("%s cannot be bound to %s in any order: %s",
					g, where, e.describe(u, g.place)))
				break
			}
		}
	}
}

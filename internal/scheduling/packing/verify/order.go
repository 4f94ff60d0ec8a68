package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// order searches for an order in which kube-scheduler can bind the pods of one component of the plan, and binds them
// one by one; see topology.components.
type order struct {
	*topology
	members        []int                  // indices in topology.groups of the groups of the component; those with the strictest rules first
	spreadStates   map[int]*spreadState   // by index in ruleSet.spreads, for the rules of the component
	affinityStates map[int]*affinityState // by index in ruleSet.affinities, for the rules of the component
	stuck          []string               // sentences about the pods that greedy could not bind

	// The state of greedy.
	queue       []queueItem
	buckets     map[obstacle]*bucket
	bucketsOf   map[rule][]*bucket  // by rule: the buckets whose obstacle has the rule
	waiting     map[rulePlace][]int // the groups that wait until the affinity rule counts a pod on the place
	awaitFirst  map[int]bool        // affinity rules that wait for their first pod: no other pod that they count is bound before it
	firstGroups map[int]bool        // groups that must provide the first pod of an affinity rule
}

// rule identifies a spread rule or an affinity rule.
type rule struct {
	isAffinity bool
	number     int // index in ruleSet.affinities if isAffinity, else in ruleSet.spreads
}

// heldRule stands for the rule in obstacles whose held is true. It is no rule of the plan.
var heldRule = rule{isAffinity: true, number: -1}

// obstacle is the reason why pods cannot be bound now: a rule, and the domain in which they would violate the rule.
type obstacle struct {
	rule
	term   int  // for an affinity rule: index of the term
	domain int  // the domain or, if held, the index of the affinity rule
	held   bool // the pods wait for the first pod of an affinity rule that counts them; see order.awaitFirst
}

type rulePlace struct{ affinity, place int }

// bucket has the groups with the same obstacle. When the obstacle may be gone, the groups are tried one by one, until a
// group must wait again.
type bucket struct {
	obstacle
	groups []int
	queued bool // the bucket is in order.queue
}

// queueItem is the bucket to try or, if bucket is nil, the group to try.
type queueItem struct {
	group  int
	bucket *bucket
}

// newOrder returns the order for the groups of one component, with all their pods unbound. gone is as in
// spreadRule.initialState.
func newOrder(t *topology, groups []int, gone bool) *order {
	o := &order{
		topology: t, members: slices.Clone(groups),
		spreadStates: map[int]*spreadState{}, affinityStates: map[int]*affinityState{},
	}
	for _, i := range groups {
		g := &t.groups[i]
		g.left, g.waits = len(g.pods), nil
		c := &t.classes[g.class]
		k := &t.kinds[c.kind]
		for _, u := range c.uses {
			o.addSpread(u.rule, gone)
		}
		for _, n := range k.spreads {
			o.addSpread(n, gone)
		}
		if c.affinity >= 0 {
			o.addAffinity(c.affinity)
		}
		for _, n := range k.affinities {
			o.addAffinity(n)
		}
	}
	slices.SortStableFunc(o.members, func(a, b int) int {
		return cmp.Compare(o.slack(a), o.slack(b))
	})
	return o
}

func (o *order) addSpread(n int, gone bool) {
	if o.spreadStates[n] == nil {
		o.spreadStates[n] = o.spreads[n].initialState(gone)
	}
}

func (o *order) addAffinity(n int) {
	if o.affinityStates[n] == nil {
		o.affinityStates[n] = o.affinities[n].initialState()
	}
}

// slack orders groups: pods of a group with less slack must be bound earlier. It is smallest for pods with the smallest
// maxSkew and, of these, for pods that their own rule does not count; 1<<30 without a spread.
func (o *order) slack(group int) int {
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
		e := o.spreadStates[u.rule]
		if over, d := e.excess(u, e.view.reachOfPlace(g.place), g.place); over > 0 {
			return &obstacle{rule: rule{number: u.rule}, domain: d}
		}
	}
	if c.affinity >= 0 {
		n := o.affinityStates[c.affinity]
		at := func(term int) reach { return n.views[term].reachOfPlace(g.place) }
		if term, d, unmet := n.unmetTerm(at, g.place, c.self); unmet {
			return &obstacle{rule: rule{isAffinity: true, number: c.affinity}, term: term, domain: d}
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
		o.spreadStates[r].add(g.place, n)
	}
	for _, r := range k.affinities {
		o.affinityStates[r].add(g.place, n)
	}
}

func (o *order) storeState() {
	for n, e := range o.spreadStates {
		o.spreadEnd[n] = e
	}
	for n, state := range o.affinityStates {
		o.affinityEnd[n] = state
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
		if ob.isAffinity {
			n := o.affinityStates[ob.number]
			o.stuck = append(o.stuck, fmt.Sprintf(
				"%s cannot be bound to %s in any order: no pod that its affinity selects is certain to be in the same %s",
				g, where, n.terms[ob.term].Key))
			continue
		}
		c := &o.classes[g.class]
		e := o.spreadStates[ob.number]
		for _, u := range c.uses {
			if u.rule == ob.number {
				o.stuck = append(o.stuck, fmt.Sprintf("%s cannot be bound to %s in any order: %s",
					g, where, e.describe(u, g.place)))
				break
			}
		}
	}
}

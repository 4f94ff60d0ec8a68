package topology

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// crowd has all pods that rules can count. Pods that no selector distinguishes are one member. So the pods that a rule
// counts are a set of members, and rules that select the same members are equal, even if their selectors differ.
type crowd struct {
	labels  []string       // the label keys that selectors use, sorted
	numbers map[string]int // number of each member, by result of memberKey
	keys    []string       // by member: its key in numbers
	weight  []int          // by member: number of pods to schedule, of which adjacent pods with equal rules are one; 0: only residents

	spaces map[string][]int  // numbers of the members, by namespace
	traits map[string]*trait // by label key
}

// trait has the members with a label: all of them, and those with each value.
type trait struct {
	has    []int
	values map[string][]int
}

func newCrowd(labels []string) *crowd {
	return &crowd{labels: labels, numbers: map[string]int{}, spaces: map[string][]int{}, traits: map[string]*trait{}}
}

// memberKey appends the properties of a pod that selectors over these label keys can distinguish: its namespace and the
// values of the labels.
func memberKey(b []byte, labels []string, namespace string, of requirements.Labels) []byte {
	b = hashkey.Text(b, namespace)
	for i, k := range labels {
		if value, ok := of[k]; ok {
			b = hashkey.Text(hashkey.Int(b, i), value)
		}
	}
	return b
}

// add returns the number of the member for pods with this namespace and labels. It adds the member if it is new.
func (c *crowd) add(namespace string, of requirements.Labels) int {
	key := memberKey(nil, c.labels, namespace, of)
	n, ok := c.numbers[string(key)]
	if ok {
		return n
	}
	n = len(c.keys)
	c.numbers[string(key)] = n
	c.keys, c.weight = append(c.keys, string(key)), append(c.weight, 0)
	c.spaces[namespace] = append(c.spaces[namespace], n)
	for _, k := range c.labels {
		value, ok := of[k]
		if !ok {
			continue
		}
		t := c.traits[k]
		if t == nil {
			t = &trait{values: map[string][]int{}}
			c.traits[k] = t
		}
		t.has = append(t.has, n)
		t.values[value] = append(t.values[value], n)
	}
	return n
}

// nothing returns an empty set of members.
func (c *crowd) nothing() bitset.Set { return bitset.New(len(c.keys)) }

// matched returns the members that the term counts.
func (c *crowd) matched(t *cluster.Term) bitset.Set {
	out := c.nothing()
	if t.Selector.Nothing {
		return out
	}
	if t.AllNamespaces {
		out.AddRange(0, len(c.keys))
	} else {
		for _, namespace := range t.Namespaces {
			addAll(out, c.spaces[namespace])
		}
	}
	for key, v := range t.Selector.Labels {
		c.narrow(out, key, v)
	}
	return out
}

// narrow removes members from the set: those whose value of the label key, or whose lack of it, v does not accept.
func (c *crowd) narrow(set bitset.Set, key string, v requirements.Values) {
	t := c.traits[key]
	if t == nil {
		t = &trait{}
	}
	accepted := c.nothing()
	switch {
	case !v.Complement:
		for _, value := range v.Listed {
			addAll(accepted, t.values[value])
		}
	case v.Min == nil && v.Max == nil:
		addAll(accepted, t.has)
		for _, value := range v.Listed {
			for _, n := range t.values[value] {
				accepted.Remove(n)
			}
		}
	default:
		for value, members := range t.values {
			if v.Accepts(value) {
				addAll(accepted, members)
			}
		}
	}
	if v.Absent {
		absent := c.nothing()
		absent.AddRange(0, len(c.keys))
		for _, n := range t.has {
			absent.Remove(n)
		}
		accepted.Or(absent)
	}
	set.And(accepted)
}

// addAll adds the members to the set.
func addAll(set bitset.Set, members []int) {
	for _, n := range members {
		set.Add(n)
	}
}

// weigh returns the sum of the weights of the members in the set.
func (c *crowd) weigh(set bitset.Set) int {
	n := 0
	set.Each(func(i int) { n += c.weight[i] })
	return n
}

package topology

import (
	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// memberIndex has all pods that rules can count. Pods that no selector distinguishes are one member. So the pods that a
// rule counts are a set of members, and rules that select the same members are equal, even if their selectors differ.
type memberIndex struct {
	labels  []string       // the label keys that selectors use, sorted
	numbers map[string]int // number of each member, by result of memberKey
	keys    []string       // by member: its key in numbers
	weight  []int          // by member: number of its pods to schedule (adjacent pods that are alike count once)

	byNamespace map[string][]int         // by namespace: numbers of the members in it
	byKey       map[string]*labelMembers // by label key: members with the label
}

// labelMembers has the numbers of the members with a label.
type labelMembers struct {
	all     []int
	byValue map[string][]int // by value of the label
}

func newMemberIndex(labels []string) *memberIndex {
	return &memberIndex{
		labels: labels, numbers: map[string]int{}, byNamespace: map[string][]int{}, byKey: map[string]*labelMembers{},
	}
}

// memberKey appends the properties of a pod that selectors over these label keys can distinguish: its namespace and the
// values of the labels.
func memberKey(b []byte, keys []string, namespace string, labels requirements.Labels) []byte {
	b = hashkey.Text(b, namespace)
	for i, k := range keys {
		if value, ok := labels[k]; ok {
			b = hashkey.Text(hashkey.Int(b, i), value)
		}
	}
	return b
}

// add returns the number of the member for pods with this namespace and labels. It adds the member if it is new.
func (c *memberIndex) add(namespace string, labels requirements.Labels) int {
	key := memberKey(nil, c.labels, namespace, labels)
	n, ok := c.numbers[string(key)]
	if ok {
		return n
	}
	n = len(c.keys)
	c.numbers[string(key)] = n
	c.keys, c.weight = append(c.keys, string(key)), append(c.weight, 0)
	c.byNamespace[namespace] = append(c.byNamespace[namespace], n)
	for _, k := range c.labels {
		value, ok := labels[k]
		if !ok {
			continue
		}
		t := c.byKey[k]
		if t == nil {
			t = &labelMembers{byValue: map[string][]int{}}
			c.byKey[k] = t
		}
		t.all = append(t.all, n)
		t.byValue[value] = append(t.byValue[value], n)
	}
	return n
}

func (c *memberIndex) emptySet() bitset.Set { return bitset.New(len(c.keys)) }

// matched returns the members that the term counts.
func (c *memberIndex) matched(t *cluster.Term) bitset.Set {
	out := c.emptySet()
	if t.Selector.MatchesNothing {
		return out
	}
	if t.AllNamespaces {
		out.AddRange(0, len(c.keys))
	} else {
		for _, namespace := range t.Namespaces {
			addAll(out, c.byNamespace[namespace])
		}
	}
	for key, v := range t.Selector.Labels {
		c.narrow(out, key, v)
	}
	return out
}

// narrow removes from the set the members that v does not accept. v is the condition on the label with this key: the
// values that the label may have, and whether the label may be absent.
func (c *memberIndex) narrow(set bitset.Set, key string, v requirements.Values) {
	t := c.byKey[key]
	if t == nil {
		t = &labelMembers{}
	}
	accepted := c.emptySet()
	switch {
	case !v.Complement:
		for _, value := range v.Listed {
			addAll(accepted, t.byValue[value])
		}
	case v.Min == nil && v.Max == nil:
		addAll(accepted, t.all)
		for _, value := range v.Listed {
			for _, n := range t.byValue[value] {
				accepted.Remove(n)
			}
		}
	default:
		for value, members := range t.byValue {
			if v.Accepts(value) {
				addAll(accepted, members)
			}
		}
	}
	if v.Absent {
		absent := c.emptySet()
		absent.AddRange(0, len(c.keys))
		for _, n := range t.all {
			absent.Remove(n)
		}
		accepted.Or(absent)
	}
	set.And(accepted)
}

func addAll(set bitset.Set, members []int) {
	for _, n := range members {
		set.Add(n)
	}
}

func (c *memberIndex) weightOf(set bitset.Set) int {
	n := 0
	set.Each(func(i int) { n += c.weight[i] })
	return n
}

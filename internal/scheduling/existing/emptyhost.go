package existing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
)

// AlwaysHasEmptyHost reports whether some node that counts for the spread of the group has no pod of the group, and
// can get none in any plan. The group is over host names. Such a node is full, or has a taint or labels that no pod
// of the group accepts.
//
// With such a node, no node of any plan has more than maxSkew pods of the group. Without such a node, kube-scheduler
// allows more pods as soon as each node has a pod of the group. For example, if there is only one node, kube-scheduler
// binds three pods with maxSkew 1 to it.
func (t *TopologyState) AlwaysHasEmptyHost(group int) bool {
	if known, ok := t.alwaysEmpty[group]; ok || len(t.rooms.Nodes) == 0 {
		return known
	}
	among := t.Counted[group]
	if among == nil {
		among = bitset.New(len(t.rooms.Nodes))
		among.AddRange(0, len(t.rooms.Nodes))
	}
	t.alwaysEmpty[group] = false
	for i := among.Next(0); i >= 0 && !t.alwaysEmpty[group]; i = among.Next(i + 1) {
		accepts := func(c *podgroup.Class) bool { return t.rooms.Accepted[c.Sig].Has(i) && c.Ask.Fits(t.rooms.Room[i]) }
		t.alwaysEmpty[group] = t.rooms.Hosts[i].Matched(group) == 0 && !slices.ContainsFunc(t.membersOf(group), accepts)
	}
	return t.alwaysEmpty[group]
}

// membersOf returns the classes whose pods the group counts. The group is over host names.
func (t *TopologyState) membersOf(group int) []*podgroup.Class {
	if t.members == nil {
		t.members = make([][]*podgroup.Class, len(t.queue.Topology.Groups))
		for c := range t.queue.Classes {
			class := &t.queue.Classes[c]
			for _, g := range t.queue.Topology.Profiles[class.Profile].HostIn {
				t.members[g] = append(t.members[g], class)
			}
		}
	}
	return t.members[group]
}

package topology

import (
	"math"
	"slices"
)

// HostCounts counts the pods on one node for the rules over host names. The zero value is an empty node.
type HostCounts struct {
	entries []groupCounts
	slots   []int32 // hash table by group: index into entries plus one, 0: free; nil while entries has at most fewEntries
}

// groupCounts has the counts of one group on the node.
type groupCounts struct {
	group   int
	matched int // pods that the group counts
	owners  int // pods with a required rule about the group: an anti-affinity, or a spread
	maxSkew int // the lowest maxSkew of the pods with a spread over the group; 0: no such pod
}

// fewEntries is the maximum number of entries that are searched without a hash table.
const fewEntries = 8

// Clone returns a copy that can be changed independently.
func (t HostCounts) Clone() HostCounts {
	return HostCounts{entries: slices.Clone(t.entries), slots: slices.Clone(t.slots)}
}

func (t *HostCounts) countsOf(group int) groupCounts {
	if i := t.find(group); i >= 0 {
		return t.entries[i]
	}
	return groupCounts{}
}

// entryOf returns the entry of the group for changes. It adds the entry if there is none.
func (t *HostCounts) entryOf(group int) *groupCounts {
	i := t.find(group)
	if i < 0 {
		i = len(t.entries)
		t.entries = append(t.entries, groupCounts{group: group})
		t.addToTable(i)
	}
	return &t.entries[i]
}

func (t *HostCounts) find(group int) int {
	if t.slots == nil {
		for i := range t.entries {
			if t.entries[i].group == group {
				return i
			}
		}
		return -1
	}
	for at := t.home(group); ; at = (at + 1) & (len(t.slots) - 1) {
		i := int(t.slots[at]) - 1
		if i < 0 || t.entries[i].group == group {
			return i
		}
	}
}

// home returns the index in slots at which the search for a group starts: a multiplicative hash (Fibonacci hashing).
func (t *HostCounts) home(group int) int {
	return int(uint32(group)*0x9e3779b1>>8) & (len(t.slots) - 1)
}

// addToTable adds the last entry, which has index i, to the hash table. It grows the table so that at most half of the
// slots are used.
func (t *HostCounts) addToTable(i int) {
	if len(t.entries) <= fewEntries {
		return
	}
	if 2*len(t.entries) <= len(t.slots) {
		t.putInTable(i)
		return
	}
	t.slots = make([]int32, max(4*fewEntries, 2*len(t.slots)))
	for k := range t.entries {
		t.putInTable(k)
	}
}

// putInTable puts the entry with index i into the first free slot of the hash table.
func (t *HostCounts) putInTable(i int) {
	at := t.home(t.entries[i].group)
	for t.slots[at] != 0 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = int32(i + 1)
}

// Matched returns how many pods the group counts on the node.
func (t *HostCounts) Matched(group int) int { return t.countsOf(group).matched }

// Add adds n pods of the profile.
func (t *HostCounts) Add(p *Profile, n int) {
	for _, g := range p.HostIn {
		t.entryOf(g).matched += n
	}
	for i := range p.Host {
		r := &p.Host[i]
		if r.Weight > 0 || r.Kind == Affinity {
			continue
		}
		e := t.entryOf(r.Group)
		e.owners += n
		if r.Kind == Spread && (e.maxSkew == 0 || r.MaxSkew < e.maxSkew) {
			e.maxSkew = r.MaxSkew
		}
	}
}

// AddPods adds n pods that the group counts.
func (t *HostCounts) AddPods(group, n int) { t.entryOf(group).matched += n }

// AddOwners adds n pods with a required anti-affinity to the group.
func (t *HostCounts) AddOwners(group, n int) { t.entryOf(group).owners += n }

// Limits are options of Room.
type Limits struct {
	// Fewest returns the lowest number of pods of a group on any node, or 0 if there are fewer nodes than
	// minDomains. If Fewest is nil, the number is 0, because a new node without pods of the group is always possible.
	Fewest func(group, minDomains int) int
	// Strict is true if preferences with a weight above DroppedWeight are treated like required rules.
	Strict        bool
	DroppedWeight int // the highest weight of the preferences that are ignored, if Strict
	// HasPod reports whether some node has a pod of the group, so that preferred affinity to the group
	// can be satisfied. If HasPod is nil, no node has a pod of any group.
	HasPod func(group int) bool
	// Together is true if the pods that affinity refers to are placed on the node in the same step.
	Together bool
	// Last is true if the pods are bound after all other pods of the node, so the spreads of those other pods do not
	// limit them.
	Last bool
}

// Room returns how many more pods of the profile the node may take; math.MaxInt if no rule limits them.
//
// kube-scheduler checks a spread only when it binds a pod with the spread, and it may bind other pods before that pod.
// So once a pod with a spread is on the node, the limit of the spread holds for all pods that the spread counts.
func (t *HostCounts) Room(b *Index, p *Profile, l Limits) int {
	room := math.MaxInt
	for i := range p.Host {
		r := &p.Host[i]
		if r.Weight > 0 && (!l.Strict || r.Weight <= l.DroppedWeight) {
			continue
		}
		room = min(room, roomByRule(t.countsOf(r.Group).matched, r, l))
	}
	for _, g := range p.HostIn {
		e := t.countsOf(g)
		switch {
		case e.owners == 0:
		case b.Groups[g].Kind == AntiAffinity:
			return 0
		case b.Groups[g].Kind == Spread && e.maxSkew > 0 && !l.Last:
			room = min(room, max(e.maxSkew+l.fewest(g, 0)-e.matched, 0)) // groupCounts has no minDomains
		}
	}
	return max(room, 0)
}

// roomByRule returns how many more pods with the rule r the node may take if no other rule applies. matched is the
// number of pods on the node that the group of the rule counts.
func roomByRule(matched int, r *Rule, l Limits) int {
	needsPod := r.Kind == Affinity && (r.Weight == 0 || l.HasPod != nil && l.HasPod(r.Group))
	switch {
	case r.Kind == AntiAffinity && matched > 0, needsPod && matched == 0 && !l.Together:
		return 0
	case r.Kind == Spread:
		return roomBySpread(matched, r, l)
	case r.Kind == AntiAffinity && r.Self:
		return 1
	}
	return math.MaxInt
}

// roomBySpread is roomByRule for a spread.
func roomBySpread(matched int, r *Rule, l Limits) int {
	room := r.MaxSkew + l.fewest(r.Group, r.MinDomains) - matched
	if r.Self {
		return max(room, 0)
	}
	if room < 0 {
		return 0
	}
	return math.MaxInt
}

func (l Limits) fewest(group, minDomains int) int {
	if l.Fewest == nil {
		return 0
	}
	return l.Fewest(group, minDomains)
}

// MaxPerNode returns the maximum number of pods of the profile on one node, and the group of the required rule that
// sets this maximum. It returns math.MaxInt and 0 if no rule limits the number. A spread limits a node to its maxSkew
// only if some node never has a pod of the group. hasEmptyNode reports whether there is such a node. nil means that
// there is one for every group.
func (p *Profile) MaxPerNode(hasEmptyNode func(group int) bool) (most, group int) {
	most = math.MaxInt
	for i := range p.Host {
		r := &p.Host[i]
		if r.Weight > 0 || !r.Self {
			continue
		}
		switch {
		case r.Kind == AntiAffinity && most > 1:
			most, group = 1, r.Group
		case r.Kind == Spread && r.MaxSkew < most && (hasEmptyNode == nil || hasEmptyNode(r.Group)):
			most, group = r.MaxSkew, r.Group
		}
	}
	return most, group
}

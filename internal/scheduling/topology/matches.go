package topology

import "github.com/joiner-sh/joiner/internal/model/cluster"

// Matches has the groups of an Index that matter for residents of one kind.
type Matches struct {
	In     []int // the groups that count the residents, sorted
	Avoids []int // the groups of the residents' anti-affinity terms, in the order of the terms, except terms without a group
}

// MatchesOf returns the groups that matter for residents of the kind. It caches the result by pointer, because there
// are far fewer kinds than residents. It must not be called concurrently.
func (b *Index) MatchesOf(kind *cluster.PodKind) *Matches {
	if s, ok := b.matches[kind]; ok {
		return s
	}
	s := &Matches{In: b.GroupsOf(kind.Namespace, kind.Labels)}
	s.Avoids = b.avoids[kind] // complete if the Index is wide
	for i := range kind.RequiredAntiAffinity {
		if b.avoids != nil {
			break
		}
		if g, ok := b.AntiAffinityGroup(&kind.RequiredAntiAffinity[i]); ok {
			s.Avoids = append(s.Avoids, g)
		}
	}
	if b.matches == nil {
		b.matches = map[*cluster.PodKind]*Matches{}
	}
	b.matches[kind] = s
	return s
}

// dropUnmatched drops the groups, from the number first on, that count none of the pods to schedule. They belong to
// anti-affinity of running pods that excludes no pending pod; there may be thousands. The caller must first call
// GroupsOf for each pod to schedule. dropUnmatched renumbers the groups, also in the results of GroupsOf.
func (b *Index) dropUnmatched(first int) {
	numbers := make([]int, len(b.Groups)) // by old number: the new number plus one (1 until it is known); 0 if the group is dropped
	for _, in := range b.groupsCache {
		for _, g := range in {
			numbers[g] = 1
		}
	}
	kept := b.Groups[:0:0]
	for g := range b.Groups {
		if g < first || numbers[g] > 0 {
			kept = append(kept, b.Groups[g])
			numbers[g] = len(kept)
		}
	}
	b.Groups = kept
	renumber := func(groups []int) []int {
		out := groups[:0]
		for _, g := range groups {
			if numbers[g] > 0 {
				out = append(out, numbers[g]-1)
			}
		}
		return out
	}
	for _, in := range b.groupsCache {
		renumber(in) // in place, because none of these groups was dropped
	}
	for anchor, groups := range b.groupsByLabel {
		b.groupsByLabel[anchor] = renumber(groups)
	}
	b.otherGroups = renumber(b.otherGroups)
	for key, g := range b.numbers {
		if b.numbers[key] = numbers[g] - 1; numbers[g] == 0 {
			delete(b.numbers, key)
		}
	}
}

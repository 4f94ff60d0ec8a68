package topology

import "github.com/joiner-sh/joiner/internal/model/cluster"

// Matches is how residents of one kind matter for the groups of an Index.
type Matches struct {
	In     []int // the groups that count them, sorted
	Avoids []int // the groups of their anti-affinity terms, in the order of the terms, as far as the Index has them
}

// MatchesOf returns how residents of the kind matter for the groups. It is computed once for each
// pointer, because there are far fewer kinds than residents. It must not be called concurrently.
func (b *Index) MatchesOf(kind *cluster.Kind) *Matches {
	if s, ok := b.standings[kind]; ok {
		return s
	}
	s := &Matches{In: b.GroupsOf(kind.Namespace, kind.Labels)}
	s.Avoids = b.avoids[kind]
	for i := range kind.Avoids {
		if b.avoids != nil {
			break
		}
		if g, ok := b.AntiAffinityGroup(&kind.Avoids[i]); ok {
			s.Avoids = append(s.Avoids, g)
		}
	}
	if b.standings == nil {
		b.standings = map[*cluster.Kind]*Matches{}
	}
	b.standings[kind] = s
	return s
}

// forget drops the groups, from own on, that count none of the pods that were matched so far. Those are
// anti-affinity rules of running pods that exclude no pending pod, and there may be thousands. The
// matches of earlier pods get the new numbers.
func (b *Index) forget(own int) {
	numbers := make([]int, len(b.Groups)) // by number as it was: the new one plus one, 0 for none
	for _, in := range b.seen {
		for _, g := range in {
			numbers[g] = 1
		}
	}
	kept := b.Groups[:0:0]
	for g := range b.Groups {
		if g < own || numbers[g] > 0 {
			kept = append(kept, b.Groups[g])
			numbers[g] = len(kept)
		}
	}
	b.Groups = kept
	renumber := func(groups []int) []int {
		left := groups[:0]
		for _, g := range groups {
			if numbers[g] > 0 {
				left = append(left, numbers[g]-1)
			}
		}
		return left
	}
	for _, in := range b.seen {
		renumber(in) // none of these was removed
	}
	for anchor, groups := range b.anchors {
		b.anchors[anchor] = renumber(groups)
	}
	b.loose = renumber(b.loose)
	for key, g := range b.numbers {
		if b.numbers[key] = numbers[g] - 1; numbers[g] == 0 {
			delete(b.numbers, key)
		}
	}
}

package topology

import "github.com/joiner-sh/joiner/cluster"

// Standing is what a kind of resident is to the groups of a book.
type Standing struct {
	In     []int // the groups that count it, sorted
	Avoids []int // the groups of its anti-affinity terms, in their order, as far as the book has them
}

// Standing returns what residents of the kind are to the groups. It is worked out once for
// all that share the pointer: there are far fewer kinds than residents.
func (b *Book) Standing(kind *cluster.Kind) *Standing {
	if s, ok := b.standings[kind]; ok {
		return s
	}
	s := &Standing{In: b.GroupsOf(kind.Namespace, kind.Labels)}
	for i := range kind.Avoids {
		if g, ok := b.Apart(&kind.Avoids[i]); ok {
			s.Avoids = append(s.Avoids, g)
		}
	}
	if b.standings == nil {
		b.standings = map[*cluster.Kind]*Standing{}
	}
	b.standings[kind] = s
	return s
}

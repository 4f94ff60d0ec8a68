package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// match finds, for each kind of pods, the rules that count it.
func (b *book) match() {
	spreads, nears, aparts := newSelection(), newSelection(), newSelection()
	for i, r := range b.spreads {
		spreads.add(i, &r.selector)
	}
	for i, r := range b.nears {
		nears.add(i, &r.terms[0].Selector)
	}
	for i, r := range b.aparts {
		b.aparts[i].view = b.ground.bare(r.term.Key)
		aparts.add(i, &r.term.Selector)
	}
	for i := range b.kinds {
		k := &b.kinds[i]
		k.spreads = spreads.matching(k, func(n int) bool { return b.spreads[n].counts(k.namespace, k.labels) })
		k.nears = nears.matching(k, func(n int) bool { return b.nears[n].counts(k.namespace, k.labels) })
		k.aparts = aparts.matching(k, func(n int) bool { return b.aparts[n].term.Matches(k.namespace, k.labels) })
	}
}

// selection finds rules by a label that their selectors require, so that not
// every rule must be compared with every kind of pods.
type selection struct {
	asking map[[2]string][]int // by key and value
	others []int               // rules whose selectors require no label with a single value
}

func newSelection() *selection { return &selection{asking: map[[2]string][]int{}} }

func (s *selection) add(rule int, selector *cluster.Selector) {
	if selector.Nothing {
		return
	}
	for _, key := range selector.Labels.Keys() {
		v := selector.Labels[key]
		if v.Complement || v.Absent {
			continue
		}
		for _, value := range v.Listed {
			s.asking[[2]string{key, value}] = append(s.asking[[2]string{key, value}], rule)
		}
		return
	}
	s.others = append(s.others, rule)
}

// matching returns the rules that count the kind, ascending.
func (s *selection) matching(k *kind, counts func(rule int) bool) []int {
	var out []int
	try := func(rules []int) {
		for _, n := range rules {
			if counts(n) {
				out = append(out, n)
			}
		}
	}
	try(s.others)
	for key, value := range k.labels {
		try(s.asking[[2]string{key, value}])
	}
	slices.Sort(out)
	return out
}

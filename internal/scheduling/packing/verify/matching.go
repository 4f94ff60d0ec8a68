package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// match sets, for each kind of pods, the rules that count the pods. It also sets the views of the anti-affinity terms.
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
	asking map[[2]string][]int // by key and value of a label: rules whose selectors list this value for the key
	others []int               // rules whose selectors require no label with listed values
}

func newSelection() *selection { return &selection{asking: map[[2]string][]int{}} }

// add adds the rule with that index, unless its selector matches no pod.
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

// matching returns the indices of the rules for which counts is true, ascending. It asks counts only about rules that
// may match the labels of the kind.
func (s *selection) matching(k *kind, counts func(rule int) bool) []int {
	var out []int
	addFrom := func(rules []int) {
		for _, n := range rules {
			if counts(n) {
				out = append(out, n)
			}
		}
	}
	addFrom(s.others)
	for key, value := range k.labels {
		addFrom(s.asking[[2]string{key, value}])
	}
	slices.Sort(out)
	return out
}

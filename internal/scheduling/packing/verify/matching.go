package verify

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// matchKinds sets, for each kind of pods, the rules that count or match the pods. It also sets the views of the
// anti-affinity rules.
func (rs *ruleSet) matchKinds() {
	spreads, affinities, antiAffinities := newSelectorIndex(), newSelectorIndex(), newSelectorIndex()
	for i, r := range rs.spreads {
		spreads.add(i, &r.selector)
	}
	for i, r := range rs.affinities {
		affinities.add(i, &r.terms[0].Selector)
	}
	for i, r := range rs.antiAffinities {
		rs.antiAffinities[i].view = rs.facts.labelView(r.term.Key)
		antiAffinities.add(i, &r.term.Selector)
	}
	for i := range rs.kinds {
		k := &rs.kinds[i]
		k.spreads = spreads.rulesFor(k, func(n int) bool { return rs.spreads[n].counts(k.namespace, k.labels) })
		k.affinities = affinities.rulesFor(k, func(n int) bool { return rs.affinities[n].counts(k.namespace, k.labels) })
		k.antiAffinities = antiAffinities.rulesFor(k, func(n int) bool { return rs.antiAffinities[n].term.Matches(k.namespace, k.labels) })
	}
}

// selectorIndex finds rules by a label that their selectors require, so that not every rule must be compared with every
// kind of pods.
type selectorIndex struct {
	byLabel map[[2]string][]int // by key and value of a label: rules whose selectors list this value for the key
	others  []int               // rules whose selectors require no label with listed values
}

func newSelectorIndex() *selectorIndex { return &selectorIndex{byLabel: map[[2]string][]int{}} }

// add adds the rule with that index, unless its selector matches no pod.
func (s *selectorIndex) add(rule int, selector *cluster.Selector) {
	if selector.MatchesNothing {
		return
	}
	for _, key := range selector.Labels.Keys() {
		v := selector.Labels[key]
		if v.Complement || v.Absent {
			continue
		}
		for _, value := range v.Listed {
			s.byLabel[[2]string{key, value}] = append(s.byLabel[[2]string{key, value}], rule)
		}
		return // one label is enough to find the rule
	}
	s.others = append(s.others, rule)
}

// rulesFor returns the indices of the rules for which counts is true, ascending. It calls counts only for rules that
// may match the labels of the kind.
func (s *selectorIndex) rulesFor(k *kind, counts func(rule int) bool) []int {
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
		addFrom(s.byLabel[[2]string{key, value}])
	}
	slices.Sort(out)
	return out
}

package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
)

// Limits beyond which the Index is wide. A wide Index uses sets of pods instead of selectors.
const (
	maxRules       = 16      // rules of one pod; ordinary pods have up to four
	maxComparisons = 100_000 // comparisons of labels with selectors
)

// Limits of a wide Index: the number of pairs of a rule and a pod that the rule counts, for preferred and for required
// rules. Beyond maxPreferredPairs, the preferences of the pods with the most pairs are ignored. Beyond
// maxRequiredPairs, the pods with the most pairs wait for another plan.
const (
	maxPreferredPairs = 60_000
	maxRequiredPairs  = 250_000
)

// maxWeightLevels is the maximum number of distinct weights of one pod's preferences. One weight replaces similar
// weights (levelsOf), so that preferences with these weights can be combined into one rule.
const maxWeightLevels = 8

// wide builds an Index for many selectors. The set of pods that a rule counts identifies the rule, so rules with the
// same set are one rule. A pod's anti-affinity terms over one label are one rule. The elements of a set are members: a
// member stands for all pods that no selector distinguishes, see memberIndex.
//
// Plans are the same as with an ordinary Index, except for preferences with more than maxWeightLevels weights in a pod,
// and for pods beyond maxPreferredPairs or maxRequiredPairs.
type wide struct {
	*Index
	memberIndex *memberIndex
	sets        map[string]int // number of each set of members, by key of the set
	lists       map[string]int // number of each list of labels, by key of the list
	members     []bitset.Set   // by group: its members; empty for the groups of volume claims

	preferred, required int // pairs of a rule and a counted pod so far
}

// draft is a rule and its group that may become part of the Index.
type draft struct {
	group   Group
	rule    Rule
	members bitset.Set
}

// isWide reports whether some pod or resident has more than maxRules rules.
func isWide(pods []PodRef, residents []cluster.Resident) bool {
	many := func(p PodRef) bool { return len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity) > maxRules }
	avoids := func(r cluster.Resident) bool { return len(r.RequiredAntiAffinity) > maxRules }
	return slices.ContainsFunc(pods, many) || slices.ContainsFunc(residents, avoids)
}

// isTooSlow reports whether an ordinary Index would compare pods and kinds of residents with too many selectors. It is
// false if kinds is nil.
func (b *Index) isTooSlow(pods []PodRef, like []bool, kinds func() []*cluster.PodKind) bool {
	if kinds == nil || len(b.Groups)*len(pods) <= maxComparisons && len(b.otherGroups) == 0 {
		return false
	}
	seen, comparisons := map[string]bool{}, 0
	var key []byte
	for i, p := range pods {
		if like[i] {
			continue
		}
		if key = memberKey(key[:0], b.labels, p.Namespace, p.Labels); seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		comparisons += len(b.otherGroups)
		for _, k := range b.labels {
			if value, ok := p.Labels[k]; ok {
				comparisons += len(b.groupsByLabel[k+"\x00"+value])
			}
		}
	}
	if comparisons > maxComparisons {
		return true
	}
	// MatchesOf will compare each kind with all otherGroups.
	return len(b.otherGroups) > maxRules && len(b.otherGroups)*len(kinds()) > maxComparisons
}

// newWide returns the Index of the pods. kinds are the kinds of all residents.
func newWide(pods []PodRef, like []bool, residents []cluster.Resident, kinds []*cluster.PodKind) *Index {
	w := &wide{Index: emptyIndex(len(pods)), sets: map[string]int{}, lists: map[string]int{}}
	w.Omitted, w.Deferred = make([]int, len(pods)), make([]bool, len(pods))
	w.labels = selectorKeys(pods, residents)
	w.memberIndex = newMemberIndex(w.labels)
	memberOf := make([]int, len(pods)) // by pod: number of its member
	for i, p := range pods {
		if like[i] {
			memberOf[i] = memberOf[i-1]
			continue
		}
		memberOf[i] = w.memberIndex.add(p.Namespace, p.Labels)
		w.memberIndex.weight[memberOf[i]]++ // adjacent pods that are alike count once
	}
	for _, k := range kinds {
		w.memberIndex.add(k.Namespace, k.Labels)
	}
	rules := w.rulesOf(pods, like, memberOf)
	w.addResidentGroups(residents)
	ins := w.memberships()
	profiles := newProfiler(w.Index)
	for i, p := range pods {
		switch {
		case w.Deferred[i]:
		case like[i] && len(p.Volumes) == 0:
			w.ProfileOf[i] = w.ProfileOf[i-1]
		default:
			w.ProfileOf[i] = profiles.number(rules[i], ins[memberOf[i]], p)
		}
	}
	return w.Index
}

// selectorKeys returns the label keys that the selectors of rules use, sorted.
func selectorKeys(pods []PodRef, residents []cluster.Resident) []string {
	found := map[string]bool{}
	add := func(s *cluster.Selector) {
		for key := range s.Labels {
			found[key] = true
		}
	}
	addTerms := func(terms []cluster.Term) {
		for i := range terms {
			add(&terms[i].Selector)
		}
	}
	for i, p := range pods {
		if i > 0 && p.SharesConstraints(pods[i-1].Pod) {
			continue
		}
		for k := range p.Spread {
			add(&p.Spread[k].Selector)
		}
		addTerms(p.Affinity)
		addTerms(p.AntiAffinity)
	}
	for _, r := range residents {
		addTerms(r.RequiredAntiAffinity)
	}
	return slices.Sorted(maps.Keys(found))
}

// rulesOf returns the rules of each pod. memberOf has, by pod, the number of its member. Pods whose rules count the
// fewest pods are processed first, so limits affect the pods whose rules count the most.
func (w *wide) rulesOf(pods []PodRef, like []bool, memberOf []int) [][]Rule {
	var order []int
	costs := make([]int, len(pods))
	for i, p := range pods {
		if like[i] || !p.hasRules() {
			continue
		}
		order = append(order, i)
		drafts := w.drafts(p, memberOf[i])
		for k := range drafts {
			costs[i] += 1 + w.memberIndex.weightOf(drafts[k].members)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	rules := make([][]Rule, len(pods))
	for _, i := range order {
		drafts := w.drafts(pods[i], memberOf[i])
		preferred, required := w.newPairs(drafts)
		if w.required+required > maxRequiredPairs {
			w.Deferred[i] = true
			continue
		}
		if w.preferred+preferred > maxPreferredPairs {
			w.preferred = maxPreferredPairs // also ignore the preferences of the following pods, which have at least as many pairs
			w.Omitted[i] = len(drafts)
			drafts = slices.DeleteFunc(drafts, func(d draft) bool { return d.rule.Weight > 0 })
			w.Omitted[i] -= len(drafts)
			preferred = 0
		}
		w.preferred, w.required = w.preferred+preferred, w.required+required
		for _, d := range drafts {
			rules[i] = append(rules[i], w.addDraft(d, pods[i]))
		}
	}
	for i := range pods {
		if like[i] {
			rules[i], w.Deferred[i], w.Omitted[i] = rules[i-1], w.Deferred[i-1], w.Omitted[i-1]
		}
	}
	return rules
}

// newPairs returns how many pairs of a rule and a counted pod the drafts would add, for preferred and required rules.
// Only drafts with new groups add pairs.
func (w *wide) newPairs(drafts []draft) (preferred, required int) {
	for i := range drafts {
		d := &drafts[i]
		if d.rule.Volume {
			continue // the name of the volume identifies its group
		}
		d.group.memberSet = w.setNumber(d.members)
		if _, ok := w.numbers[string(groupKey(nil, &d.group))]; ok {
			continue
		}
		// The rule counts as one more pair, and the memory of the set as one for every maxRules words.
		n := w.memberIndex.weightOf(d.members) + len(d.members)/maxRules + 1
		if d.rule.Weight > 0 {
			preferred += n
		} else {
			required += n
		}
	}
	return preferred, required
}

// setNumber returns the number of the set, from 1. It numbers a new set.
func (w *wide) setNumber(members bitset.Set) int {
	key := members.Key()
	n, ok := w.sets[key]
	if !ok {
		n = len(w.sets) + 1
		w.sets[key] = n
	}
	return n
}

func (w *wide) addDraft(d draft, p PodRef) Rule {
	d.rule.Group = w.groupNumber(d.group)
	if d.rule.Kind == Spread && !d.group.AnyNode {
		w.accepts[d.rule.Group] = p.Required
	}
	w.recordMembers(d)
	return d.rule
}

// recordMembers records the members of the draft's group, if the group is new.
func (w *wide) recordMembers(d draft) {
	for len(w.members) < len(w.Groups) {
		w.members = append(w.members, d.members)
	}
}

// drafts returns the pod's rules before the limits of the Index are applied. member is the number of the pod's member.
func (w *wide) drafts(p PodRef, member int) []draft {
	var out []draft
	otherKeys := w.keysBesideFunc(p.Spread)
	for _, s := range p.Spread {
		others, number := otherKeys(s)
		d := draft{
			group: Group{
				Kind: Spread, Key: s.Key, Signature: p.Signature, AnyNode: s.IgnoresNodeAffinity, HonorTaints: s.HonorTaints, Hard: !s.Soft,
				Keys: others, keyList: number,
			},
			rule: Rule{Kind: Spread, MaxSkew: max(s.MaxSkew, 1), MinDomains: s.MinDomains},
		}
		if d.members = w.memberIndex.emptySet(); len(s.Selector.Labels) > 0 {
			d.members = w.memberIndex.matched(&cluster.Term{Namespaces: []string{p.Namespace}, Selector: s.Selector})
		}
		if s.Soft {
			d.rule.Weight = 1
		}
		out = append(out, d)
	}
	out = append(out, w.affinityDrafts(p.Affinity)...)
	out = append(out, w.antiAffinityDrafts(p.AntiAffinity)...)
	for i := range out {
		out[i].rule.Self = out[i].members.Has(member)
	}
	for _, v := range p.Volumes {
		out = append(out, draft{group: volumeGroup(v), rule: Rule{Kind: Affinity, Self: true, Volume: true}, members: w.memberIndex.emptySet()})
	}
	return out
}

// keysBesideFunc returns a function like keysBeside for the spreads of a pod. If the pod has more than maxRules
// spreads, all required spreads share one list of labels, and all preferred spreads share a second list. number
// identifies a shared list; 0 means that the list is not shared. A shared list also contains the spread's own label.
// That changes nothing, because a node without this label does not count anyway.
func (w *wide) keysBesideFunc(all []cluster.Spread) func(s cluster.Spread) (beside []string, number int) {
	if len(all) <= maxRules {
		return func(s cluster.Spread) ([]string, int) { return keysBeside(all, s), 0 }
	}
	var lists [2][]string
	for _, s := range all {
		if s.Key != Hostname {
			lists[toInt(s.Soft)] = append(lists[toInt(s.Soft)], s.Key)
		}
	}
	var numbers [2]int
	for i := range lists {
		slices.Sort(lists[i])
		lists[i] = slices.Compact(lists[i])
		numbers[i] = w.listNumber(lists[i])
	}
	return func(s cluster.Spread) ([]string, int) { return lists[toInt(s.Soft)], numbers[toInt(s.Soft)] }
}

// listNumber returns the number of the list of labels, from 1. It numbers a new list.
func (w *wide) listNumber(list []string) int {
	key := string(hashkey.Text(nil, list...))
	n, ok := w.lists[key]
	if !ok {
		n = len(w.lists) + 1
		w.lists[key] = n
	}
	return n
}

// affinityDrafts returns the rules of affinity terms. Required terms with the same topology key are one rule, because
// one pod must match all of them. Preferred terms that count the same pods are one rule.
func (w *wide) affinityDrafts(terms []cluster.Term) []draft {
	var required bitset.Set
	var out []draft
	levels := levelsOf(terms)
	for i := range terms {
		if t := &terms[i]; t.Weight == 0 {
			if members := w.memberIndex.matched(t); required == nil {
				required = members
			} else {
				required.And(members)
			}
		}
	}
	for i := range terms {
		t := &terms[i]
		d := draft{
			group:   Group{Kind: Affinity, Key: t.Key, Signature: -1, Hard: t.Weight == 0},
			rule:    Rule{Kind: Affinity, Weight: levels[t.Weight]},
			members: required,
		}
		if t.Weight > 0 {
			d.members = w.memberIndex.matched(t)
		}
		same := func(o draft) bool {
			return o.group.Key == t.Key && o.group.Hard == d.group.Hard && slices.Equal(o.members, d.members)
		}
		if k := slices.IndexFunc(out, same); k >= 0 {
			out[k].rule.Weight = combinedWeight(t.Key, out[k].rule.Weight, d.rule.Weight)
			continue
		}
		out = append(out, d)
	}
	return out
}

// combinedWeight returns the weight of the combination of two preferred rules about the same pods. It is the sum of the
// weights. For rules over host names it is the larger weight, because preferences about hosts are dropped one by one,
// lightest first.
func combinedWeight(key string, a, b int) int {
	if key == Hostname {
		return max(a, b)
	}
	return a + b
}

// antiAffinityDrafts returns the rules of anti-affinity terms. An anti-affinity to the pods of two terms is an
// anti-affinity to the union of both, so required terms over one label are one rule. Preferred terms of similar weight
// are combined in the same way.
func (w *wide) antiAffinityDrafts(terms []cluster.Term) []draft {
	levels := levelsOf(terms)
	var out []draft
	for i := range terms {
		t := &terms[i]
		weight := levels[t.Weight]
		members := w.memberIndex.matched(t)
		same := func(o draft) bool { return o.group.Key == t.Key && o.rule.Weight == weight }
		if k := slices.IndexFunc(out, same); k >= 0 {
			out[k].members.Or(members)
			continue
		}
		out = append(out, draft{
			group:   Group{Kind: AntiAffinity, Key: t.Key, Signature: -1, Hard: weight == 0},
			rule:    Rule{Kind: AntiAffinity, Weight: weight},
			members: members,
		})
	}
	return out
}

// levelsOf divides the weights of the preferred terms into at most maxWeightLevels levels. It returns, for each weight,
// the heaviest weight of its level.
func levelsOf(terms []cluster.Term) map[int]int {
	seen := map[int]bool{}
	for i := range terms {
		if terms[i].Weight > 0 {
			seen[terms[i].Weight] = true
		}
	}
	weights := slices.Sorted(maps.Keys(seen))
	out := map[int]int{}
	for level := range maxWeightLevels {
		from, to := len(weights)*level/maxWeightLevels, len(weights)*(level+1)/maxWeightLevels
		for _, weight := range weights[from:to] {
			out[weight] = weights[to-1]
		}
	}
	return out
}

// addResidentGroups adds the groups of the residents' required anti-affinity rules that count any of the pods.
func (w *wide) addResidentGroups(residents []cluster.Resident) {
	w.avoids = map[*cluster.PodKind][]int{}
	for _, r := range residents {
		for _, d := range w.antiAffinityDrafts(r.RequiredAntiAffinity) {
			if d.group.Hard && w.memberIndex.weightOf(d.members) > 0 {
				d.group.memberSet = w.setNumber(d.members)
				w.avoids[r.PodKind] = append(w.avoids[r.PodKind], w.addDraft(d, PodRef{}).Group)
			}
		}
	}
}

// memberships returns the groups that count each member, sorted. It also caches the groups for GroupsOf.
func (w *wide) memberships() [][]int {
	ins := make([][]int, len(w.memberIndex.keys))
	for g, members := range w.members {
		members.Each(func(i int) { ins[i] = append(ins[i], g) })
	}
	for i, key := range w.memberIndex.keys {
		w.groupsCache[key] = ins[i]
	}
	return ins
}

package topology

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// Hostname is the label whose domains are single nodes.
const Hostname = "kubernetes.io/hostname"

// RuleKind is the kind of a topology rule.
type RuleKind byte

// The kinds of rules.
const (
	Spread       RuleKind = iota // topology spread constraint: the numbers of pods in two domains differ by at most maxSkew
	Affinity                     // pod affinity: the domain has a pod of the group
	AntiAffinity                 // pod anti-affinity: the domain has no pod of the group
)

// Group is a set of pods that rules count by domain, and the label whose values are the domains. The pods with a rule
// about the group are its owners.
type Group struct {
	Kind RuleKind // kind of the rules about the group
	Key  string   // label whose values are the domains
	// Signature is the number of the owners' signature (see PodRef): only nodes that this signature accepts count.
	// -1: all nodes count, as always for Affinity and AntiAffinity.
	Signature            int
	AnyNode, HonorTaints bool // IgnoresNodeAffinity and HonorTaints of cluster.Spread
	// Keys are the other labels that a node must have to count: the labels of the owners' other spread
	// constraints, sorted.
	Keys []string

	// Hard is true if some rule about the group is required. A group with only preferred rules
	// affects only the pods with the preference.
	Hard bool

	terms     []cluster.Term // a pod of the group matches all of them
	memberSet int            // in a wide Index, instead of terms: number of the set of pods that the group counts
	keyList   int            // in a wide Index: number of a list of Keys that groups share; 0: the list is not shared
}

// matches reports whether the group counts a pod.
func (g *Group) matches(namespace string, labels requirements.Labels) bool {
	for i := range g.terms {
		if !g.terms[i].Matches(namespace, labels) {
			return false
		}
	}
	return true
}

// Rule is a topology rule of a pod.
type Rule struct {
	Group int      // index into Index.Groups
	Kind  RuleKind // kind of the rule
	Self  bool     // whether the group counts the pod itself
	// MaxSkew and MinDomains are the fields of a Spread; 0 for other kinds.
	MaxSkew, MinDomains int
	Weight              int // 0: the rule is required; otherwise the weight of the preference
	// Volume is true if the group is the pods that share an unbound volume claim. For this rule, the first of these
	// pods may go to any zone.
	Volume bool

	keyIndex int // index into Profile.Keys, for rules in Profile.Domain
}

// Profile has the topology rules of pods, and the groups that count the pods.
type Profile struct {
	Domain []Rule // rules over labels other than the host name
	Host   []Rule // rules over host names

	In     []int // groups over labels other than the host name that count the pods, sorted
	HostIn []int // groups over host names that count the pods, sorted

	// Keys are the labels whose domains matter for the pods, sorted: the labels of the
	// Domain rules, and of the groups in In that are Hard.
	Keys []string

	inKeys []int // by index into In: index into Keys; -1 if the group is not Hard
}

// IsPlain reports whether the pods have no topology rules and no group counts them.
func (p *Profile) IsPlain() bool {
	return len(p.Domain) == 0 && len(p.Host) == 0 && len(p.In) == 0 && len(p.HostIn) == 0
}

// RequiredHostGroups returns the groups of the required affinities over host names. self reports whether
// all these groups count the pods of the profile.
func (p *Profile) RequiredHostGroups() (groups []int, self bool) {
	self = true
	for i := range p.Host {
		if r := &p.Host[i]; r.Kind == Affinity && r.Weight == 0 {
			groups = append(groups, r.Group)
			self = self && r.Self
		}
	}
	return groups, self
}

// HasRequiredHostAffinity reports whether the pods have a required affinity over host names.
func (p *Profile) HasRequiredHostAffinity() bool {
	return slices.ContainsFunc(p.Host, func(r Rule) bool { return r.Kind == Affinity && r.Weight == 0 })
}

// PodRef is a pod to schedule, with the number of its signature: pods that accept the
// same nodes have the same number.
type PodRef struct {
	*cluster.Pod
	Signature int // number of its signature
}

// Index holds the groups and profiles of a number of pods.
type Index struct {
	Groups   []Group   // each distinct group once
	Profiles []Profile // each distinct profile once; the first is the plain profile
	// ProfileOf is the number of the profile of each pod, in the order of the pods of NewIndex. Deferred pods have
	// Plain.
	ProfileOf []int

	// Omitted is, by pod, the number of ignored preferences about other pods. Deferred is, by pod, whether the pod has
	// too many required rules for one plan; a deferred pod has no profile. Both are nil unless the Index is wide (see
	// type wide).
	Omitted  []int
	Deferred []bool

	numbers       map[string]int   // by result of groupKey: number of the group
	groupsByLabel map[string][]int // by anchor, a label that all pods of the group have ("key\x00value"): the groups
	otherGroups   []int            // the groups without an anchor
	labels        []string         // the label keys that selectors use
	groupsCache   map[string][]int // cache of GroupsOf, by result of memberKey

	matches map[*cluster.PodKind]*Matches
	avoids  map[*cluster.PodKind][]int // in a wide Index: the groups of a resident's anti-affinity terms
	// accepts has, by group of a spread, the node requirements of the pod that owns the spread. noSharedNode is the
	// cache of sharesNoNode, by group and signature of the pod.
	accepts      map[int][]requirements.Requirements
	noSharedNode map[[2]int]bool
}

// Plain is the number of the profile of pods that have no topology rules and that no group counts.
const Plain = 0

// NewIndex finds the groups and profiles of the pods. The required anti-affinity of residents also forms groups, if it
// matches any of the pods. kinds returns the kinds of all residents, with and without anti-affinity. NewIndex calls
// kinds only if there are very many rules (see isWide, isTooSlow); then it may return a wide Index. If kinds is nil,
// the Index is never wide and the number of rules is not limited.
func NewIndex(pods []PodRef, residents []cluster.Resident, kinds func() []*cluster.PodKind) *Index {
	b := emptyIndex(len(pods))
	if len(residents) == 0 && !slices.ContainsFunc(pods, PodRef.hasRules) {
		return b
	}
	like := make([]bool, len(pods)) // by pod: whether it certainly has the same profile as the pod before it
	for i := 1; i < len(pods); i++ {
		like[i] = pods[i].isLike(pods[i-1])
	}
	if kinds != nil && isWide(pods, residents) {
		return newWide(pods, like, residents, kinds())
	}
	rules := b.rulesOf(pods, like)
	firstOfResidents := len(b.Groups) // the groups from this number on are only of residents
	for _, r := range residents {
		for i := range r.RequiredAntiAffinity {
			b.groupNumber(antiAffinityGroup(&r.RequiredAntiAffinity[i])) // adds the group
		}
	}
	b.prepareLookup()
	if b.isTooSlow(pods, like, kinds) {
		return newWide(pods, like, residents, kinds())
	}
	ins := make([][]int, len(pods)) // by pod: the groups that count it
	for i, p := range pods {
		if like[i] {
			ins[i] = ins[i-1]
			continue
		}
		ins[i] = b.GroupsOf(p.Namespace, p.Labels)
	}
	b.dropUnmatched(firstOfResidents)
	profiles := newProfiler(b)
	for i, p := range pods {
		if like[i] {
			b.ProfileOf[i] = b.ProfileOf[i-1]
			continue
		}
		b.ProfileOf[i] = profiles.number(rules[i], ins[i], p)
	}
	return b
}

// emptyIndex returns an Index for this number of pods, without groups, in which each pod has the plain profile.
func emptyIndex(pods int) *Index {
	return &Index{
		Profiles: []Profile{{}}, ProfileOf: make([]int, pods),
		numbers: map[string]int{}, groupsByLabel: map[string][]int{}, groupsCache: map[string][]int{},
		accepts: map[int][]requirements.Requirements{}, noSharedNode: map[[2]int]bool{},
	}
}

// profiler adds profiles to an Index, each once.
type profiler struct {
	*Index
	known map[string]int // number of each profile, by result of profileKey
	key   []byte         // reused memory
}

func newProfiler(b *Index) *profiler { return &profiler{Index: b, known: map[string]int{"": Plain}} }

// number returns the number of the profile of a pod with these rules. in are the groups that count the pod by its
// labels.
func (r *profiler) number(rules []Rule, in []int, p PodRef) int {
	in = r.withoutUncountable(in, p)
	if len(p.Volumes) > 0 {
		in = r.withVolumes(in, p.Volumes)
	}
	r.key = profileKey(r.key[:0], rules, in)
	number, ok := r.known[string(r.key)]
	if !ok {
		number = len(r.Profiles)
		r.known[string(r.key)] = number
		r.Profiles = append(r.Profiles, r.profile(rules, in))
	}
	return number
}

func (b *Index) rulesOf(pods []PodRef, like []bool) [][]Rule {
	rules := make([][]Rule, len(pods))
	for i, p := range pods {
		switch {
		case like[i]:
			rules[i] = rules[i-1]
		case p.hasRules():
			rules[i] = b.rules(p)
		}
	}
	return rules
}

// hasRules reports whether the pod has topology rules or an unbound shared volume claim.
func (p PodRef) hasRules() bool {
	return len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.Volumes) > 0
}

// isLike reports whether the pods certainly have the same rules and are counted by the same groups. The result may be
// false for equal pods, but is true for most adjacent pods of a workload.
func (p PodRef) isLike(o PodRef) bool {
	return p.Signature == o.Signature && p.Namespace == o.Namespace && len(p.Volumes) == 0 && len(o.Volumes) == 0 &&
		p.SharesConstraints(o.Pod) && maps.Equal(p.Labels, o.Labels)
}

// rules returns the rules of the pod, and adds their groups to the Index.
func (b *Index) rules(p PodRef) []Rule {
	var out []Rule
	for _, s := range p.Spread {
		g := Group{Kind: Spread, Key: s.Key, Signature: p.Signature, AnyNode: s.IgnoresNodeAffinity, HonorTaints: s.HonorTaints, Hard: !s.Soft}
		g.Keys = keysBeside(p.Spread, s)
		g.terms = []cluster.Term{{Namespaces: []string{p.Namespace}, Selector: s.Selector}}
		r := Rule{Group: b.groupNumber(g), Kind: Spread, MaxSkew: max(s.MaxSkew, 1), MinDomains: s.MinDomains}
		if !s.IgnoresNodeAffinity {
			b.accepts[r.Group] = p.Required
		}
		r.Self = len(s.Selector.Labels) > 0 && s.Selector.Matches(p.Labels)
		if s.Soft {
			r.Weight = 1
		}
		out = append(out, r)
	}
	var required []cluster.Term
	for _, t := range p.Affinity {
		if t.Weight == 0 {
			required = append(required, t)
		}
	}
	for _, t := range p.Affinity {
		terms := required // one pod must match all required terms, as in kube-scheduler
		if t.Weight > 0 {
			terms = []cluster.Term{t}
		}
		out = append(out, b.rule(p, Group{Kind: Affinity, Key: t.Key, Signature: -1, Hard: t.Weight == 0, terms: terms}, t.Weight))
	}
	for _, t := range p.AntiAffinity {
		out = append(out, b.rule(p, antiAffinityGroup(&t), t.Weight))
	}
	for _, v := range p.Volumes {
		r := b.rule(p, volumeGroup(v), 0)
		r.Self, r.Volume = true, true
		out = append(out, r)
	}
	return out
}

// keysBeside returns the labels of the pod's other spreads that are required like s, or preferred like s.
// kube-scheduler ignores nodes that lack one of these labels. The host name is left out, because every node has a host
// name.
func keysBeside(all []cluster.Spread, s cluster.Spread) []string {
	var out []string
	for _, other := range all {
		if other.Soft == s.Soft && other.Key != s.Key && other.Key != Hostname {
			out = append(out, other.Key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rule returns the rule of the pod about the group. It adds the group if it is new. weight is 0 for a required rule.
func (b *Index) rule(p PodRef, g Group, weight int) Rule {
	return Rule{Group: b.groupNumber(g), Kind: g.Kind, Self: g.matches(p.Namespace, p.Labels), Weight: weight}
}

func antiAffinityGroup(t *cluster.Term) Group {
	return Group{Kind: AntiAffinity, Key: t.Key, Signature: -1, Hard: t.Weight == 0, terms: []cluster.Term{*t}}
}

// volumeGroup returns the group of the pods that share an unbound volume claim. These pods must be in one zone. The
// group's term only identifies the claim and matches no pod by labels.
func volumeGroup(claim string) Group {
	none := cluster.Term{Key: claim, Selector: cluster.Selector{MatchesNothing: true}}
	return Group{Kind: Affinity, Key: Zone, Signature: -1, Hard: true, terms: []cluster.Term{none}}
}

// Zone is the label with a node's availability zone.
const Zone = "topology.kubernetes.io/zone"

// groupNumber returns the number of the group. It adds the group if it is new.
func (b *Index) groupNumber(g Group) int {
	key := groupKey(nil, &g)
	n, ok := b.numbers[string(key)]
	if !ok {
		n = len(b.Groups)
		b.numbers[string(key)] = n
		b.Groups = append(b.Groups, g)
	}
	b.Groups[n].Hard = b.Groups[n].Hard || g.Hard
	return n
}

// AntiAffinityGroup returns the number of the group of an anti-affinity term; false if the Index has no such group.
func (b *Index) AntiAffinityGroup(t *cluster.Term) (int, bool) {
	g := antiAffinityGroup(t)
	n, ok := b.numbers[string(groupKey(nil, &g))]
	return n, ok
}

// prepareLookup prepares GroupsOf: it sets groupsByLabel, otherGroups and labels.
func (b *Index) prepareLookup() {
	keys := map[string]bool{}
	for n := range b.Groups {
		g := &b.Groups[n]
		anchor, nothing := "", false
		for i := range g.terms {
			s := &g.terms[i].Selector
			// An empty selector matches every pod, but kube-scheduler counts no pod
			// for a spread with an empty selector (podtopologyspread, countPodsMatchSelector).
			nothing = nothing || s.MatchesNothing || g.Kind == Spread && len(s.Labels) == 0
			for _, key := range s.Labels.Keys() {
				keys[key] = true
				if value, ok := s.Labels[key].Single(); ok && anchor == "" {
					anchor = key + "\x00" + value
				}
			}
		}
		switch {
		case nothing:
		case anchor != "":
			b.groupsByLabel[anchor] = append(b.groupsByLabel[anchor], n)
		default:
			b.otherGroups = append(b.otherGroups, n)
		}
	}
	b.labels = slices.Sorted(maps.Keys(keys))
}

// GroupsOf returns the groups that count a pod with these labels, sorted. The caller must not change the result.
func (b *Index) GroupsOf(namespace string, labels requirements.Labels) []int {
	if len(b.Groups) == 0 {
		return nil
	}
	key := memberKey(nil, b.labels, namespace, labels)
	if out, ok := b.groupsCache[string(key)]; ok {
		return out
	}
	var out []int
	consider := func(candidates []int) {
		for _, n := range candidates {
			if b.Groups[n].matches(namespace, labels) {
				out = append(out, n)
			}
		}
	}
	consider(b.otherGroups)
	for _, k := range b.labels {
		if value, ok := labels[k]; ok {
			consider(b.groupsByLabel[k+"\x00"+value])
		}
	}
	slices.Sort(out)
	b.groupsCache[string(key)] = out
	return out
}

// withoutUncountable returns the groups in, without the spreads that never count the pod: no node can run both the pod
// and the owner of the spread.
func (b *Index) withoutUncountable(in []int, p PodRef) []int {
	isUncountable := func(n int) bool {
		g := &b.Groups[n]
		return g.Kind == Spread && !g.AnyNode && g.Signature != p.Signature && b.sharesNoNode(n, p)
	}
	if !slices.ContainsFunc(in, isUncountable) {
		return in
	}
	return slices.DeleteFunc(slices.Clone(in), isUncountable)
}

// sharesNoNode reports whether no node can run both the pod and the owner of the spread about the group.
func (b *Index) sharesNoNode(group int, p PodRef) bool {
	key := [2]int{group, p.Signature}
	none, ok := b.noSharedNode[key]
	if !ok {
		ofOwner := b.accepts[group]
		none = len(ofOwner) > 0 && len(p.Required) > 0
		for _, x := range ofOwner {
			none = none && !slices.ContainsFunc(p.Required, func(y requirements.Requirements) bool { return x.Conflict(y) == "" })
		}
		b.noSharedNode[key] = none
	}
	return none
}

// withVolumes returns a sorted copy of the groups in, with the groups of the unbound volume claims added.
func (b *Index) withVolumes(in []int, claims []string) []int {
	out := slices.Clone(in)
	for _, claim := range claims {
		g := volumeGroup(claim)
		out = append(out, b.groupNumber(g))
	}
	slices.Sort(out)
	return out
}

// profile returns the profile of pods with these rules. in are the groups that count the pods.
func (b *Index) profile(rules []Rule, in []int) Profile {
	var p Profile
	keys := map[string]bool{}
	for _, r := range rules {
		if key := b.Groups[r.Group].Key; key == Hostname {
			p.Host = append(p.Host, r)
		} else {
			p.Domain = append(p.Domain, r)
			keys[key] = true
		}
	}
	for _, n := range in {
		g := &b.Groups[n]
		if g.Key == Hostname {
			p.HostIn = append(p.HostIn, n)
			continue
		}
		p.In = append(p.In, n)
		if g.Hard {
			keys[g.Key] = true
		}
	}
	p.Keys = slices.Sorted(maps.Keys(keys))
	for i := range p.Domain {
		p.Domain[i].keyIndex = slices.Index(p.Keys, b.Groups[p.Domain[i].Group].Key)
	}
	for _, n := range p.In {
		p.inKeys = append(p.inKeys, slices.Index(p.Keys, b.Groups[n].Key))
	}
	return p
}

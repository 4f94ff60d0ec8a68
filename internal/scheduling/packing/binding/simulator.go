package binding

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Simulator binds the pods of a plan one after the other, as kube-scheduler does.
type Simulator struct {
	index   *topology.Index
	initial *existing.Rooms      // the existing nodes without pods of the plan
	hadPod  func(group int) bool // reports whether a group over host names counts a pod before the first step

	// UsesMinDomains is true if a spread has minDomains above 1. Then the result may depend on domains that
	// could be launched but do not exist.
	UsesMinDomains bool

	counts      *topology.DomainCounts // with the pods bound so far
	pending     []Step                 // all steps; bound steps have no pods left
	podOnHost   map[groupHost]bool     // whether the simulation bound a pod of the group on the host
	podAnywhere map[int]bool           // by group over host names: whether the simulation bound a pod of it
}

// Step is a number of pods of one class to bind, on one node or on any node.
type Step struct {
	Class     int               // number of the class, chosen by the caller
	Profile   *topology.Profile // topology rules of the pods
	Domains   []int             // by key of the profile; nil if the pods are in no domain
	Left      int               // pods that are not bound yet
	Host      int               // number of the node, existing nodes first, then planned nodes; or AnyHost
	Uncounted []GroupDomain     // the groups that do not count these pods, each with the domain where the pods are

	// slack orders steps, tightest spread first: twice the smallest maxSkew of the pods' required spreads, plus 1 if
	// the spread counts the pods themselves; math.MaxInt without a spread.
	slack        int
	isSelfAffine bool // the pods have required affinity to themselves, so the first may be bound in any domain if no other pod matches
}

// GroupDomain is a topology group and one of its domains.
type GroupDomain struct {
	Group  int // index into topology.Index.Groups
	Domain int // number of the domain
}

// AnyHost is the host of pods whose exact node does not matter, only their domains.
const AnyHost = -1

// groupHost is a topology group over host names and a host, as in Step.Host.
type groupHost struct{ group, host int }

// New returns a Simulator without pods. The arguments become the fields of the same names.
func New(index *topology.Index, initial *existing.Rooms, hadPod func(group int) bool) *Simulator {
	return &Simulator{index: index, initial: initial, hadPod: hadPod}
}

// isUnconstrained reports whether no spread over domains applies to the pods.
func (step *Step) isUnconstrained() bool { return step.slack == math.MaxInt }

// rank orders steps of the same slack: self-affine pods are bound first.
func (step *Step) rank() int {
	if step.isSelfAffine {
		return 0
	}
	return 1
}

// Add adds pods to bind.
func (s *Simulator) Add(step Step) {
	step.slack = math.MaxInt
	for _, r := range step.Profile.Domain {
		if r.Kind == topology.Spread && r.Weight == 0 {
			slack := 2 * r.MaxSkew
			if r.Self {
				slack++
			}
			step.slack = min(step.slack, slack)
			s.UsesMinDomains = s.UsesMinDomains || r.MinDomains > 1
		}
		step.isSelfAffine = step.isSelfAffine || r.Kind == topology.Affinity && r.Weight == 0 && r.Self
	}
	s.pending = append(s.pending, step)
}

// AnyOrderBinds reports whether every pod could be bound last, by its domain rules. Then the order does not matter for
// these rules. Host affinity is not checked. initial has the pods before any step.
func (s *Simulator) AnyOrderBinds(initial *topology.DomainCounts) bool {
	s.counts = initial.Clone()
	for i := range s.pending {
		s.countPods(&s.pending[i], s.pending[i].Left)
	}
	for i := range s.pending {
		step := &s.pending[i]
		s.countPods(step, -1)
		isBlocked := s.blockingRule(step) != nil
		s.countPods(step, 1)
		if isBlocked {
			return false
		}
	}
	return true
}

// countPods adds n pods of the step to the domain counts, or removes them if n is negative.
func (s *Simulator) countPods(step *Step, n int) {
	if step.Domains == nil {
		return
	}
	s.counts.Add(step.Profile, step.Domains, n)
	for _, u := range step.Uncounted {
		s.counts.AddPods(u.Group, u.Domain, -n)
	}
}

// blockingRule returns the domain rule that prevents a pod of the step from being bound now; nil if
// no rule does.
func (s *Simulator) blockingRule(step *Step) *topology.Rule {
	if step.Domains == nil {
		return nil
	}
	return s.counts.Refusal(step.Profile, step.Domains)
}

// missingGroup returns the first group of a required host affinity of the step without a pod on the step's host; -1 if
// there is none. A group that selects the step's pods is not missing before its first pod is bound.
func (s *Simulator) missingGroup(step *Step) int {
	for _, rule := range step.Profile.Host {
		if rule.Kind != topology.Affinity || rule.Weight > 0 || s.podOnHost[groupHost{rule.Group, step.Host}] {
			continue
		}
		hadPodOnHost := step.Host < len(s.initial.Nodes) && s.initial.Hosts[step.Host].Matched(rule.Group) > 0
		isFirst := rule.Self && !s.podAnywhere[rule.Group] && !s.hadPod(rule.Group)
		if !hadPodOnHost && !isFirst {
			return rule.Group
		}
	}
	return -1
}

// bind binds up to n pods of the step, and reports whether it bound any.
func (s *Simulator) bind(step *Step, n int) bool {
	isBound := false
	for ; n > 0 && step.Left > 0 && s.blockingRule(step) == nil && s.missingGroup(step) < 0; n-- {
		s.countPods(step, 1)
		step.Left--
		isBound = true
		if step.Host == AnyHost {
			continue
		}
		for _, g := range step.Profile.HostIn {
			s.podOnHost[groupHost{g, step.Host}], s.podAnywhere[g] = true, true
		}
	}
	return isBound
}

// BindInOrder binds pods in an order that kube-scheduler accepts, and returns the steps that cannot be bound
// completely. Pods with the tightest spread are bound first. Pods without a spread wait until a blocked pod needs
// them, or no other pod can be bound. initial has the pods before any step.
func (s *Simulator) BindInOrder(initial *topology.DomainCounts) []Step {
	slices.SortStableFunc(s.pending, func(x, y Step) int {
		return cmp.Or(cmp.Compare(x.slack, y.slack), cmp.Compare(x.rank(), y.rank()))
	})
	s.counts, s.podOnHost, s.podAnywhere = initial.Clone(), map[groupHost]bool{}, map[int]bool{}
	for {
		for s.bindAll(false) {
		}
		if s.bindUnblocking() {
			continue
		}
		if !s.bindAll(true) {
			break
		}
	}
	return slices.DeleteFunc(s.pending, func(step Step) bool { return step.Left == 0 })
}

// bindAll binds as many pods of each step as possible, and reports whether it bound any. It
// skips steps without a spread unless includeUnconstrained is set.
func (s *Simulator) bindAll(includeUnconstrained bool) bool {
	hasChanged := false
	for i := range s.pending {
		if step := &s.pending[i]; includeUnconstrained || !step.isUnconstrained() {
			hasChanged = s.bind(step, math.MaxInt) || hasChanged
		}
	}
	return hasChanged
}

// neededPods describes the pods that blocked steps wait for.
type neededPods struct {
	spreads  map[int]bool         // by group of a spread: a domain with the fewest of its pods needs one more
	inDomain map[GroupDomain]bool // a pod of the group is needed in the domain
	onHost   map[groupHost]bool   // a pod of the group is needed on the host
}

// bindUnblocking binds one pod of each unconstrained step that helps a blocked step, and reports whether it bound any.
func (s *Simulator) bindUnblocking() bool {
	needed := s.neededPods()
	hasChanged := false
	for i := range s.pending {
		if step := &s.pending[i]; step.isUnconstrained() && step.Left > 0 && s.unblocks(step, needed) {
			hasChanged = s.bind(step, 1) || hasChanged
		}
	}
	return hasChanged
}

func (s *Simulator) neededPods() neededPods {
	needed := neededPods{map[int]bool{}, map[GroupDomain]bool{}, map[groupHost]bool{}}
	for i := range s.pending {
		step := &s.pending[i]
		if step.Left == 0 {
			continue
		}
		if g := s.missingGroup(step); g >= 0 {
			needed.onHost[groupHost{g, step.Host}] = true
		} else if r := s.blockingRule(step); r != nil && r.Kind == topology.Spread {
			needed.spreads[r.Group] = true
		} else if r != nil && r.Kind == topology.Affinity {
			needed.inDomain[GroupDomain{r.Group, step.domainOf(s.index, r.Group)}] = true
		}
	}
	return needed
}

func (s *Simulator) unblocks(step *Step, needed neededPods) bool {
	profile := step.Profile
	isNeededOnHost := func(g int) bool {
		loc := groupHost{g, step.Host}
		return needed.onHost[loc] && !s.podOnHost[loc]
	}
	isNeededInDomain := func(g int) bool { return needed.inDomain[GroupDomain{g, step.domainOf(s.index, g)}] }
	return slices.ContainsFunc(profile.HostIn, isNeededOnHost) ||
		step.Domains != nil &&
			(s.counts.IsFewest(profile, step.Domains, needed.spreads) || slices.ContainsFunc(profile.In, isNeededInDomain))
}

// domainOf returns the domain of the pods for the topology key of the group; -1 if the pods have no domain for it.
func (step *Step) domainOf(index *topology.Index, group int) int {
	if k := slices.Index(step.Profile.Keys, index.Groups[group].Key); k >= 0 {
		return step.Domains[k]
	}
	return -1
}

package refusal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// Input is the input of an explanation: the offerings, and the state of a solution with unplaced pods. An Explainer
// changes nothing in it, except that it may add accept sets to Accepts.
type Input struct {
	Stock      *offering.Stock            // the offerings
	Accepts    *offering.Acceptance       // the accept sets of the pods
	Pods       *podgroup.Queue            // the pods, in classes
	DaemonPods *existing.DaemonPods       // nil if no rule matches a DaemonSet pod
	Topology   *existing.TopologyState    // topology domains and counts after the plan
	Remaining  []offering.RemainingLimits // by NodePool: its remaining limits

	// UnusedInstances returns the number of unused instances of a capacity reservation.
	UnusedInstances func(reservation int) int
	// HasHost reports whether a pod of a group over host names has a node, which the other pods must then share.
	HasHost func(group int) bool
	// MissingMinValue returns the first of the minValues that a node of the offering with one pod of the class would
	// violate; false if there is none.
	MissingMinValue func(class, offer, acceptSet int) (Relaxation, bool)
}

// Explainer explains why no node takes the pods of a class. It caches the explanations.
type Explainer struct {
	in           Input
	explanations map[string]*explanation // cache of explanationOf
}

// New returns an Explainer. It must not be used concurrently.
func New(in Input) *Explainer {
	return &Explainer{in: in, explanations: map[string]*explanation{}}
}

// Explain returns the causes that rule out all offerings for the class with the given number and, as a hint, the
// smallest change that would help. The cause that the hint refers to comes first, then the most frequent cause.
func (ex *Explainer) Explain(number int, c *podgroup.Class) (reasons []Reason, hint string) {
	e := ex.explanationOf(number, c)
	return printableReasons(moveToFront(e.reasons(), e.hintFinding())), Printable(e.hint())
}

// explanation has the causes that rule out all offerings for one class.
type explanation struct {
	in       *Input
	number   int // number of the class
	class    *podgroup.Class
	sig      *podgroup.Signature
	findings []finding
	domains  []int // memory reused by domainsOf
}

// finding is a cause, and the number of offerings that it rules out.
type finding struct {
	reason Reason
	rank   int            // the step at which the offerings were ruled out; see the rank constants
	pool   *offering.Pool // nil if the cause does not belong to a NodePool

	needed  requirements.Values // for label causes: the values that the class requires
	missing Relaxation          // for MinValues
	excess  limitExcess         // for LimitReached
}

// limitExcess has the amounts of a limit that a new node would exceed, in the units of resources.Amounts.
type limitExcess struct {
	limit string // name of the limit
	taken int64  // used by existing and planned nodes
	each  int64  // added by the smallest suitable node
}

// The order of the checks of an offering. The hint refers to the cause with the highest rank.
const (
	rankNone = iota // there is no NodePool
	rankPool
	rankTaint
	rankLabel
	rankRoom
	rankTopology
	rankCapacity
	rankLimit
	rankMinValues
	rankEffort
)

// explanationOf returns the explanation of a class. Classes share the cached check if they differ only in their number
// of pods, their priority, and amounts of resources that no node has. The result is a copy with the number of the
// class. In this copy, the name of the class's first resource that no node has replaces podgroup.Unoffered.
func (ex *Explainer) explanationOf(number int, c *podgroup.Class) *explanation {
	key := hashkey.Int(hashkey.Int(hashkey.Int(nil, c.Sig), c.Profile), len(c.PortLists))
	for _, n := range c.PortLists {
		key = hashkey.Int(key, n)
	}
	for _, n := range c.Ask {
		key = hashkey.Int(key, n)
	}
	e, ok := ex.explanations[string(key)]
	if !ok {
		e = ex.newExplanation(number, c)
		ex.explanations[string(key)] = e
	}
	out := *e
	out.number, out.class, out.findings = number, c, slices.Clone(e.findings)
	for i := range out.findings {
		if f := &out.findings[i]; f.reason.Code == TooSmall && f.reason.Detail == podgroup.Unoffered {
			f.reason.Detail = ex.in.Pods.FirstUnoffered(c.Amounts)
		}
	}
	return &out
}

func (ex *Explainer) newExplanation(number int, c *podgroup.Class) *explanation {
	e := &explanation{in: &ex.in, number: number, class: c, sig: &ex.in.Pods.Signatures[c.Sig]}
	if len(ex.in.Stock.Pools) == 0 {
		e.add(finding{reason: Reason{Code: NoPool, Count: 1}, rank: rankNone})
	}
	for i, p := range ex.in.Stock.Pools {
		e.checkPool(i, p)
	}
	return e
}

// add adds a finding if it rules out any offering. Findings with the same code and detail in the same NodePool are
// merged.
func (e *explanation) add(f finding) {
	if f.reason.Count == 0 {
		return
	}
	for i := range e.findings {
		known := &e.findings[i]
		if known.reason.Code == f.reason.Code && known.reason.Detail == f.reason.Detail && known.pool == f.pool {
			known.reason.Count += f.reason.Count
			known.excess.each = min(known.excess.each, f.excess.each)
			return
		}
	}
	e.findings = append(e.findings, f)
}

// checkPool adds findings about the checks that rule out the offerings of p, the NodePool with index i.
func (e *explanation) checkPool(i int, p *offering.Pool) {
	ruleOut := func(code Code, count int, detail string, rank int) {
		e.add(finding{reason: Reason{Code: code, Count: count, Detail: detail}, rank: rank, pool: p})
	}
	taint, repels := requirements.Untolerated(p.Taints, e.sig.Tolerations)
	switch {
	case p.Unusable != "":
		ruleOut(PoolUnusable, 1, p.Name+": "+p.Unusable, rankPool)
		return
	case p.Size() == 0:
		ruleOut(PoolEmpty, 1, p.Name+": "+p.EmptiedBy, rankPool)
		return
	case repels: // Size counts each offering once per variant
		ruleOut(TaintUntolerated, p.Size()/max(e.variantCount(i), 1), taint.String(), rankTaint)
		return
	}
	// Each variant of the NodePool is checked with each alternative term of the pod. Only the combination whose
	// offerings passed the most checks is reported.
	var best []finding
	for v := range e.in.Stock.Variants {
		if e.in.Stock.Variants[v].Pool != i {
			continue
		}
		all := alternatives(e.sig.Required)
		for _, reqs := range all[:min(len(all), maxExplainedTerms)] {
			found := e.checkVariant(&e.in.Stock.Variants[v], p, reqs)
			if best == nil || progress(found) > progress(best) {
				best = found
			}
		}
	}
	for _, f := range best {
		e.add(f)
	}
}

// maxExplainedTerms is how many alternative node affinity terms of a pod are checked, which limits the work.
const maxExplainedTerms = 64

func (e *explanation) variantCount(pool int) int {
	n := 0
	for _, v := range e.in.Stock.Variants {
		if v.Pool == pool {
			n++
		}
	}
	return n
}

// alternatives returns the alternative terms of a node affinity, at least one.
func alternatives(required []requirements.Requirements) []requirements.Requirements {
	if len(required) == 0 {
		return []requirements.Requirements{nil}
	}
	return required
}

// progress returns how many checks the offerings of the findings passed: it grows with the highest rank of a finding,
// then with the highest count at that rank.
func progress(findings []finding) int {
	most := 0
	for _, f := range findings {
		most = max(most, f.rank<<32+f.reason.Count)
	}
	return most
}

// checkVariant returns findings about the checks that rule out the offerings of a variant. reqs is one alternative term
// of the class's node affinity.
func (e *explanation) checkVariant(v *offering.Variant, p *offering.Pool, reqs requirements.Requirements) []finding {
	sub := *e
	sub.findings, sub.domains = nil, nil
	remaining := e.in.Stock.OffersOf(v) // offerings that no label rules out so far
	for _, key := range reqs.Keys() {
		matching := remaining.Intersection(e.in.Stock.Labels.Accepting(key, reqs[key]))
		code, detail := e.labelCause(v, p, key, reqs[key])
		sub.add(finding{
			reason: Reason{Code: code, Count: remaining.Count() - matching.Count(), Detail: detail},
			rank:   rankLabel, pool: p, needed: reqs[key],
		})
		remaining = matching
	}
	remaining.Each(func(o int) { sub.checkOffer(o, p, &e.in.Remaining[v.Pool]) })
	return sub.findings
}

// labelCause returns the code and the detail for offerings of the variant whose value of the label the class does not
// accept.
func (e *explanation) labelCause(v *offering.Variant, p *offering.Pool, key string, needed requirements.Values) (Code, string) {
	if _, offered := v.Labels[key]; !offering.IsCloudKey(key) && !offered && len(e.in.Stock.Labels.Column(key).Values) == 0 {
		return LabelMissing, key + " " + needed.String()
	}
	allowed, limited := p.Accepts[key]
	if _, offered := v.Labels[key]; offered || limited && !allowed.Intersects(needed) {
		return LabelConflict, key
	}
	if len(e.in.Stock.Labels.Column(key).Values) == 0 || !offering.IsCloudKey(key) {
		return LabelMissing, key + " " + needed.String()
	}
	return TypeMismatch, key
}

// checkOffer adds a finding about the first check that rules out an offering whose labels match. remaining has the
// remaining limits of its NodePool p. If no check rules the offering out, the cause is the work limit of the plan.
func (e *explanation) checkOffer(o int, p *offering.Pool, remaining *offering.RemainingLimits) {
	shape := e.in.Stock.ShapeOf(o)
	f := finding{reason: Reason{Count: 1}, pool: p, rank: rankRoom}
	lacking := e.class.Ask.FirstLacking(shape.Room)
	topologyCode, key := e.blockingTopologyRule(o)
	limit := remaining.FirstBlocking(e.in.Stock.TypeOf(o).Capacity)
	switch {
	case shape.IsTooSmall:
		f.reason.Code, f.reason.Detail = TooSmall, "the DaemonSets"
	case lacking >= 0:
		f.reason.Code, f.reason.Detail = TooSmall, e.in.Stock.Dims[lacking] // explanationOf replaces podgroup.Unoffered
	case e.hasPortConflict(shape):
		f.reason.Code, f.reason.Detail = HostPortTaken, firstConflict(e.class.Ports, shape.Ports)
	case topologyCode != "":
		f.reason.Code, f.reason.Detail, f.rank = topologyCode, key, rankTopology
	case e.in.Stock.Offers[o].IsReserved() && e.in.UnusedInstances(e.in.Stock.Offers[o].ReservationIndex) == 0:
		f.reason.Code, f.reason.Detail, f.rank = ReservationFull, e.in.Stock.Offers[o].Reservation.ID, rankCapacity
	case !e.in.Stock.Offers[o].Available:
		f.reason.Code, f.rank = NoCapacity, rankCapacity
	case limit != "":
		f.reason.Code, f.reason.Detail, f.rank = LimitReached, p.Name+": "+limit, rankLimit
		f.excess = limitExcess{
			limit: limit, taken: p.Limit(limit) - remaining.Left(limit), each: max(e.in.Stock.TypeOf(o).Capacity.Of(limit), 1),
		}
	default:
		f.reason.Code, f.rank = EffortSpent, rankEffort
		if missing, ok := e.missingMinValueAlone(o); ok {
			f.reason.Code, f.reason.Detail, f.rank, f.missing = MinValues, fmt.Sprintf("%s: %d of %d", missing.Key, missing.Have,
				missing.Asked), rankMinValues, missing
		}
	}
	e.add(f)
}

// missingMinValueAlone returns the first of the minValues that a node of the offering would violate with only one pod
// of the class; false if there is none. The pod's topology rules limit the node to the domains of the offering.
func (e *explanation) missingMinValueAlone(o int) (Relaxation, bool) {
	set := e.in.Accepts.Hard[e.class.Sig]
	if domains := e.domainsOf(o); len(domains) > 0 {
		set = e.in.Accepts.Number(e.in.Topology.OffersIn(e.profile(), domains, e.in.Accepts.Sets[set]))
	}
	return e.in.MissingMinValue(e.number, o, set)
}

// domainsOf returns the domains of the offering, by key of the class's profile.
func (e *explanation) domainsOf(o int) []int {
	e.domains = e.domains[:0]
	for _, key := range e.profile().Keys {
		e.domains = append(e.domains, e.in.Topology.Keys[key].OfferAt[o])
	}
	return e.domains
}

// blockingTopologyRule returns the code and topology key of the first topology rule that rules out the offering for the
// class; both empty if there is none.
func (e *explanation) blockingTopologyRule(o int) (Code, string) {
	profile, domains := e.profile(), e.domainsOf(o)
	if group, ok := e.in.DaemonPods.AntiAffinityWith(e.in.Pods.Topology, profile, o); ok {
		return PodAntiAffinity, e.in.Pods.Topology.Groups[group].Key
	}
	rule := e.in.Topology.DomainCounts.Refusal(profile, domains)
	if rule == nil {
		// A new node satisfies all host rules except required affinity. If no pod in the domain satisfies an
		// affinity, DaemonSet pods of the node can still satisfy it.
		if groups := e.in.Topology.DaemonOnlyAffinity(profile, domains); len(groups) > 0 && !e.in.DaemonPods.HasAll(groups, o) {
			return PodAffinity, e.in.Pods.Topology.Groups[groups[0]].Key
		}
		if groups, self := e.profile().RequiredHostGroups(); len(groups) > 0 && !e.in.DaemonPods.HasAll(groups, o) &&
			(!self || slices.ContainsFunc(groups, e.in.HasHost)) {
			return PodAffinity, topology.Hostname
		}
		if e.in.Topology.DaemonPodsExceedSpread(e.in.Pods.Topology, profile, o) {
			return TopologySpread, topology.Hostname
		}
		return "", ""
	}
	return codeOf[rule.Kind], e.in.Pods.Topology.Groups[rule.Group].Key
}

func (e *explanation) hasPortConflict(s *offering.Shape) bool {
	return s.PortList != podgroup.NoPorts &&
		slices.ContainsFunc(e.class.PortLists, func(list int) bool { return e.in.Pods.Ports.ConflictAny(list, []int{s.PortList}) })
}

func (e *explanation) profile() *topology.Profile {
	return &e.in.Pods.Topology.Profiles[e.class.Profile]
}

var codeOf = map[topology.RuleKind]Code{topology.Spread: TopologySpread, topology.Affinity: PodAffinity,
	topology.AntiAffinity: PodAntiAffinity}

// firstConflict returns the first port of a that conflicts with one of b, as "port/protocol"; empty if there is none.
func firstConflict(a, b []cluster.HostPort) string {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Conflicts) {
			return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		}
	}
	return ""
}

// reasons returns the reasons of all findings, merged over NodePools, the most frequent first.
func (e *explanation) reasons() []Reason {
	var out []Reason
	for _, f := range e.findings {
		i := slices.IndexFunc(out, func(r Reason) bool { return r.Code == f.reason.Code && r.Detail == f.reason.Detail })
		if i < 0 {
			out = append(out, f.reason)
			continue
		}
		out[i].Count += f.reason.Count
	}
	slices.SortStableFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(string(a.Code), string(b.Code)), cmp.Compare(a.Detail, b.Detail))
	})
	return out
}

// moveToFront moves the reason of the given finding, to which the hint refers, to the front. So all callers that report
// only one reason report the same one.
func moveToFront(reasons []Reason, f *finding) []Reason {
	i := -1
	if f != nil {
		i = slices.IndexFunc(reasons, func(r Reason) bool { return r.Code == f.reason.Code && r.Detail == f.reason.Detail })
	}
	if i <= 0 {
		return reasons
	}
	first := reasons[i]
	return slices.Insert(slices.Delete(reasons, i, i+1), 0, first)
}

package packing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// refusals returns, for every unplaced pod, why neither the plan's nodes nor another new node can
// take it, in the domains that exist once the plan is carried out. ground, r and q are those from
// before any pod was placed.
func refusals(sol *solution, ground *existing.Ground) []Refusal {
	if sol.queue.unplaced() > 0 {
		sol = sol.copyForRetry(newDomainProjection(sol).groundAfterPlan(ground))
	}
	ex := newExplainer(sol)
	var out []Refusal
	for _, u := range ex.queue.pods.Unplannable {
		out = append(out, Refusal{Pod: u.Pod.ID(), Reasons: printableReasons([]Reason{{Code: Unplannable, Count: 1, Detail: u.Why}})})
	}
	for _, p := range ex.queue.pods.Deferred {
		reason := Reason{Code: EffortSpent, Count: 1, Detail: "its rules about other pods, with those of all pods, exceed the limit of one plan"}
		out = append(out, Refusal{Pod: p.ID(), Reasons: []Reason{reason}, Hint: retryHint})
	}
	left := make([][]*cluster.Pod, ex.queue.whole)
	for c := range ex.queue.classes {
		p := &ex.queue.classes[c]
		if ex.queue.left[c] == 0 {
			continue
		}
		left[p.base] = append(left[p.base], p.Pods[len(p.Pods)-ex.queue.left[c]*p.podsPerUnit:]...)
	}
	for c, pods := range left {
		if len(pods) == 0 {
			continue
		}
		e := ex.explain(c)
		reasons, hint := printableReasons(nearestFirst(e.reasons(), e.nearest())), printable(e.hint())
		for _, p := range pods {
			out = append(out, Refusal{Pod: p.ID(), Reasons: reasons, Hint: hint})
		}
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return cmp.Compare(a.Pod, b.Pod) })
	return out
}

// maxTextBytes is the maximum length of a detail or a hint. An event's message may have 1,024
// bytes.
const maxTextBytes = 1000

// printable returns the text as one line of bounded length without control characters. It contains
// keys and values that users chose, and is written to events, logs, conditions and terminals.
func printable(text string) string {
	if len(text) > maxTextBytes {
		text = strings.ToValidUTF8(text[:maxTextBytes], "") + "…"
	}
	if !strings.ContainsFunc(text, isNotPrintable) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isNotPrintable(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func isNotPrintable(r rune) bool { return !unicode.IsPrint(r) }

func printableReasons(reasons []Reason) []Reason {
	for i := range reasons {
		reasons[i].Detail = printable(reasons[i].Detail)
	}
	return reasons
}

// explainer explains why classes have no place. Its explanations are shared by classes that differ
// only in number, priority and resources which no node has.
type explainer struct {
	problem      *problem
	queue        *queue
	sol          *solution
	explanations map[string]*explanation
}

func newExplainer(sol *solution) *explainer {
	return &explainer{problem: sol.problem, queue: sol.queue, sol: sol, explanations: map[string]*explanation{}}
}

// explanation is the check of one class against everything that can be launched.
type explanation struct {
	sol        *solution
	problem    *problem
	queue      *queue
	ground     *existing.Ground
	nodeOffers *nodeOffers
	number     int // of the class
	class      *class
	sig        *podgroup.Signature
	findings   []finding
	domains    []int // scratch of domainsOf
}

// finding is a number of offerings that one cause rules out.
type finding struct {
	reason Reason
	rank   int            // how far an offering got before it was ruled out
	pool   *offering.Pool // nil if the cause belongs to no NodePool

	ask     requirements.Values // for label causes: the values that the class requires
	missing Relaxation          // for MinValues
	excess  limitExcess         // for LimitReached
}

// limitExcess is by how much a new node would exceed a limit, in the units of resources.Amounts.
type limitExcess struct {
	limit string // its name
	taken int64  // used by existing and planned nodes
	each  int64  // what the smallest suitable node adds
}

// The order in which an offering is checked. The hint is about the cause with the highest rank.
const (
	rankNone = iota
	rankPool
	rankTaint
	rankLabel
	rankRoom
	rankTopology
	rankCapacity
	rankLimit
	rankValues
	rankEffort
)

// explain returns the explanation of a class. It is computed once for classes that differ only in
// number, priority and resources which no node has.
func (ex *explainer) explain(number int) *explanation {
	c := &ex.queue.classes[number]
	key := string(intsKey([]int{c.Sig, c.Profile, len(c.Lists)}, c.Lists))
	for _, n := range c.Ask {
		key += string(hashkey.Int(nil, n))
	}
	e, ok := ex.explanations[key]
	if !ok {
		e = ex.newExplanation(number)
		ex.explanations[key] = e
	}
	own := *e
	own.number, own.class, own.findings = number, c, slices.Clone(e.findings)
	for i := range own.findings {
		if f := &own.findings[i]; f.reason.Code == TooSmall && f.reason.Detail == podgroup.Unoffered {
			f.reason.Detail = ex.queue.pods.FirstUnoffered(c.Amounts)
		}
	}
	return &own
}

// newExplanation checks a class against all NodePools.
func (ex *explainer) newExplanation(number int) *explanation {
	c := &ex.queue.classes[number]
	e := &explanation{
		sol: ex.sol, problem: ex.problem, queue: ex.queue, ground: ex.sol.ground, nodeOffers: ex.sol.nodeOffers,
		number: number, class: c, sig: &ex.queue.pods.Signatures[c.Sig],
	}
	if len(ex.problem.stock.Pools) == 0 {
		e.add(finding{reason: Reason{Code: NoPool, Count: 1}, rank: rankNone})
	}
	for i, p := range ex.problem.stock.Pools {
		e.checkPool(i, p)
	}
	return e
}

// add adds a finding, merged with those of the same cause in the same NodePool.
func (e *explanation) add(f finding) {
	if f.reason.Count == 0 {
		return
	}
	for i := range e.findings {
		g := &e.findings[i]
		if g.reason.Code == f.reason.Code && g.reason.Detail == f.reason.Detail && g.pool == f.pool {
			g.reason.Count += f.reason.Count
			g.excess.each = min(g.excess.each, f.excess.each)
			return
		}
	}
	e.findings = append(e.findings, f)
}

// checkPool finds what rules out the offerings of one NodePool.
func (e *explanation) checkPool(i int, p *offering.Pool) {
	rulesOut := func(code Code, count int, detail string, rank int) {
		e.add(finding{reason: Reason{Code: code, Count: count, Detail: detail}, rank: rank, pool: p})
	}
	taint, repels := requirements.Untolerated(p.Taints, e.sig.Tolerations)
	switch {
	case p.Unusable != "":
		rulesOut(PoolUnusable, 1, p.Name+": "+p.Unusable, rankPool)
		return
	case p.Size() == 0:
		rulesOut(PoolEmpty, 1, p.Name+": "+p.Emptied, rankPool)
		return
	case repels:
		rulesOut(TaintUntolerated, p.Size()/max(e.variantCount(i), 1), taint.String(), rankTaint)
		return
	}
	// Of the NodePool's variants and the pod's alternative terms, only the combination that gets
	// furthest is reported.
	var best []finding
	for v := range e.problem.stock.Variants {
		if e.problem.stock.Variants[v].Pool != i {
			continue
		}
		all := alternatives(e.sig.Required)
		for _, reqs := range all[:min(len(all), maxExplainedTerms)] {
			got := e.checkVariant(&e.problem.stock.Variants[v], p, reqs)
			if best == nil || progress(got) > progress(best) {
				best = got
			}
		}
	}
	for _, f := range best {
		e.add(f)
	}
}

// maxExplainedTerms is how many of a pod's alternative node affinity terms are checked.
const maxExplainedTerms = 64

// variantCount returns how many variants the NodePool has.
func (e *explanation) variantCount(pool int) int {
	n := 0
	for _, v := range e.problem.stock.Variants {
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

// progress compares findings by how far their offerings got.
func progress(findings []finding) int {
	most := 0
	for _, f := range findings {
		most = max(most, f.rank<<32+f.reason.Count)
	}
	return most
}

// checkVariant finds what rules out the offerings of a variant, step by step.
func (e *explanation) checkVariant(v *offering.Variant, p *offering.Pool, reqs requirements.Requirements) []finding {
	sub := *e
	sub.findings, sub.domains = nil, nil
	alive := e.problem.stock.OffersOf(v)
	for _, key := range reqs.Keys() {
		left := alive.Both(e.problem.stock.Labels.Accepting(key, reqs[key]))
		code, detail := e.labelCause(v, p, key, reqs[key])
		sub.add(finding{
			reason: Reason{Code: code, Count: alive.Count() - left.Count(), Detail: detail},
			rank:   rankLabel, pool: p, ask: reqs[key],
		})
		alive = left
	}
	alive.Each(func(o int) { sub.checkOffer(o, p, &e.sol.budgets[v.Pool]) })
	return sub.findings
}

// labelCause returns why a label does not match.
func (e *explanation) labelCause(v *offering.Variant, p *offering.Pool, key string, ask requirements.Values) (Code, string) {
	if _, offered := v.Labels[key]; !offering.IsCloudKey(key) && !offered && len(e.problem.stock.Labels.Of(key).Values) == 0 {
		return LabelMissing, key + " " + ask.String()
	}
	allowed, limited := p.Accepts[key]
	if _, offered := v.Labels[key]; offered || limited && !allowed.Intersects(ask) {
		return LabelConflict, key
	}
	if len(e.problem.stock.Labels.Of(key).Values) == 0 || !offering.IsCloudKey(key) {
		return LabelMissing, key + " " + ask.String()
	}
	return TypeMismatch, key
}

// checkOffer finds what rules out an offering whose labels match.
func (e *explanation) checkOffer(o int, p *offering.Pool, b *offering.Budget) {
	shape := e.problem.stock.ShapeOf(o)
	f := finding{reason: Reason{Count: 1}, pool: p, rank: rankRoom}
	lacking := e.class.Ask.Lacking(shape.Room)
	topologyCode, key := e.blockingTopologyRule(o)
	limit := b.Tightest(e.problem.stock.TypeOf(o).Capacity)
	switch {
	case shape.Broken:
		f.reason.Code, f.reason.Detail = TooSmall, "the DaemonSets"
	case lacking >= 0:
		f.reason.Code, f.reason.Detail = TooSmall, e.problem.stock.Dims[lacking] // podgroup.Unoffered is replaced by explain
	case e.queue.hasPortConflict(e.class, daemonPorts(shape)):
		f.reason.Code, f.reason.Detail = HostPortTaken, firstConflict(e.class.Ports, shape.Ports)
	case topologyCode != "":
		f.reason.Code, f.reason.Detail, f.rank = topologyCode, key, rankTopology
	case e.problem.stock.Offers[o].IsReserved() && e.sol.unusedInstances(e.problem.stock.Offers[o].Reserve) == 0:
		f.reason.Code, f.reason.Detail, f.rank = ReservationFull, e.problem.stock.Offers[o].Reservation.ID, rankCapacity
	case !e.problem.stock.Offers[o].Available:
		f.reason.Code, f.rank = NoCapacity, rankCapacity
	case limit != "":
		f.reason.Code, f.reason.Detail, f.rank = LimitReached, p.Name+": "+limit, rankLimit
		f.excess = limitExcess{limit: limit, taken: p.Limit(limit) - b.Left(limit), each: max(e.problem.stock.TypeOf(o).Capacity.Of(limit), 1)}
	default:
		f.reason.Code, f.rank = EffortSpent, rankEffort
		if missing, ok := e.missingMinValueAlone(o); ok {
			f.reason.Code, f.reason.Detail, f.rank, f.missing = MinValues, fmt.Sprintf("%s: %d of %d", missing.Key, missing.Have, missing.Asked), rankValues, missing
		}
	}
	e.add(f)
}

// missingMinValueAlone returns the minValues that a node of the offering would violate with only
// this pod. The pod's topology rules keep it in the domains of the offering.
func (e *explanation) missingMinValueAlone(o int) (Relaxation, bool) {
	set := e.problem.accepts.Hard[e.class.Sig]
	if domains := e.domainsOf(o); len(domains) > 0 {
		set = e.problem.accepts.Number(e.ground.OffersIn(e.queue.profile(e.class), domains, e.problem.accepts.Sets[set]))
	}
	return e.nodeOffers.missingMinValue(&plannedNode{offer: o, allocations: []allocation{{class: e.number, n: 1, acceptSet: set}}})
}

// domainsOf returns the domains of the offering, by key of the class's profile.
func (e *explanation) domainsOf(o int) []int {
	e.domains = e.domains[:0]
	for _, key := range e.queue.profile(e.class).Keys {
		e.domains = append(e.domains, e.ground.Keys[key].OfferAt[o])
	}
	return e.domains
}

// blockingTopologyRule returns the code and topology key of the rule that keeps the class off the
// offering; empty if there is none.
func (e *explanation) blockingTopologyRule(o int) (Code, string) {
	profile, domains := e.queue.profile(e.class), e.domainsOf(o)
	if group, ok := e.queue.daemonPods.Against(e.queue.pods.Book, profile, o); ok {
		return PodAntiAffinity, e.queue.pods.Book.Groups[group].Key
	}
	rule := e.ground.Census.Refusal(profile, domains)
	if rule == nil {
		// A new node satisfies all host rules but required affinity. Where an affinity has no pods
		// in the domain, DaemonSet pods can still satisfy it.
		if groups := e.ground.Company(profile, domains); len(groups) > 0 && !e.queue.daemonPods.Are(groups, o) {
			return PodAffinity, e.queue.pods.Book.Groups[groups[0]].Key
		}
		if groups, self := e.queue.requiredHostGroups(e.class); len(groups) > 0 && !e.queue.daemonPods.Are(groups, o) && (!self || slices.ContainsFunc(groups, e.isHostFixedInPlan)) {
			return PodAffinity, topology.Hostname
		}
		if e.ground.IsCrowded(e.queue.pods.Book, profile, o) {
			return TopologySpread, topology.Hostname
		}
		return "", ""
	}
	return codeOf[rule.Form], e.queue.pods.Book.Groups[rule.Group].Key
}

// isHostFixedInPlan reports whether an existing or planned node has pods of the group, so that
// others must use it too.
func (e *explanation) isHostFixedInPlan(group int) bool {
	return e.sol.isHostFixed(group) || slices.ContainsFunc(e.sol.planned, func(pn plannedNode) bool { return e.queue.matchedPods(&pn, group) > 0 })
}

var codeOf = map[topology.Form]Code{topology.Spread: TopologySpread, topology.Near: PodAffinity, topology.Apart: PodAntiAffinity}

// firstConflict returns the first port of a that conflicts with one of b.
func firstConflict(a, b []cluster.HostPort) string {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Conflicts) {
			return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		}
	}
	return ""
}

// reasons returns the causes, the most frequent first.
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

// nearestFirst moves the cause that the hint is about to the front, so that all callers who report
// one cause report the same.
func nearestFirst(reasons []Reason, nearest *finding) []Reason {
	i := -1
	if nearest != nil {
		i = slices.IndexFunc(reasons, func(r Reason) bool { return r.Code == nearest.reason.Code && r.Detail == nearest.reason.Detail })
	}
	if i <= 0 {
		return reasons
	}
	first := reasons[i]
	return slices.Insert(slices.Delete(reasons, i, i+1), 0, first)
}

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
func (pl *planner) refusals(ground *existing.Ground, r *existing.Rooms, q *queue) []Refusal {
	if pl.unplaced() > 0 {
		pl = pl.copyForRetry(pl.groundAfterPlan(ground), r, q)
	}
	var out []Refusal
	for _, u := range pl.q.Unplannable {
		out = append(out, Refusal{Pod: u.Pod.ID(), Reasons: printableReasons([]Reason{{Code: Unplannable, Count: 1, Detail: u.Why}})})
	}
	for _, p := range pl.q.Deferred {
		reason := Reason{Code: EffortSpent, Count: 1, Detail: "its rules about other pods, with those of all pods, exceed the limit of one plan"}
		out = append(out, Refusal{Pod: p.ID(), Reasons: []Reason{reason}, Hint: retryHint})
	}
	left := make([][]*cluster.Pod, pl.wholeClasses)
	for c := range pl.q.classes {
		p := &pl.q.classes[c]
		if pl.left[c] == 0 {
			continue
		}
		left[p.base] = append(left[p.base], p.Pods[len(p.Pods)-pl.left[c]*p.podsPerUnit:]...)
	}
	for c, pods := range left {
		if len(pods) == 0 {
			continue
		}
		e := pl.explain(c)
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

// explanation is the check of one class against everything that can be launched.
type explanation struct {
	*planner
	number   int // of the class
	class    *class
	sig      *podgroup.Signature
	findings []finding
	domains  []int // scratch of domainsOf
}

// finding is a number of offerings that one cause rules out.
type finding struct {
	Reason
	rank int            // how far an offering got before it was ruled out
	pool *offering.Pool // nil if the cause belongs to no NodePool

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
func (pl *planner) explain(number int) *explanation {
	c := &pl.q.classes[number]
	key := string(intsKey([]int{c.Sig, c.Profile, len(c.Lists)}, c.Lists))
	for _, n := range c.Ask {
		key += string(hashkey.Int(nil, n))
	}
	e, ok := pl.explanations[key]
	if !ok {
		if pl.explanations == nil {
			pl.explanations = map[string]*explanation{}
		}
		e = pl.newExplanation(number)
		pl.explanations[key] = e
	}
	own := *e
	own.number, own.class, own.findings = number, c, slices.Clone(e.findings)
	for i := range own.findings {
		if f := &own.findings[i]; f.Code == TooSmall && f.Detail == podgroup.Unoffered {
			f.Detail = pl.q.FirstUnoffered(c.Amounts)
		}
	}
	return &own
}

// newExplanation checks a class against all NodePools.
func (pl *planner) newExplanation(number int) *explanation {
	c := &pl.q.classes[number]
	e := &explanation{planner: pl, number: number, class: c, sig: &pl.q.Signatures[c.Sig]}
	if len(pl.stock.Pools) == 0 {
		e.add(finding{Reason: Reason{Code: NoPool, Count: 1}, rank: rankNone})
	}
	for i, p := range pl.stock.Pools {
		e.checkPool(i, p)
	}
	return e
}

// add adds a finding, merged with those of the same cause in the same NodePool.
func (e *explanation) add(f finding) {
	if f.Count == 0 {
		return
	}
	for i := range e.findings {
		g := &e.findings[i]
		if g.Code == f.Code && g.Detail == f.Detail && g.pool == f.pool {
			g.Count += f.Count
			g.excess.each = min(g.excess.each, f.excess.each)
			return
		}
	}
	e.findings = append(e.findings, f)
}

// checkPool finds what rules out the offerings of one NodePool.
func (e *explanation) checkPool(i int, p *offering.Pool) {
	rulesOut := func(code Code, count int, detail string, rank int) {
		e.add(finding{Reason: Reason{Code: code, Count: count, Detail: detail}, rank: rank, pool: p})
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
	for v := range e.stock.Variants {
		if e.stock.Variants[v].Pool != i {
			continue
		}
		all := alternatives(e.sig.Required)
		for _, reqs := range all[:min(len(all), maxExplainedTerms)] {
			got := e.checkVariant(&e.stock.Variants[v], p, reqs)
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
	for _, v := range e.stock.Variants {
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
		most = max(most, f.rank<<32+f.Count)
	}
	return most
}

// checkVariant finds what rules out the offerings of a variant, step by step.
func (e *explanation) checkVariant(v *offering.Variant, p *offering.Pool, reqs requirements.Requirements) []finding {
	sub := &explanation{planner: e.planner, number: e.number, class: e.class, sig: e.sig}
	alive := e.stock.OffersOf(v)
	for _, key := range reqs.Keys() {
		left := alive.Both(e.stock.Labels.Accepting(key, reqs[key]))
		code, detail := e.labelCause(v, p, key, reqs[key])
		sub.add(finding{
			Reason: Reason{Code: code, Count: alive.Count() - left.Count(), Detail: detail},
			rank:   rankLabel, pool: p, ask: reqs[key],
		})
		alive = left
	}
	alive.Each(func(o int) { sub.checkOffer(o, p, &e.budgets[v.Pool]) })
	return sub.findings
}

// labelCause returns why a label does not match.
func (e *explanation) labelCause(v *offering.Variant, p *offering.Pool, key string, ask requirements.Values) (Code, string) {
	if _, offered := v.Labels[key]; !offering.IsCloudKey(key) && !offered && len(e.stock.Labels.Of(key).Values) == 0 {
		return LabelMissing, key + " " + ask.String()
	}
	allowed, limited := p.Accepts[key]
	if _, offered := v.Labels[key]; offered || limited && !allowed.Intersects(ask) {
		return LabelConflict, key
	}
	if len(e.stock.Labels.Of(key).Values) == 0 || !offering.IsCloudKey(key) {
		return LabelMissing, key + " " + ask.String()
	}
	return TypeMismatch, key
}

// checkOffer finds what rules out an offering whose labels match.
func (e *explanation) checkOffer(o int, p *offering.Pool, b *offering.Budget) {
	shape := e.stock.ShapeOf(o)
	f := finding{Reason: Reason{Count: 1}, pool: p, rank: rankRoom}
	lacking := e.class.Ask.Lacking(shape.Room)
	topologyCode, key := e.blockingTopologyRule(o)
	limit := b.Tightest(e.stock.TypeOf(o).Capacity)
	switch {
	case shape.Broken:
		f.Code, f.Detail = TooSmall, "the DaemonSets"
	case lacking >= 0:
		f.Code, f.Detail = TooSmall, e.stock.Dims[lacking] // podgroup.Unoffered is replaced by explain
	case e.q.hasPortConflict(e.class, daemonPorts(shape)):
		f.Code, f.Detail = HostPortTaken, firstConflict(e.class.Ports, shape.Ports)
	case topologyCode != "":
		f.Code, f.Detail, f.rank = topologyCode, key, rankTopology
	case e.stock.Offers[o].IsReserved() && e.unusedInstances(e.stock.Offers[o].Reserve) == 0:
		f.Code, f.Detail, f.rank = ReservationFull, e.stock.Offers[o].Reservation.ID, rankCapacity
	case !e.stock.Offers[o].Available:
		f.Code, f.rank = NoCapacity, rankCapacity
	case limit != "":
		f.Code, f.Detail, f.rank = LimitReached, p.Name+": "+limit, rankLimit
		f.excess = limitExcess{limit: limit, taken: p.Limit(limit) - b.Left(limit), each: max(e.stock.TypeOf(o).Capacity.Of(limit), 1)}
	default:
		f.Code, f.rank = EffortSpent, rankEffort
		if missing, ok := e.missingMinValueAlone(o); ok {
			f.Code, f.Detail, f.rank, f.missing = MinValues, fmt.Sprintf("%s: %d of %d", missing.Key, missing.Have, missing.Asked), rankValues, missing
		}
	}
	e.add(f)
}

// missingMinValueAlone returns the minValues that a node of the offering would violate with only
// this pod. The pod's topology rules keep it in the domains of the offering.
func (e *explanation) missingMinValueAlone(o int) (Relaxation, bool) {
	set := e.accepts.Hard[e.class.Sig]
	if domains := e.domainsOf(o); len(domains) > 0 {
		set = e.accepts.Number(e.ground.OffersIn(e.q.profile(e.class), domains, e.accepts.Sets[set]))
	}
	return e.missingMinValue(&plannedNode{offer: o, allocations: []allocation{{class: e.number, n: 1, acceptSet: set}}})
}

// domainsOf returns the domains of the offering, by key of the class's profile.
func (e *explanation) domainsOf(o int) []int {
	e.domains = e.domains[:0]
	for _, key := range e.q.profile(e.class).Keys {
		e.domains = append(e.domains, e.ground.Keys[key].OfferAt[o])
	}
	return e.domains
}

// blockingTopologyRule returns the code and topology key of the rule that keeps the class off the
// offering; empty if there is none.
func (e *explanation) blockingTopologyRule(o int) (Code, string) {
	profile, domains := e.q.profile(e.class), e.domainsOf(o)
	if group, ok := e.q.daemonPods.Against(e.q.Book, profile, o); ok {
		return PodAntiAffinity, e.q.Book.Groups[group].Key
	}
	rule := e.ground.Census.Refusal(profile, domains)
	if rule == nil {
		// A new node satisfies all host rules but required affinity. Where an affinity has no pods
		// in the domain, DaemonSet pods can still satisfy it.
		if groups := e.ground.Company(profile, domains); len(groups) > 0 && !e.q.daemonPods.Are(groups, o) {
			return PodAffinity, e.q.Book.Groups[groups[0]].Key
		}
		if groups, self := e.requiredHostGroups(e.class); len(groups) > 0 && !e.q.daemonPods.Are(groups, o) && (!self || slices.ContainsFunc(groups, e.isHostFixedInPlan)) {
			return PodAffinity, topology.Hostname
		}
		if e.ground.IsCrowded(e.q.Book, profile, o) {
			return TopologySpread, topology.Hostname
		}
		return "", ""
	}
	return codeOf[rule.Form], e.q.Book.Groups[rule.Group].Key
}

// isHostFixedInPlan reports whether an existing or planned node has pods of the group, so that
// others must use it too.
func (e *explanation) isHostFixedInPlan(group int) bool {
	return e.isHostFixed(group) || slices.ContainsFunc(e.planned, func(pn plannedNode) bool { return e.matchedPods(&pn, group) > 0 })
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
		i := slices.IndexFunc(out, func(r Reason) bool { return r.Code == f.Code && r.Detail == f.Detail })
		if i < 0 {
			out = append(out, f.Reason)
			continue
		}
		out[i].Count += f.Count
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
		i = slices.IndexFunc(reasons, func(r Reason) bool { return r.Code == nearest.Code && r.Detail == nearest.Detail })
	}
	if i <= 0 {
		return reasons
	}
	first := reasons[i]
	return slices.Insert(slices.Delete(reasons, i, i+1), 0, first)
}

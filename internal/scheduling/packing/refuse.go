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

// refusals says of every pod that is left why it has no place beside what the plan has: in the domains that there are then,
// whatever else could be bought. ground, r and q are those from before any pod was placed.
func (w *work) refusals(ground *existing.Ground, r *existing.Rooms, q *queue) []Refusal {
	if w.unplaced() > 0 {
		w = w.reopened(w.standing(ground), r, q)
	}
	var out []Refusal
	for _, u := range w.q.Unplannable {
		out = append(out, Refusal{Pod: u.Pod.ID(), Reasons: legibleAll([]Reason{{Code: Unplannable, Count: 1, Detail: u.Why}})})
	}
	for _, p := range w.q.Deferred {
		reason := Reason{Code: EffortSpent, Count: 1, Detail: "its rules about other pods, with those of all pods, exceed the limit of one plan"}
		out = append(out, Refusal{Pod: p.ID(), Reasons: []Reason{reason}, Hint: laterHint})
	}
	left := make([][]*cluster.Pod, w.whole)
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if w.left[c] == 0 {
			continue
		}
		left[p.base] = append(left[p.base], p.Pods[len(p.Pods)-w.left[c]*p.unit:]...)
	}
	for c, pods := range left {
		if len(pods) == 0 {
			continue
		}
		t := w.explained(c)
		reasons, hint := legibleAll(nearestFirst(t.reasons(), t.nearest())), legible(t.hint())
		for _, p := range pods {
			out = append(out, Refusal{Pod: p.ID(), Reasons: reasons, Hint: hint})
		}
	}
	slices.SortStableFunc(out, func(a, b Refusal) int { return cmp.Compare(a.Pod, b.Pod) })
	return out
}

// longestText is how long a detail or a hint is, in bytes: an event takes 1,024.
const longestText = 1000

// legible writes text on one line of bounded length, without what a terminal acts on: it has keys and values in it that users chose, and stands in
// events, logs and conditions.
func legible(text string) string {
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "") + "…"
	}
	if !strings.ContainsFunc(text, isHidden) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func isHidden(r rune) bool { return !unicode.IsPrint(r) }

func legibleAll(reasons []Reason) []Reason {
	for i := range reasons {
		reasons[i].Detail = legible(reasons[i].Detail)
	}
	return reasons
}

// trial is one class held against everything that can be bought.
type trial struct {
	*work
	number   int // of the class
	class    *class
	sig      *podgroup.Signature
	findings []finding
	cell     []int // scratch
}

// finding is a number of offers that one cause rules out.
type finding struct {
	Reason
	rank int            // how far an offer got before it was ruled out
	pool *offering.Pool // nil if the cause is no pool's

	ask  requirements.Values // for causes that are about a label: what the class asks of it
	lack Relaxation          // for MinValues
	over overrun             // for LimitReached
}

// overrun is by how much a machine would be over a limit, in the units of capacity.Amounts.
type overrun struct {
	limit string // its name
	taken int64  // used by what is there and what is planned
	each  int64  // what the smallest machine that would do takes of it
}

// The order in which an offer is judged. The cause that lets it get furthest is
// the one that the smallest change would mend.
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

// explained is examine for a class that is like others but for its number, priority and resources which nothing has.
func (w *work) explained(number int) *trial {
	c := &w.q.classes[number]
	key := string(intsKey([]int{c.Sig, c.Profile, len(c.Lists)}, c.Lists))
	for _, n := range c.Ask {
		key += string(hashkey.Int(nil, n))
	}
	t, ok := w.examined[key]
	if !ok {
		if w.examined == nil {
			w.examined = map[string]*trial{}
		}
		t = w.examine(number)
		w.examined[key] = t
	}
	own := *t
	own.number, own.class, own.findings = number, c, slices.Clone(t.findings)
	for i := range own.findings {
		if f := &own.findings[i]; f.Code == TooSmall && f.Detail == podgroup.Unoffered {
			f.Detail = w.q.FirstUnoffered(c.Amounts)
		}
	}
	return &own
}

// examine holds a class against all pools.
func (w *work) examine(number int) *trial {
	c := &w.q.classes[number]
	t := &trial{work: w, number: number, class: c, sig: &w.q.Signatures[c.Sig]}
	if len(w.st.Pools) == 0 {
		t.add(finding{Reason: Reason{Code: NoPool, Count: 1}, rank: rankNone})
	}
	for i, p := range w.st.Pools {
		t.pool(i, p)
	}
	return t
}

// add merges findings of one cause in one pool.
func (t *trial) add(f finding) {
	if f.Count == 0 {
		return
	}
	for i := range t.findings {
		g := &t.findings[i]
		if g.Code == f.Code && g.Detail == f.Detail && g.pool == f.pool {
			g.Count += f.Count
			g.over.each = min(g.over.each, f.over.each)
			return
		}
	}
	t.findings = append(t.findings, f)
}

// pool judges what one pool could buy.
func (t *trial) pool(i int, p *offering.Pool) {
	rulesOut := func(code Code, count int, detail string, rank int) {
		t.add(finding{Reason: Reason{Code: code, Count: count, Detail: detail}, rank: rank, pool: p})
	}
	taint, repels := requirements.Untolerated(p.Taints, t.sig.Tolerations)
	switch {
	case p.Unusable != "":
		rulesOut(PoolUnusable, 1, p.Name+": "+p.Unusable, rankPool)
		return
	case p.Size() == 0:
		rulesOut(PoolEmpty, 1, p.Name+": "+p.Emptied, rankPool)
		return
	case repels:
		rulesOut(TaintUntolerated, p.Size()/max(t.variants(i), 1), taint.String(), rankTaint)
		return
	}
	// Of the choices that the pool leaves, and of the pod's alternatives, the one that gets furthest counts.
	var best []finding
	for v := range t.st.Variants {
		if t.st.Variants[v].Pool != i {
			continue
		}
		all := alternatives(t.sig.Required)
		for _, reqs := range all[:min(len(all), mostExplained)] {
			got := t.variant(&t.st.Variants[v], p, reqs)
			if best == nil || progress(got) > progress(best) {
				best = got
			}
		}
	}
	for _, f := range best {
		t.add(f)
	}
}

// mostExplained is how many of a pod's alternatives a refusal speaks of at most.
const mostExplained = 64

// variants returns how many variants the pool has.
func (t *trial) variants(pool int) int {
	n := 0
	for _, v := range t.st.Variants {
		if v.Pool == pool {
			n++
		}
	}
	return n
}

// alternatives returns what is required, of which any will do: at least one.
func alternatives(required []requirements.Requirements) []requirements.Requirements {
	if len(required) == 0 {
		return []requirements.Requirements{nil}
	}
	return required
}

// progress is how far the offers got, the furthest first.
func progress(findings []finding) int {
	most := 0
	for _, f := range findings {
		most = max(most, f.rank<<32+f.Count)
	}
	return most
}

// variant judges the offers of a variant, step by step.
func (t *trial) variant(v *offering.Variant, p *offering.Pool, reqs requirements.Requirements) []finding {
	r := &trial{work: t.work, number: t.number, class: t.class, sig: t.sig}
	alive := t.st.OffersOf(v)
	for _, key := range reqs.Keys() {
		left := alive.Both(t.st.Labels.Accepting(key, reqs[key]))
		code, detail := t.labelCause(v, p, key, reqs[key])
		r.add(finding{
			Reason: Reason{Code: code, Count: alive.Count() - left.Count(), Detail: detail},
			rank:   rankLabel, pool: p, ask: reqs[key],
		})
		alive = left
	}
	alive.Each(func(o int) { r.offer(o, p, &t.budgets[v.Pool]) })
	return r.findings
}

// labelCause says what stands behind a label that does not match.
func (t *trial) labelCause(v *offering.Variant, p *offering.Pool, key string, ask requirements.Values) (Code, string) {
	if _, offered := v.Labels[key]; !offering.IsCloudKey(key) && !offered && len(t.st.Labels.Of(key).Values) == 0 {
		return LabelMissing, key + " " + ask.String()
	}
	allowed, limited := p.Accepts[key]
	if _, offered := v.Labels[key]; offered || limited && !allowed.Intersects(ask) {
		return LabelConflict, key
	}
	if len(t.st.Labels.Of(key).Values) == 0 || !offering.IsCloudKey(key) {
		return LabelMissing, key + " " + ask.String()
	}
	return TypeMismatch, key
}

// offer judges an offer whose labels will do.
func (t *trial) offer(o int, p *offering.Pool, b *offering.Budget) {
	shape := t.st.ShapeOf(o)
	f := finding{Reason: Reason{Count: 1}, pool: p, rank: rankRoom}
	lacking := t.class.Ask.Lacking(shape.Room)
	topological, key := t.against(o)
	limit := b.Tightest(t.st.TypeOf(o).Capacity)
	switch {
	case shape.Broken:
		f.Code, f.Detail = TooSmall, "the DaemonSets"
	case lacking >= 0:
		f.Code, f.Detail = TooSmall, t.st.Dims[lacking] // pending.Unoffered: see explained
	case t.q.clashes(t.class, taken(shape)):
		f.Code, f.Detail = HostPortTaken, firstConflict(t.class.Ports, shape.Ports)
	case topological != "":
		f.Code, f.Detail, f.rank = topological, key, rankTopology
	case t.st.Offers[o].IsReserved() && t.unused(t.st.Offers[o].Reserve) == 0:
		f.Code, f.Detail, f.rank = ReservationFull, t.st.Offers[o].Reservation.ID, rankCapacity
	case !t.st.Offers[o].Available:
		f.Code, f.rank = NoCapacity, rankCapacity
	case limit != "":
		f.Code, f.Detail, f.rank = LimitReached, p.Name+": "+limit, rankLimit
		f.over = overrun{limit: limit, taken: p.Limit(limit) - b.Left(limit), each: max(t.st.TypeOf(o).Capacity.Of(limit), 1)}
	default:
		f.Code, f.rank = EffortSpent, rankEffort
		if lack, ok := t.lackAlone(o); ok {
			f.Code, f.Detail, f.rank, f.lack = MinValues, fmt.Sprintf("%s: %d of %d", lack.Key, lack.Have, lack.Asked), rankValues, lack
		}
	}
	t.add(f)
}

// lackAlone returns the minValues that a machine of the offer would not keep if
// the pod were alone on it. Its rules hold it in the domains of the offer.
func (t *trial) lackAlone(o int) (Relaxation, bool) {
	set := t.accepts.Hard[t.class.Sig]
	if cell := t.cellOf(o); len(cell) > 0 {
		set = t.accepts.Number(t.ground.OffersIn(t.q.profile(t.class), cell, t.accepts.Sets[set]))
	}
	return t.lack(&machine{offer: o, takes: []take{{class: t.number, n: 1, set: set}}})
}

// cellOf returns the domains of the offer, by key of the class's profile.
func (t *trial) cellOf(o int) []int {
	t.cell = t.cell[:0]
	for _, key := range t.q.profile(t.class).Keys {
		t.cell = append(t.cell, t.ground.Keys[key].OfferAt[o])
	}
	return t.cell
}

// against names the rule about other pods that keeps the class off the offer, if there is one.
func (t *trial) against(o int) (Code, string) {
	profile, cell := t.q.profile(t.class), t.cellOf(o)
	if group, ok := t.q.guests.Against(t.q.Book, profile, o); ok {
		return PodAntiAffinity, t.q.Book.Groups[group].Key
	}
	rule := t.ground.Census.Refusal(profile, cell)
	if rule == nil {
		// A new machine gives all that is asked of a host, but for company; and in a domain where nobody else is, its guests are.
		if groups := t.ground.Company(profile, cell); len(groups) > 0 && !t.q.guests.Are(groups, o) {
			return PodAffinity, t.q.Book.Groups[groups[0]].Key
		}
		if groups, self := t.needs(t.class); len(groups) > 0 && !t.q.guests.Are(groups, o) && (!self || slices.ContainsFunc(groups, t.hasHost)) {
			return PodAffinity, topology.Hostname
		}
		if t.ground.IsCrowded(t.q.Book, profile, o) {
			return TopologySpread, topology.Hostname
		}
		return "", ""
	}
	return codeOf[rule.Form], t.q.Book.Groups[rule.Group].Key
}

// hasHost reports whether a node or a machine of the plan has pods of the group, so that others must go there too.
func (t *trial) hasHost(group int) bool {
	return t.isTaken(group) || slices.ContainsFunc(t.machines, func(m machine) bool { return t.matched(&m, group) > 0 })
}

var codeOf = map[topology.Form]Code{topology.Spread: TopologySpread, topology.Near: PodAffinity, topology.Apart: PodAntiAffinity}

// firstConflict names the first port of a that is one of b.
func firstConflict(a, b []cluster.HostPort) string {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Conflicts) {
			return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		}
	}
	return ""
}

// reasons returns the causes, the most frequent first; nearestFirst puts one before them.
func (t *trial) reasons() []Reason {
	var out []Reason
	for _, f := range t.findings {
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

// nearestFirst puts the cause that the hint is about before the others, so that all who name one cause name the same.
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

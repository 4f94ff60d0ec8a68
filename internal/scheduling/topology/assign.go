package topology

import (
	"container/heap"
	"math"
)

// Place is a combination of domains where pods of a profile may go.
type Place struct {
	Domains []int   // one domain for each of Profile.Keys
	Most    int     // maximum number of pods, on existing nodes and on nodes that may be launched
	Rank    int     // places of lower rank are used first, if rules and preferences allow
	Free    int     // number of pods that fit on existing nodes; kube-scheduler uses these nodes first
	Price   float64 // lowest price of an offering relative to its size; +Inf: only existing nodes
}

// Assign returns how many of n pods of a profile go to each place, and adds them to the domain counts. It satisfies
// every required rule. Among the allowed places it prefers, in this order:
//
//   - places with room for all n pods, if a required affinity keeps the pods together;
//   - places with free room on existing nodes, because kube-scheduler will put the pods there;
//   - places where the pods violate no spread of other pods;
//   - places where the violated preferences have the lowest sum of weights;
//   - places of lower rank;
//   - places with the fewest pods of preferred spreads;
//   - cheap places, in steps of 10 %;
//   - places with the fewest pods of required spreads (after the price, because maxSkew limits the skew).
//
// Pods that fit in no place are not counted in the result.
func (c *DomainCounts) Assign(p *Profile, n int, places []Place) []int {
	a := &assignment{domainCounts: c, profile: p, places: places, counts: make([]int, len(places)), podsAtStart: n}
	for _, r := range p.Domain {
		a.oneByOne = a.oneByOne || r.Kind == Spread || r.Kind == AntiAffinity && r.Self
		a.isColocated = a.isColocated || r.Kind == Affinity && r.Weight == 0
		a.byLoad = a.byLoad || r.Self && r.Kind != AntiAffinity
	}
	a.oneByOne = a.oneByOne || c.isCountedBySpread(p)
	for i := range places {
		if places[i].Most > 0 {
			a.queue.entries = append(a.queue.entries, a.entry(i))
		}
	}
	heap.Init(&a.queue)
	for n > 0 {
		assigned := a.pass(n)
		if n -= assigned; assigned == 0 || len(a.disallowed) == 0 {
			break
		}
		// Places that were not allowed before may be allowed now, because pods of this profile were assigned.
		for _, i := range a.disallowed {
			heap.Push(&a.queue, a.entry(i))
		}
		a.disallowed = a.disallowed[:0]
	}
	return a.counts
}

// Refusal returns the first required rule of the profile that does not allow one more pod in the domains; nil if all
// rules allow the pod. domains has one domain for each of p.Keys. If only an anti-affinity of other pods does not allow
// the pod, Refusal returns a rule with only Group and Kind.
func (c *DomainCounts) Refusal(p *Profile, domains []int) *Rule {
	for i := range p.Domain {
		r := &p.Domain[i]
		if r.Weight > 0 {
			continue
		}
		k, d := &c.counts[r.Group], domains[r.keyIndex]
		if r.Kind != AntiAffinity && k.lacksLabel(d) {
			return r
		}
		switch r.Kind {
		case Spread:
			if k.matched[d]+toInt(r.Self)-k.fewest(r.MinDomains) > r.MaxSkew {
				return r
			}
		case Affinity:
			if !c.satisfies(p, r, d) {
				return r
			}
		case AntiAffinity:
			if k.matched[d] > 0 {
				return r
			}
		}
	}
	return c.avoidingRule(p, domains)
}

// SatisfiesAffinity reports whether the domains satisfy all required affinity of the profile. A pod that may be the
// first of its group satisfies its affinity in any domain.
func (c *DomainCounts) SatisfiesAffinity(p *Profile, domains []int) bool {
	for i := range p.Domain {
		if r := &p.Domain[i]; r.Kind == Affinity && r.Weight == 0 && !c.satisfies(p, r, domains[r.keyIndex]) {
			return false
		}
	}
	return true
}

// satisfies reports whether the domain satisfies an affinity rule of the profile. The first pod with an unbound volume
// claim may go to any domain. So may a pod that is the first of all its affinity groups (see isFirst).
func (c *DomainCounts) satisfies(p *Profile, r *Rule, domain int) bool {
	k := &c.counts[r.Group]
	return k.matched[domain] > 0 || r.Volume && k.total == 0 || r.Self && !r.Volume && c.isFirst(p)
}

// isFirst reports whether a pod of the profile would be the first pod of all its affinity groups. These groups must
// count the pod itself, and must count no other pod yet. The first pod may go to any domain.
func (c *DomainCounts) isFirst(p *Profile) bool {
	for i := range p.Domain {
		r := &p.Domain[i]
		if r.Kind == Affinity && r.Weight == 0 && !r.Volume && (!r.Self || c.counts[r.Group].total > 0) {
			return false
		}
	}
	return true
}

// avoidingRule returns an anti-affinity rule of other pods that does not allow the profile's pods in the domains; nil
// if there is none.
func (c *DomainCounts) avoidingRule(p *Profile, domains []int) *Rule {
	for i, g := range p.In {
		key := p.inKeys[i]
		if key >= 0 && c.index.Groups[g].Kind == AntiAffinity && c.counts[g].owners[domains[key]] > 0 {
			return &Rule{Group: g, Kind: AntiAffinity}
		}
	}
	return nil
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type assignment struct {
	domainCounts *DomainCounts
	profile      *Profile
	places       []Place
	counts       []int // by place
	podsAtStart  int   // number of pods to assign at the start
	oneByOne     bool  // assign one pod at a time, because each pod changes the best place for the next
	isColocated  bool  // all pods must go to one domain
	byLoad       bool  // of otherwise equal places, prefer the place with the lowest load (see placeEntry)
	queue        placeQueue
	disallowed   []int // places that a rule did not allow when they were tried
}

// pass assigns up to n pods, and returns the number of assigned pods.
func (a *assignment) pass(n int) int {
	assigned := 0
	for assigned < n && len(a.queue.entries) > 0 {
		e := heap.Pop(&a.queue).(placeEntry)
		// The entry may be out of date, because pods were assigned to other places with the same domain.
		if current := a.entry(e.place); current != e && len(a.queue.entries) > 0 && a.queue.entries[0].before(&current) {
			heap.Push(&a.queue, current)
			continue
		}
		i := e.place
		if a.domainCounts.Refusal(a.profile, a.places[i].Domains) != nil {
			a.disallowed = append(a.disallowed, i)
			continue
		}
		step := min(n-assigned, a.places[i].Most-a.counts[i])
		if free := a.places[i].Free - a.counts[i]; free > 0 { // without free room, another place may be better
			step = min(step, free)
		}
		if a.oneByOne {
			step = 1
		}
		before := a.sumOfMinima()
		a.domainCounts.Add(a.profile, a.places[i].Domains, step)
		if a.sumOfMinima() != before {
			a.reorder()
		}
		a.counts[i] += step
		assigned += step
		if a.counts[i] < a.places[i].Most {
			heap.Push(&a.queue, a.entry(i))
		}
	}
	return assigned
}

// reorder sorts the places again, including the disallowed ones. It is called when the minimum of a spread has
// increased: more places may then be allowed, or may satisfy a preference.
func (a *assignment) reorder() {
	for i := range a.queue.entries {
		a.queue.entries[i] = a.entry(a.queue.entries[i].place)
	}
	for _, i := range a.disallowed {
		a.queue.entries = append(a.queue.entries, a.entry(i))
	}
	a.disallowed = a.disallowed[:0]
	heap.Init(&a.queue)
}

// sumOfMinima returns the sum of the minima of the spreads of the profile, and of the spreads that count the profile's
// pods. The minimum of a spread is the number of pods in its domain with the fewest pods.
func (a *assignment) sumOfMinima() int {
	sum := 0
	for i, g := range a.profile.In {
		if a.profile.inKeys[i] >= 0 && a.domainCounts.index.Groups[g].Kind == Spread {
			sum += a.domainCounts.counts[g].low
		}
	}
	for i := range a.profile.Domain {
		if r := &a.profile.Domain[i]; r.Kind == Spread {
			sum += a.domainCounts.counts[r.Group].low
		}
	}
	return sum
}

// placeEntry is a place with its current sort criteria, the most important first.
type placeEntry struct {
	place         int  // index in assignment.places
	tooSmall      bool // the pods must stay together, and this place has no room for all of them
	full          bool // no free room left on existing nodes
	exceeded      int  // number of spreads of other pods that a pod here would violate
	penalty       int  // sum of the weights of the preferences that the place does not satisfy
	rank          int
	preferredPods int // number of pods in the domains, summed over the groups of preferred spreads
	priceStep     int // see function priceStep; small price differences do not make a spread uneven
	requiredPods  int // number of pods in the domains, summed over the groups of required spreads
	price         float64
	spreadPods    int // number of pods in the domains, summed over the spreads that count the pods of the profile
	load          int // pods assigned to the domains of the place so far
}

func (e *placeEntry) before(f *placeEntry) bool {
	switch {
	case e.tooSmall != f.tooSmall:
		return f.tooSmall
	case e.full != f.full:
		return f.full
	case e.exceeded != f.exceeded:
		return e.exceeded < f.exceeded
	case e.penalty != f.penalty:
		return e.penalty < f.penalty
	case e.rank != f.rank:
		return e.rank < f.rank
	case e.preferredPods != f.preferredPods:
		return e.preferredPods < f.preferredPods
	case e.priceStep != f.priceStep:
		return e.priceStep < f.priceStep
	case e.requiredPods != f.requiredPods:
		return e.requiredPods < f.requiredPods
	case e.price != f.price:
		return e.price < f.price
	case e.spreadPods != f.spreadPods:
		return e.spreadPods < f.spreadPods
	case e.load != f.load:
		return e.load < f.load
	}
	return e.place < f.place
}

func (a *assignment) entry(i int) placeEntry {
	place := &a.places[i]
	e := placeEntry{place: i, full: a.counts[i] >= place.Free, price: place.Price, rank: place.Rank, priceStep: priceStep(place.Price)}
	e.tooSmall = a.isColocated && place.Most < a.podsAtStart
	e.exceeded, e.spreadPods = a.domainCounts.exceededSpreads(a.profile, place.Domains), a.domainCounts.spreadPods(a.profile, place.Domains)
	for j := range a.profile.Domain {
		r := &a.profile.Domain[j]
		k, d := &a.domainCounts.counts[r.Group], place.Domains[r.keyIndex]
		switch {
		case k.lacksLabel(d):
			e.penalty += r.Weight * toInt(r.Kind != AntiAffinity)
		case r.Kind == Spread && r.Weight == 0:
			e.requiredPods += k.matched[d]
		case r.Kind == Spread:
			e.preferredPods += k.matched[d]
			if k.matched[d]+toInt(r.Self)-k.fewest(r.MinDomains) > r.MaxSkew {
				e.penalty += r.Weight
			}
		case r.Weight > 0 && (r.Kind == AntiAffinity) == (k.matched[d] > 0): // anti-affinity to present pods, or affinity to absent ones
			e.penalty += r.Weight
		}
	}
	for j, key := range a.profile.Keys {
		if !a.byLoad {
			break
		}
		e.load += a.domainCounts.load[key][place.Domains[j]]
	}
	return e
}

// priceStep returns the number of the price's step. Each step is 10 % wide; a price of 0 is below all steps, and +Inf
// above.
func priceStep(price float64) int {
	switch {
	case price <= 0:
		return math.MinInt
	case math.IsInf(price, 1):
		return math.MaxInt
	}
	return int(math.Floor(math.Log(price) / math.Log(1.1)))
}

// placeQueue is a heap of places, best first.
type placeQueue struct{ entries []placeEntry }

func (q *placeQueue) Len() int           { return len(q.entries) }
func (q *placeQueue) Less(i, j int) bool { return q.entries[i].before(&q.entries[j]) }
func (q *placeQueue) Swap(i, j int)      { q.entries[i], q.entries[j] = q.entries[j], q.entries[i] }

// Push implements heap.Interface.
func (q *placeQueue) Push(x any) { q.entries = append(q.entries, x.(placeEntry)) }

// Pop implements heap.Interface.
func (q *placeQueue) Pop() any {
	last := q.entries[len(q.entries)-1]
	q.entries = q.entries[:len(q.entries)-1]
	return last
}

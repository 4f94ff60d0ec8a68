package topology

// DomainCounts counts the pods of groups by domain. The caller numbers the domains of each label from 0.
type DomainCounts struct {
	index   *Index
	domains map[string]int   // number of domains, by label
	counts  []count          // by group
	load    map[string][]int // by label and domain: number of pods added by Add
}

// count has the numbers of pods of one group, by domain.
type count struct {
	matched    []int       // pods that the group counts
	owners     []int       // pods with a required anti-affinity to the group
	skewLimits []skewLimit // strictest spread over the group among the pods in the domain
	total      int         // sum of matched
	counted    []bool      // whether the domain counts for low
	numCounted int         // number of domains that count
	low        int         // minimum of matched among the domains that count
	atLow      int         // number of domains that count and have exactly low pods
}

// skewLimit is the strictest spread over a group among the pods in a domain.
type skewLimit struct {
	maxSkew    int // 0: no pod in the domain has a spread over the group
	minDomains int
}

// NewDomainCounts returns empty counts. domains has the number n of domains by label; a missing label has no
// domains. The domain with number n stands for nodes without the label; pods on these nodes are not counted.
func NewDomainCounts(index *Index, domains map[string]int) *DomainCounts {
	c := &DomainCounts{index: index, domains: domains, counts: make([]count, len(index.Groups)), load: map[string][]int{}}
	for key, n := range domains {
		c.load[key] = make([]int, n+1)
	}
	for i := range c.counts {
		g := &index.Groups[i]
		if g.Key == Hostname {
			continue
		}
		n := domains[g.Key]
		if n == 0 {
			c.load[g.Key] = make([]int, 1)
		}
		k := &c.counts[i]
		k.matched, k.owners, k.counted = make([]int, n+1), make([]int, n+1), make([]bool, n+1)
		k.skewLimits = make([]skewLimit, n+1)
		for d := range n {
			k.counted[d] = true
		}
		k.recount()
	}
	return c
}

// Clone returns a copy that can be changed independently.
func (c *DomainCounts) Clone() *DomainCounts {
	out := *c
	out.counts, out.load = make([]count, len(c.counts)), make(map[string][]int, len(c.load))
	for i, k := range c.counts {
		k.matched, k.owners = append([]int(nil), k.matched...), append([]int(nil), k.owners...)
		k.skewLimits = append([]skewLimit(nil), k.skewLimits...)
		out.counts[i] = k
	}
	for key, load := range c.load {
		out.load[key] = append([]int(nil), load...)
	}
	return &out
}

// SetCounted sets which domains count for the minimum of a Spread's group: those in which the owner of the rule accepts
// a node, now or after a launch. Before the first call, all domains count.
func (c *DomainCounts) SetCounted(group int, domains []bool) {
	c.counts[group].counted = append(append([]bool(nil), domains...), false)
	c.counts[group].recount()
}

// AddPods adds n pods that the group counts.
func (c *DomainCounts) AddPods(group, domain, n int) { c.counts[group].add(domain, n) }

// AddOwners adds n pods with a required anti-affinity to the group.
func (c *DomainCounts) AddOwners(group, domain, n int) { c.counts[group].addOwners(domain, n) }

// Add adds n pods of a profile to the given domains, one domain for each of p.Keys. A negative n removes pods, but not
// their skew limits.
func (c *DomainCounts) Add(p *Profile, domains []int, n int) {
	for i, g := range p.In {
		if k := p.inKeys[i]; k >= 0 {
			c.counts[g].add(domains[k], n)
		}
	}
	for i := range p.Domain {
		r := &p.Domain[i]
		switch {
		case r.Weight > 0:
		case r.Kind == AntiAffinity:
			c.counts[r.Group].addOwners(domains[r.keyIndex], n)
		case r.Kind == Spread && n > 0:
			c.counts[r.Group].skewLimits[domains[r.keyIndex]].tighten(r)
		}
	}
	for i, key := range p.Keys {
		c.load[key][domains[i]] += n
	}
}

func (t *skewLimit) tighten(r *Rule) {
	if t.maxSkew == 0 || r.MaxSkew < t.maxSkew {
		t.maxSkew = r.MaxSkew
	}
	t.minDomains = max(t.minDomains, r.MinDomains)
}

// IsFewest reports whether the given domains have the fewest pods of some group. The group must be one of groups and
// must count the pods of the profile. The fewest is the minimum over the domains that count (see SetCounted).
func (c *DomainCounts) IsFewest(p *Profile, domains []int, groups map[int]bool) bool {
	for i, g := range p.In {
		if key := p.inKeys[i]; key >= 0 && groups[g] && c.counts[g].matched[domains[key]] == c.counts[g].low {
			return true
		}
	}
	return false
}

// isCountedBySpread reports whether some required spread counts the pods of the profile.
func (c *DomainCounts) isCountedBySpread(p *Profile) bool {
	for i, g := range p.In {
		if p.inKeys[i] >= 0 && c.index.Groups[g].Kind == Spread {
			return true
		}
	}
	return false
}

// exceededSpreads counts the spread groups whose skew limit one more pod of the profile in these domains would exceed.
// The skew limit comes from a pod that is already in the domain: kube-scheduler could bind that pod only before the new
// pod.
func (c *DomainCounts) exceededSpreads(p *Profile, domains []int) int {
	n := 0
	for i, g := range p.In {
		key := p.inKeys[i]
		if key < 0 || c.index.Groups[g].Kind != Spread {
			continue
		}
		k, d := &c.counts[g], domains[key]
		if t := k.skewLimits[d]; t.maxSkew > 0 && k.matched[d]+1-k.fewest(t.minDomains) > t.maxSkew {
			n++
		}
	}
	return n
}

// spreadPods returns the number of pods in these domains, summed over the spreads that count the profile's pods.
func (c *DomainCounts) spreadPods(p *Profile, domains []int) int {
	n := 0
	for i, g := range p.In {
		if key := p.inKeys[i]; key >= 0 && c.index.Groups[g].Kind == Spread {
			n += c.counts[g].matched[domains[key]]
		}
	}
	return n
}

// Matched returns how many pods the group counts in a domain.
func (c *DomainCounts) Matched(group, domain int) int { return c.counts[group].matched[domain] }

// Total returns how many pods the group counts in all domains, without nodes that lack the label.
func (c *DomainCounts) Total(group int) int { return c.counts[group].total }

// lacksLabel reports whether the number of a domain stands for nodes without the label.
func (k *count) lacksLabel(domain int) bool { return domain == len(k.matched)-1 }

// addOwners ignores pods on nodes without the label.
func (k *count) addOwners(domain, n int) {
	if !k.lacksLabel(domain) {
		k.owners[domain] += n
	}
}

// add adds n pods that the group counts. It ignores pods on nodes without the label. A negative n removes pods.
func (k *count) add(domain, n int) {
	if k.lacksLabel(domain) {
		return
	}
	before := k.matched[domain]
	k.matched[domain] += n
	k.total += n
	switch {
	case !k.counted[domain]:
	case n > 0 && before == k.low:
		if k.atLow--; k.atLow == 0 {
			k.recount()
		}
	case n < 0:
		k.recount()
	}
}

func (k *count) recount() {
	k.numCounted, k.low, k.atLow = 0, 0, 0
	for d, n := range k.matched {
		if !k.counted[d] {
			continue
		}
		if k.numCounted == 0 || n < k.low {
			k.low, k.atLow = n, 0
		}
		if n == k.low {
			k.atLow++
		}
		k.numCounted++
	}
}

// fewest returns the minimum of matched for a rule with minDomains: 0 if fewer than minDomains domains count.
func (k *count) fewest(minDomains int) int {
	if k.numCounted < minDomains {
		return 0
	}
	return k.low
}

package topology

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// The domains of the labels in these tests: zones a, b and c; capacity types spot and od; no domain of the label rack,
// which no node has. The number after a label's last domain stands for nodes without the label.
var (
	domains = map[string]int{Zone: 3, capacityType: 2, "rack": 0}
	numbers = map[string]int{"a": 0, "b": 1, "c": 2, "spot": 0, "od": 1}
)

// number returns the number of the named domain; "" stands for nodes without the label.
func number(key, name string) int {
	if name == "" {
		return domains[key]
	}
	return numbers[name]
}

// running has n pods on nodes of a zone and a capacity type; "" stands for nodes without the label.
type running struct {
	pod                cluster.Pod
	zone, capacityType string
	n                  int
}

// addResidents adds the pods to the domain counts as package existing adds the residents of nodes.
func addResidents(c *DomainCounts, b *Index, residents []running) {
	for _, s := range residents {
		at := func(key string) int {
			switch key {
			case Zone:
				return number(key, s.zone)
			case capacityType:
				return number(key, s.capacityType)
			}
			return domains[key]
		}
		for _, g := range b.GroupsOf(s.pod.Namespace, s.pod.Labels) {
			c.AddPods(g, at(b.Groups[g].Key), s.n)
		}
		for i := range s.pod.AntiAffinity {
			if term := &s.pod.AntiAffinity[i]; term.Weight == 0 {
				if g, ok := b.AntiAffinityGroup(term); ok {
					c.AddOwners(g, at(term.Key), s.n)
				}
			}
		}
	}
}

// avoiding returns the residents that have required anti-affinity, for NewIndex.
func avoiding(residents []running) []cluster.Resident {
	var out []cluster.Resident
	for _, s := range residents {
		k := &cluster.PodKind{Namespace: s.pod.Namespace, Labels: s.pod.Labels}
		for _, t := range s.pod.AntiAffinity {
			if t.Weight == 0 {
				k.RequiredAntiAffinity = append(k.RequiredAntiAffinity, t)
			}
		}
		out = append(out, cluster.Resident{PodKind: k, Count: s.n})
	}
	return out
}

// TestDomainCountsFewest checks fewest for sets of zones that count, and Total, which always includes all zones.
func TestDomainCountsFewest(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", spread(Zone, 1, "web")))
	p := &b.Profiles[b.ProfileOf[0]]
	for name, c := range map[string]struct {
		counted    []bool // by zone, see SetCounted; nil: all zones count
		minDomains int
		pods       []int // by zone; the last number is for nodes without zone
		want       int
	}{
		"no pods":                                {nil, 0, []int{0, 0, 0, 0}, 0},
		"minimum over the zones":                 {nil, 0, []int{3, 2, 5, 0}, 2},
		"pods without zone do not count":         {nil, 0, []int{3, 2, 5, 7}, 2},
		"minDomains zones":                       {nil, 3, []int{3, 2, 5, 0}, 2},
		"fewer than minDomains zones":            {nil, 4, []int{3, 2, 5, 0}, 0},
		"a zone that does not count":             {[]bool{true, false, true}, 0, []int{3, 2, 5, 0}, 3},
		"fewer than minDomains zones that count": {[]bool{true, false, true}, 3, []int{3, 2, 5, 0}, 0},
		"pods in zones that do not count":        {[]bool{false, false, true}, 0, []int{3, 0, 1, 0}, 1},
		"no zone counts":                         {[]bool{false, false, false}, 0, []int{3, 2, 5, 0}, 0},
		"only one zone counts":                   {[]bool{true, false, false}, 1, []int{9, 0, 0, 0}, 9},
	} {
		// The order of SetCounted and AddPods must not matter.
		for _, countFirst := range []bool{true, false} {
			domainCounts := NewDomainCounts(b, domains)
			if c.counted != nil && countFirst {
				domainCounts.SetCounted(0, c.counted)
			}
			total := 0
			for d, n := range c.pods {
				domainCounts.AddPods(0, d, n)
				if d < 3 {
					total += n
				}
			}
			if c.counted != nil && !countFirst {
				domainCounts.SetCounted(0, c.counted)
			}
			r := p.Domain[0]
			r.MinDomains = c.minDomains
			if got := domainCounts.counts[0].fewest(r.MinDomains); got != c.want {
				t.Errorf("%s (counted first: %t): the fewest are %d, want %d", name, countFirst, got, c.want)
			}
			if got := domainCounts.Total(0); got != total {
				t.Errorf("%s: %d pods in total, want %d, without pods on nodes without zone", name, got, total)
			}
		}
	}
}

// TestDomainCountsAdd checks that Add counts pods in the groups of required rules, and as owners of required
// anti-affinity. A negative number removes them.
func TestDomainCountsAdd(t *testing.T) {
	t.Parallel()
	b := indexOf(nil,
		pod("web", spread(Zone, 1, "web"), away(about(Zone, "db"), weighted(1, about(Zone, "cache")))), // groups 0, 1, 2
		pod("cache"))
	web, cache := &b.Profiles[b.ProfileOf[0]], &b.Profiles[b.ProfileOf[1]]
	c := NewDomainCounts(b, domains)
	c.Add(web, []int{1}, 3)
	if got := c.counts[0].matched[1]; got != 3 {
		t.Errorf("the spread counts %d pods, want 3", got)
	}
	if got := c.counts[1].owners[1]; got != 3 {
		t.Errorf("%d pods have anti-affinity to db, want 3", got)
	}
	if got := c.counts[2].owners[1]; got != 0 {
		t.Errorf("%d pods count as owners of a preferred anti-affinity, want 0", got)
	}
	c.Add(web, []int{domains[Zone]}, 2)
	if got := c.Total(0); got != 3 {
		t.Errorf("%d pods in total, want 3: pods without zone do not count", got)
	}
	c.Add(web, []int{1}, -3)
	if c.Total(0) != 0 || c.counts[1].owners[1] != 0 || c.counts[0].matched[1] != 0 {
		t.Errorf("after all pods were removed, the counts are %+v, want zeros", c.counts)
	}
	if len(cache.Keys) != 0 {
		t.Fatalf("cache has keys %v, want none, because only a preference is about it", cache.Keys)
	}
	c.Add(cache, nil, 1) // must not panic: cache has no keys, so no domains
	if got := c.Total(2); got != 0 {
		t.Errorf("the group of the preference counts %d pods, want 0", got)
	}
}

func TestDomainCountsClone(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", spread(Zone, 1, "web"), away(about(Zone, "db"))))
	p := &b.Profiles[b.ProfileOf[0]]
	c := NewDomainCounts(b, domains)
	c.Add(p, []int{0}, 1)
	clone := c.Clone()
	clone.Add(p, []int{0}, 1)
	clone.Add(p, []int{1}, 1)
	clone.SetCounted(0, []bool{true, true, false})
	if c.Total(0) != 1 || c.counts[1].owners[0] != 1 || c.load[Zone][0] != 1 || c.counts[0].numCounted != 3 {
		t.Errorf("changes of the clone changed the original: %+v, load %v; want it unchanged", c.counts, c.load)
	}
	if clone.Total(0) != 3 || clone.counts[1].owners[0] != 2 || clone.load[Zone][1] != 1 ||
		clone.counts[0].fewest(p.Domain[0].MinDomains) != 1 {
		t.Errorf("the clone lacks counts: %+v, load %v; want the counts of the original and of its own pods", clone.counts, clone.load)
	}
}

// TestDomainCountsKeepsLow checks that the incrementally updated minimum equals a recount of all domains.
func TestDomainCountsKeepsLow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := indexOf(nil, pod("web", spread(Zone, 1, "web")))
		c := NewDomainCounts(b, map[string]int{Zone: 4})
		c.SetCounted(0, rapid.SliceOfN(rapid.Bool(), 4, 4).Draw(t, "counted"))
		k := &c.counts[0]
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			d := rapid.IntRange(0, 4).Draw(t, "domain")
			c.AddPods(0, d, rapid.IntRange(-k.matched[d], 3).Draw(t, "pods"))
		}
		kept := *k
		k.recount()
		if kept.low != k.low || kept.atLow != k.atLow || kept.numCounted != k.numCounted {
			t.Errorf("updated minimum: %d in %d of %d domains; want as recounted: %d in %d of %d",
				kept.low, kept.atLow, kept.numCounted, k.low, k.atLow, k.numCounted)
		}
	})
}

// TestExceededSpreads checks that a pod without rules can exceed the skew limit of pods with a spread in its domain.
func TestExceededSpreads(t *testing.T) {
	t.Parallel()
	plain := cluster.Pod{Namespace: "default", Labels: requirements.Labels{"app": "web"}}
	withSpread := plain
	withSpread.Labels = requirements.Labels{"app": "other"}
	withSpread.Spread = []cluster.Spread{{
		Key: Zone, MaxSkew: 1, Selector: cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf("web")}},
	}}
	index := NewIndex([]PodRef{{Pod: &plain}, {Pod: &withSpread}}, nil, nil)
	domainCounts := NewDomainCounts(index, map[string]int{Zone: 3})
	plainProfile, spreadProfile := &index.Profiles[index.ProfileOf[0]], &index.Profiles[index.ProfileOf[1]]

	domainCounts.Add(plainProfile, []int{0}, 5)
	if n := domainCounts.exceededSpreads(plainProfile, []int{0}); n != 0 {
		t.Errorf("%d spreads are exceeded before any pod with a spread is there, want 0", n)
	}
	domainCounts.Add(spreadProfile, []int{1}, 1)
	if n := domainCounts.exceededSpreads(plainProfile, []int{1}); n != 0 {
		t.Errorf("%d spreads are exceeded by the first pod beside the pod with the spread, want 0: the skew is 1", n)
	}
	domainCounts.Add(plainProfile, []int{1}, 1)
	for domain, want := range []int{0, 1, 0} {
		if n := domainCounts.exceededSpreads(plainProfile, []int{domain}); n != want {
			t.Errorf("domain %d: %d spreads are exceeded, want %d", domain, n, want)
		}
	}
	if counts := domainCounts.Assign(plainProfile, 2,
		[]Place{{Domains: []int{1}, Most: 9}, {Domains: []int{2}, Most: 9}}); counts[0] != 1 || counts[1] != 1 {
		t.Errorf("pods go to %v, want [1 1]: after the pod in domain 2, one more pod in domain 1 exceeds no spread", counts)
	}
}

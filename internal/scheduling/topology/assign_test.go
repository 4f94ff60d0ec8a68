package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// allowed returns the zones that allow a pod of the profile; "-" stands for nodes without a zone. For other labels it
// uses domain 0, for example spot nodes.
func allowed(c *DomainCounts, p *Profile) string {
	var out []string
	for d, name := range []string{"a", "b", "c", "-"} {
		at := make([]int, len(p.Keys))
		for i, key := range p.Keys {
			if key == Zone {
				at[i] = d
			}
		}
		if c.Refusal(p, at) == nil {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// TestRefusal checks the allowed zones. In the names of its cases, others are pods of another app.
func TestRefusal(t *testing.T) {
	t.Parallel()
	web, db, webdb := pod("web"), pod("db"), pod("web", label("role", "db"))
	role := about(Zone, "db")
	role.Selector = cluster.Selector{Labels: requirements.Requirements{"role": requirements.OneOf("db")}}
	stranger := pod("web", namespace("other"))
	for name, c := range map[string]struct {
		pod       cluster.Pod
		residents []running
		want      string
	}{
		"spread: first pod in any zone, not on nodes without zone": {pod("web", spread(Zone, 1, "web")), nil, "a b c"},
		"spread: second pod in another zone": {pod("web", spread(Zone, 1, "web")),
			[]running{{web, "a", "", 1}}, "b c"},
		"spread: a skew of 2 allows 2": {pod("web", spread(Zone, 2, "web")),
			[]running{{web, "a", "", 1}}, "a b c"},
		"spread: a skew of 2 does not allow 3": {pod("web", spread(Zone, 2, "web")),
			[]running{{web, "a", "", 2}}, "b c"},
		"spread: only the zone without pods": {
			pod("web", spread(Zone, 1, "web")), []running{{web, "a", "", 9}, {web, "b", "", 1}}, "c",
		},
		"spread: equal zones": {
			pod("web", spread(Zone, 1, "web")), []running{{web, "a", "", 4}, {web, "b", "", 4}, {web, "c", "", 4}}, "a b c",
		},
		"spread: pods without zone or of other namespaces do not count": {
			pod("web", spread(Zone, 1, "web")), []running{{web, "", "", 3}, {stranger, "a", "", 3}, {db, "b", "", 3}}, "a b c",
		},
		"minDomains 3 with three zones": {
			pod("web", spread(Zone, 1, "web", minDomains(3))), []running{{web, "a", "", 1}, {web, "b", "", 1}, {web, "c", "", 1}}, "a b c",
		},
		"minDomains 4 with three zones": {
			pod("web", spread(Zone, 1, "web", minDomains(4))), []running{{web, "a", "", 1}, {web, "b", "", 1}, {web, "c", "", 1}}, "",
		},
		"spread of other pods: the pod itself does not count": {pod("web", spread(Zone, 1, "db")),
			[]running{{db, "a", "", 1}, {db, "b", "", 2}}, "a c"},
		"spread with an empty selector: no pod counts": {
			pod("web", spread(Zone, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} })), []running{{web, "a", "", 5}}, "a b c",
		},
		"preferred spread allows all": {pod("web", spread(Zone, 1, "web", soft)), []running{{web, "a", "", 5}}, "a b c -"},
		"two spreads: the second does not allow spot nodes": {
			pod("web", spread(Zone, 1, "web"), spread(capacityType, 1, "web")), []running{{web, "a", "spot", 1}}, "",
		},
		"spread over a label that no node has": {pod("web", spread("rack", 1, "web")), nil, ""},

		"affinity to others: none exist":                    {pod("web", near(about(Zone, "db"))), nil, ""},
		"affinity to others: their zone":                    {pod("web", near(about(Zone, "db"))), []running{{db, "b", "", 1}}, "b"},
		"affinity to others: they have no zone":             {pod("web", near(about(Zone, "db"))), []running{{db, "", "", 1}}, ""},
		"affinity to itself: first pod in any zone":         {pod("web", near(about(Zone, "web"))), nil, "a b c"},
		"affinity to itself: next pod in the same zone":     {pod("web", near(about(Zone, "web"))), []running{{web, "c", "", 1}}, "c"},
		"affinity to itself: other namespaces do not count": {pod("web", near(about(Zone, "web"))), []running{{stranger, "c", "", 1}}, "a b c"},
		"two terms: one pod must match both": {
			pod("web", near(about(Zone, "web"), role)), []running{{web, "a", "", 1},
				{pod("x", label("role", "db")), "a", "", 1}, {webdb, "b", "", 1}}, "b",
		},
		"two terms, the pod matches one: no exception for the first": {pod("web", near(about(Zone, "web"), role)), nil, ""},
		"two terms, the pod matches both: exception for the first": {pod("web", label("role", "db"),
			near(about(Zone, "web"), role)), nil, "a b c"},
		"two labels: first pod anywhere": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), nil, "a b c"},
		"two labels: a pod in both domains": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []running{{web, "a", "spot", 1}}, "a"},
		"two labels: different pods in the two domains": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []running{{web, "a", "od", 1}, {web, "b", "spot", 1}}, "a b"},
		"two labels: a matching pod ends the exception for the first": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []running{{web, "a", "", 1}}, ""},
		"preferred affinity allows all": {pod("web", near(weighted(100, about(Zone, "db")))),
			[]running{{db, "b", "", 1}}, "a b c -"},
		"affinity to itself, and a preference for absent pods": {pod("web",
			near(about(Zone, "web"), weighted(1, about(Zone, "db")))), nil, "a b c"},
		"affinity over a label that no node has": {pod("web", near(about("rack", "web"))), nil, ""},

		"volume: first pod in any zone": {pod("web", volume("default/data")), nil, "a b c"},
		"volume: first, with affinity":  {pod("web", volume("default/data"), near(about(Zone, "db"))), []running{{db, "b", "", 1}}, "b"},
		"volume: first, unmet affinity": {pod("web", volume("default/data"), near(about(Zone, "db"))), nil, ""},
		"volume: two unbound volumes":   {pod("web", volume("default/data", "default/logs")), nil, "a b c"},

		"anti-affinity to itself": {pod("web", away(about(Zone, "web"))), []running{{web, "a", "", 1}}, "b c -"},
		"anti-affinity to others": {pod("web", away(about(Zone, "db"))),
			[]running{{db, "a", "", 1}, {db, "c", "", 1}, {web, "b", "", 1}}, "b -"},
		"anti-affinity to a pod without zone":         {pod("web", away(about(Zone, "db"))), []running{{db, "", "", 1}}, "a b c -"},
		"preferred anti-affinity allows all":          {pod("web", away(weighted(9, about(Zone, "db")))), []running{{db, "a", "", 1}}, "a b c -"},
		"anti-affinity over a label that no node has": {pod("web", away(about("rack", "web"))), []running{{web, "a", "", 1}}, "a b c -"},
		"anti-affinity of residents to the pod":       {web, []running{{pod("db", away(about(Zone, "web"))), "a", "", 1}}, "b c -"},
		"anti-affinity of residents to others":        {stranger, []running{{pod("db", away(about(Zone, "web"))), "a", "", 1}}, "a b c -"},
		"anti-affinity of residents without zone":     {web, []running{{pod("db", away(about(Zone, "web"))), "", "", 1}}, "a b c -"},
		"preferred anti-affinity of residents": {
			web, []running{{pod("db", away(weighted(9, about(Zone, "web")))), "a", "", 1}}, "a b c -",
		},
	} {
		b := indexOf(avoiding(c.residents), c.pod)
		domainCounts := NewDomainCounts(b, domains)
		addResidents(domainCounts, b, c.residents)
		if got := allowed(domainCounts, &b.Profiles[b.ProfileOf[0]]); got != c.want {
			t.Errorf("%s: zones %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusalAmongPods checks that pods just added to the domain counts count like residents.
func TestRefusalAmongPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then cluster.Pod
		zone        string // zone of the first pod
		want        string // zones allowed for the second pod
	}{
		"anti-affinity of the first":               {pod("db", away(about(Zone, "web"))), pod("web"), "a", "b c -"},
		"anti-affinity of the first, without zone": {pod("db", away(about(Zone, "web"))), pod("web"), "", "a b c -"},
		"preferred anti-affinity of the first":     {pod("db", away(weighted(1, about(Zone, "web")))), pod("web"), "a", "a b c -"},
		"anti-affinity of the second":              {pod("db"), pod("web", away(about(Zone, "db"))), "b", "a c -"},
		"affinity of the second to the first":      {pod("db"), pod("web", near(about(Zone, "db"))), "b", "b"},
		"affinity of both to web":                  {pod("web", near(about(Zone, "web"))), pod("db", near(about(Zone, "web"))), "c", "c"},
		"shared volume":                            {pod("web", volume("default/data")), pod("db", volume("default/data")), "b", "b"},
		"shared volume, unmet affinity of the second": {
			pod("web", volume("default/data")), pod("db", volume("default/data"), near(about(Zone, "cache"))), "b", "",
		},
		"shared volume, affinity of the second to itself": {
			pod("web", volume("default/data")), pod("db", volume("default/data"), near(about(Zone, "db"))), "b", "b",
		},
		"different volumes":                             {pod("web", volume("default/data")), pod("web", volume("default/logs")), "b", "a b c"},
		"spread of the second counts the first":         {pod("web"), pod("web", spread(Zone, 1, "web")), "b", "a c"},
		"spread of the first does not limit the second": {pod("web", spread(Zone, 1, "web")), pod("web"), "b", "a b c -"},
	} {
		b := indexOf(nil, c.first, c.then)
		domainCounts := NewDomainCounts(b, domains)
		first := &b.Profiles[b.ProfileOf[0]]
		at := make([]int, len(first.Keys))
		for i, key := range first.Keys {
			at[i] = number(key, c.zone)
		}
		domainCounts.Add(first, at, 1)
		if got := allowed(domainCounts, &b.Profiles[b.ProfileOf[1]]); got != c.want {
			t.Errorf("%s: zones %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusalNames checks that Refusal returns the first required rule that is violated, and rules of other pods last.
func TestRefusalNames(t *testing.T) {
	t.Parallel()
	residents := []running{{pod("web", away(about(Zone, "web"))), "a", "", 1}, {pod("db"), "b", "", 1}}
	b := indexOf(avoiding(residents), pod("web", spread(Zone, 1, "web"), away(about(Zone, "db"))))
	p := &b.Profiles[b.ProfileOf[0]]
	c := NewDomainCounts(b, domains)
	addResidents(c, b, residents)
	for d, want := range []RuleKind{Spread, AntiAffinity} {
		if r := c.Refusal(p, []int{d}); r == nil || r.Kind != want {
			t.Errorf("in domain %d, Refusal = %+v, want a rule of kind %d", d, r, want)
		}
	}
	c.SetCounted(0, []bool{true, false, false}) // now only zone a counts, so the spread allows it
	group, ok := b.AntiAffinityGroup(&residents[0].pod.AntiAffinity[0])
	if r := c.Refusal(p, []int{0}); !ok || r == nil || r.Kind != AntiAffinity || r.Group != group {
		t.Errorf("Refusal = %+v, want the rule of the resident, of group %d", r, group)
	}
}

// TestAssign checks how many pods go to each place. The places are the zones a, b and c.
func TestAssign(t *testing.T) {
	t.Parallel()
	web, db := pod("web"), pod("db")
	even := pod("web", spread(Zone, 1, "web"))
	together := pod("web", near(about(Zone, "web")))
	prefersDB := pod("web", near(weighted(10, about(Zone, "db"))))
	prefersEven := pod("web", spread(Zone, 9, "web", soft))
	for name, c := range map[string]struct {
		pod       cluster.Pod
		residents []running
		n         int
		places    []Place
		want      []int
	}{
		"no pods":   {even, nil, 0, []Place{{Most: 1}}, []int{0}},
		"no places": {even, nil, 3, nil, []int{}},
		"no room":   {even, nil, 3, []Place{{Most: 0}, {Most: 0}}, []int{0, 0}},
		"spread: one more in the cheapest": {even, nil, 7,
			[]Place{{Most: 9, Price: 3}, {Most: 9, Price: 1}, {Most: 9, Price: 2}}, []int{2, 3, 2}},
		"spread: residents count": {even, []running{{web, "a", "", 2}}, 4,
			[]Place{{Most: 9}, {Most: 9}, {Most: 9}}, []int{0, 2, 2}},
		"spread: a full zone limits the others":            {even, nil, 7, []Place{{Most: 9}, {Most: 9}, {Most: 1}}, []int{2, 2, 1}},
		"spread: a zone without a place limits the others": {even, nil, 7, []Place{{Most: 9}, {Most: 9}}, []int{1, 1}},
		"spread: a place not allowed at first is used later": {even, []running{{web, "a", "", 1}}, 8,
			[]Place{{Most: 9, Free: 9}, {Most: 9}, {Most: 9}}, []int{2, 3, 3}},
		"spread of other pods: all allowed places": {pod("web", spread(Zone, 1, "db")),
			[]running{{db, "a", "", 2}}, 5, []Place{{Most: 9}, {Most: 9, Price: 2}, {Most: 9, Price: 1}}, []int{0, 0, 5}},
		"anti-affinity to itself: one in each": {pod("web", away(about(Zone, "web"))), nil, 5,
			[]Place{{Most: 9}, {Most: 9}, {Most: 9}}, []int{1, 1, 1}},
		"anti-affinity to others: all in the other places": {pod("web", away(about(Zone, "db"))),
			[]running{{db, "a", "", 1}}, 5, []Place{{Most: 9}, {Most: 2}, {Most: 9, Price: 1}}, []int{0, 2, 3}},
		"affinity to others: their zone": {pod("web", near(about(Zone, "db"))),
			[]running{{db, "b", "", 1}}, 5, []Place{{Most: 9}, {Most: 3}, {Most: 9}}, []int{0, 3, 0}},

		"affinity to itself: the place with room for all": {together, nil, 3,
			[]Place{{Most: 2, Free: 2}, {Most: 3, Price: 9}, {Most: 2}}, []int{0, 3, 0}},
		"affinity to itself: no place has room for all": {together, nil, 9,
			[]Place{{Most: 2, Price: 2}, {Most: 3, Price: 1}, {Most: 2, Price: 2}}, []int{0, 3, 0}},
		"affinity to itself: the place of residents": {together, []running{{web, "a", "", 1}}, 3,
			[]Place{{Most: 2}, {Most: 3}, {Most: 3}}, []int{2, 0, 0}},
		"preferred affinity: room for all does not matter": {pod("web", near(weighted(1, about(Zone, "web")))), nil, 3,
			[]Place{{Most: 2, Price: 1}, {Most: 3, Price: 2}}, []int{2, 1}},
		"free room comes first": {prefersDB, []running{{db, "a", "", 1}}, 5,
			[]Place{{Most: 9}, {Most: 9, Free: 2, Rank: 3, Price: 9}}, []int{3, 2}},
		"free room in two places": {prefersDB, []running{{db, "a", "", 1}}, 5,
			[]Place{{Most: 9, Free: 1}, {Most: 9, Free: 2}}, []int{3, 2}},
		"preferences before ranks": {prefersDB, []running{{db, "b", "", 1}}, 3,
			[]Place{{Most: 9}, {Most: 2, Rank: 1, Price: 9}}, []int{1, 2}},
		"preferred anti-affinity": {pod("web", away(weighted(1, about(Zone, "db")))),
			[]running{{db, "a", "", 1}}, 3, []Place{{Most: 9}, {Most: 2, Rank: 1}}, []int{1, 2}},
		"heavier of two preferences": {
			pod("web", near(weighted(10, about(Zone, "db")), weighted(11, about(Zone, "cache")))),
			[]running{{db, "a", "", 1}, {pod("cache"), "b", "", 1}}, 2, []Place{{Most: 9}, {Most: 9}}, []int{0, 2},
		},
		"two light preferences outweigh a heavy one": {
			pod("web", near(weighted(6, about(Zone, "db")), weighted(11, about(Zone, "cache"))), away(weighted(6, about(Zone, "cache")))),
			[]running{{db, "a", "", 1}, {pod("cache"), "b", "", 1}}, 2, []Place{{Most: 9}, {Most: 9}}, []int{2, 0},
		},
		"preferred spread: dropped without room": {pod("web", spread(Zone, 1, "web", soft)), nil, 5,
			[]Place{{Most: 9}, {Most: 1}, {Most: 1}}, []int{3, 1, 1}},
		"preferred spread: before ranks": {pod("web", spread(Zone, 1, "web", soft)), nil, 3,
			[]Place{{Most: 9}, {Most: 9, Rank: 1}, {Most: 9, Rank: 2}}, []int{1, 1, 1}},
		"preferred affinity: not satisfied without zone": {prefersDB, nil, 1,
			[]Place{{Most: 9, Domains: []int{3}}, {Most: 9, Price: 1}}, []int{1, 0}},
		"preferred anti-affinity: satisfied without zone": {pod("web", away(weighted(1, about(Zone, "db")))),
			[]running{{db, "b", "", 1}}, 1, []Place{{Most: 9, Domains: []int{3}, Price: 1}, {Most: 9}}, []int{1, 0}},
		"ranks before evenness": {prefersEven, nil, 4, []Place{{Most: 3}, {Most: 9, Rank: 1}}, []int{3, 1}},
		"evenness before prices": {prefersEven, []running{{web, "a", "", 2}}, 4,
			[]Place{{Most: 9}, {Most: 9, Price: 5}}, []int{1, 3}},
		"prices if all else is equal":        {prefersDB, nil, 4, []Place{{Most: 9, Price: 2}, {Most: 3, Price: 1}}, []int{1, 3}},
		"first place if everything is equal": {prefersDB, nil, 4, []Place{{Most: 9}, {Most: 9}}, []int{4, 0}},
	} {
		b := indexOf(avoiding(c.residents), c.pod)
		domainCounts := NewDomainCounts(b, domains)
		addResidents(domainCounts, b, c.residents)
		p := &b.Profiles[b.ProfileOf[0]]
		for i := range c.places {
			if c.places[i].Domains == nil {
				c.places[i].Domains = []int{i}
			}
		}
		if got := domainCounts.Assign(p, c.n, c.places); !slices.Equal(got, c.want) {
			t.Errorf("%s: assigned %v, want %v", name, got, c.want)
		}
	}
}

// TestAssignLoad checks that pods with affinity to their own app go to the domain with fewer assigned pods if the
// prices are equal. Other pods fill place after place.
func TestAssignLoad(t *testing.T) {
	t.Parallel()
	pods := []cluster.Pod{
		pod("web", away(about(Zone, "db"))), pod("queue", near(weighted(1, about(Zone, "absent")))), pod("cache", near(about(Zone, "cache"))),
	}
	for name, c := range map[string]struct {
		prices [2]float64
		want   [][]int // by pod and place: number of pods
	}{
		"equal prices":     {[2]float64{1, 1}, [][]int{{4, 0}, {4, 0}, {0, 4}}},
		"different prices": {[2]float64{1, 2}, [][]int{{4, 0}, {4, 0}, {4, 0}}},
	} {
		b := indexOf(nil, pods...)
		domainCounts := NewDomainCounts(b, domains)
		places := []Place{{Domains: []int{0}, Most: 9, Price: c.prices[0]}, {Domains: []int{1}, Most: 9, Price: c.prices[1]}}
		for i, want := range c.want {
			if got := domainCounts.Assign(&b.Profiles[b.ProfileOf[i]], 4, places); !slices.Equal(got, want) {
				t.Errorf("%s: pods of %s: assigned %v, want %v", name, pods[i].Labels["app"], got, want)
			}
		}
	}
}

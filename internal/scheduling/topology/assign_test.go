package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// allowed returns the zones that take a pod of the profile; "-" stands for nodes
// without the label. If other labels matter too, it uses their domain 0, such as spot nodes.
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

func TestRefusal(t *testing.T) {
	t.Parallel()
	web, db, webdb := pod("web"), pod("db"), pod("web", label("role", "db"))
	role := about(Zone, "db")
	role.Selector = cluster.Selector{Labels: requirements.Requirements{"role": requirements.OneOf("db")}}
	stranger := pod("web", namespace("other"))
	for name, c := range map[string]struct {
		pod   cluster.Pod
		there []standing
		want  string
	}{
		"spread: the first goes to any zone, and to none that is none": {pod("web", spread(Zone, 1, "web")), nil, "a b c"},
		"spread: the second goes to another": {pod("web", spread(Zone, 1, "web")),
			[]standing{{web, "a", "", 1}}, "b c"},
		"spread: a skew of 2 allows 2": {pod("web", spread(Zone, 2, "web")),
			[]standing{{web, "a", "", 1}}, "a b c"},
		"spread: but not 3": {pod("web", spread(Zone, 2, "web")),
			[]standing{{web, "a", "", 2}}, "b c"},
		"spread: a zone far ahead does not stop the others": {
			pod("web", spread(Zone, 1, "web")), []standing{{web, "a", "", 9}, {web, "b", "", 1}}, "c",
		},
		"spread: all are level": {
			pod("web", spread(Zone, 1, "web")), []standing{{web, "a", "", 4}, {web, "b", "", 4}, {web, "c", "", 4}}, "a b c",
		},
		"spread: who is nowhere, or a stranger, does not count": {
			pod("web", spread(Zone, 1, "web")), []standing{{web, "", "", 3}, {stranger, "a", "", 3}, {db, "b", "", 3}}, "a b c",
		},
		"minDomains: with three of three": {
			pod("web", spread(Zone, 1, "web", minDomains(3))), []standing{{web, "a", "", 1}, {web, "b", "", 1}, {web, "c", "", 1}}, "a b c",
		},
		"minDomains: with three of four every zone is one ahead": {
			pod("web", spread(Zone, 1, "web", minDomains(4))), []standing{{web, "a", "", 1}, {web, "b", "", 1}, {web, "c", "", 1}}, "",
		},
		"spread over others: the pod itself adds nothing": {pod("web", spread(Zone, 1, "db")),
			[]standing{{db, "a", "", 1}, {db, "b", "", 2}}, "a c"},
		"spread with an empty selector: nobody counts": {
			pod("web", spread(Zone, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} })), []standing{{web, "a", "", 5}}, "a b c",
		},
		"spread as a wish refuses nothing": {pod("web", spread(Zone, 1, "web", soft)), []standing{{web, "a", "", 5}}, "a b c -"},
		"two spreads: over ways of paying it is od's turn": {
			pod("web", spread(Zone, 1, "web"), spread(capacityType, 1, "web")), []standing{{web, "a", "spot", 1}}, "",
		},
		"spread over a label that no node has": {pod("web", spread("rack", 1, "web")), nil, ""},

		"near others: nobody is there":                {pod("web", near(about(Zone, "db"))), nil, ""},
		"near others: where they are":                 {pod("web", near(about(Zone, "db"))), []standing{{db, "b", "", 1}}, "b"},
		"near others: who is nowhere is near nobody":  {pod("web", near(about(Zone, "db"))), []standing{{db, "", "", 1}}, ""},
		"near itself: the first goes anywhere":        {pod("web", near(about(Zone, "web"))), nil, "a b c"},
		"near itself: the next goes there":            {pod("web", near(about(Zone, "web"))), []standing{{web, "c", "", 1}}, "c"},
		"near itself: another namespace's are others": {pod("web", near(about(Zone, "web"))), []standing{{stranger, "c", "", 1}}, "a b c"},
		"two terms: one pod must match both": {
			pod("web", near(about(Zone, "web"), role)), []standing{{web, "a", "", 1},
				{pod("x", label("role", "db")), "a", "", 1}, {webdb, "b", "", 1}}, "b",
		},
		"two terms, of which the pod matches one: it is not the first": {pod("web", near(about(Zone, "web"), role)), nil, ""},
		"two terms, of which it matches both: it may be the first": {pod("web", label("role", "db"),
			near(about(Zone, "web"), role)), nil, "a b c"},
		"two labels: the first": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), nil, "a b c"},
		"two labels: both must have one": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []standing{{web, "a", "spot", 1}}, "a"},
		"two labels: each by another will do": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []standing{{web, "a", "od", 1}, {web, "b", "spot", 1}}, "a b"},
		"two labels: one is somewhere by one of them, nobody is first": {pod("web",
			near(about(Zone, "web"), about(capacityType, "web"))), []standing{{web, "a", "", 1}}, ""},
		"near as a wish refuses nothing": {pod("web", near(wish(100, about(Zone, "db")))),
			[]standing{{db, "b", "", 1}}, "a b c -"},
		"near itself, besides a wish to be near others who are nowhere": {pod("web",
			near(about(Zone, "web"), wish(1, about(Zone, "db")))), nil, "a b c"},
		"near others over a label that no node has": {pod("web", near(about("rack", "web"))), nil, ""},

		"volume: the first goes to any zone": {pod("web", volume("default/data")), nil, "a b c"},
		"volume: the first, near others":     {pod("web", volume("default/data"), near(about(Zone, "db"))), []standing{{db, "b", "", 1}}, "b"},
		"volume: the first, near nobody":     {pod("web", volume("default/data"), near(about(Zone, "db"))), nil, ""},
		"volume: two of them, both new":      {pod("web", volume("default/data", "default/logs")), nil, "a b c"},

		"apart from itself": {pod("web", away(about(Zone, "web"))), []standing{{web, "a", "", 1}}, "b c -"},
		"apart from others": {pod("web", away(about(Zone, "db"))),
			[]standing{{db, "a", "", 1}, {db, "c", "", 1}, {web, "b", "", 1}}, "b -"},
		"apart: nowhere they do not meet":       {pod("web", away(about(Zone, "db"))), []standing{{db, "", "", 1}}, "a b c -"},
		"apart as a wish refuses nothing":       {pod("web", away(wish(100, about(Zone, "db")))), []standing{{db, "a", "", 1}}, "a b c -"},
		"apart over a label that no node has":   {pod("web", away(about("rack", "web"))), []standing{{web, "a", "", 1}}, "a b c -"},
		"residents avoid it":                    {web, []standing{{pod("db", away(about(Zone, "web"))), "a", "", 1}}, "b c -"},
		"residents avoid others":                {stranger, []standing{{pod("db", away(about(Zone, "web"))), "a", "", 1}}, "a b c -"},
		"residents that are nowhere avoid none": {web, []standing{{pod("db", away(about(Zone, "web"))), "", "", 1}}, "a b c -"},
		"residents would rather avoid it":       {web, []standing{{pod("db", away(wish(100, about(Zone, "web")))), "a", "", 1}}, "a b c -"},
	} {
		b := bookOf(avoiding(c.there), c.pod)
		domainCounts := NewDomainCounts(b, domains)
		settle(domainCounts, b, c.there)
		if got := allowed(domainCounts, &b.Profiles[b.Of[0]]); got != c.want {
			t.Errorf("%s: zones %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusalAmongPods checks that pods just added to the domain counts count like residents.
func TestRefusalAmongPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then cluster.Pod
		at          string // the zone of the first
		want        string // where the second may go
	}{
		"the first keeps the second away":           {pod("db", away(about(Zone, "web"))), pod("web"), "a", "b c -"},
		"from nowhere it keeps nobody away":         {pod("db", away(about(Zone, "web"))), pod("web"), "", "a b c -"},
		"it would rather":                           {pod("db", away(wish(1, about(Zone, "web")))), pod("web"), "a", "a b c -"},
		"the second keeps away from the first":      {pod("db"), pod("web", away(about(Zone, "db"))), "b", "a c -"},
		"it must be near the first":                 {pod("db"), pod("web", near(about(Zone, "db"))), "b", "b"},
		"both must be near web: the second follows": {pod("web", near(about(Zone, "web"))), pod("db", near(about(Zone, "web"))), "c", "c"},
		"they share a volume":                       {pod("web", volume("default/data")), pod("db", volume("default/data")), "b", "b"},
		"they share a volume, the second wants others": {
			pod("web", volume("default/data")), pod("db", volume("default/data"), near(about(Zone, "cache"))), "b", "",
		},
		"the second wants its like, and the volume of the first": {
			pod("web", volume("default/data")), pod("db", volume("default/data"), near(about(Zone, "db"))), "b", "b",
		},
		"the second's own volume is new": {pod("web", volume("default/data")), pod("web", volume("default/logs")), "b", "a b c"},
		"a spread counts the first":      {pod("web"), pod("web", spread(Zone, 1, "web")), "b", "a c"},
		"nobody binds who comes later":   {pod("web", spread(Zone, 1, "web")), pod("web"), "b", "a b c -"},
	} {
		b := bookOf(nil, c.first, c.then)
		domainCounts := NewDomainCounts(b, domains)
		first := &b.Profiles[b.Of[0]]
		at := make([]int, len(first.Keys))
		for i, key := range first.Keys {
			at[i] = number(key, c.at)
		}
		domainCounts.Add(first, at, 1)
		if got := allowed(domainCounts, &b.Profiles[b.Of[1]]); got != c.want {
			t.Errorf("%s: zones %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusalNames checks that Refusal returns the first required rule that is violated, and rules of other pods last.
func TestRefusalNames(t *testing.T) {
	t.Parallel()
	there := []standing{{pod("web", away(about(Zone, "web"))), "a", "", 1}, {pod("db"), "b", "", 1}}
	b := bookOf(avoiding(there), pod("web", spread(Zone, 1, "web"), away(about(Zone, "db"))))
	p := &b.Profiles[b.Of[0]]
	c := NewDomainCounts(b, domains)
	settle(c, b, there)
	for d, want := range []RuleKind{Spread, AntiAffinity} {
		if r := c.Refusal(p, []int{d}); r == nil || r.Kind != want {
			t.Errorf("in domain %d: %+v, want form %d", d, r, want)
		}
	}
	c.SetCounted(0, []bool{true, false, false}) // now only the zone of web counts
	mine, ok := b.AntiAffinityGroup(&there[0].pod.AntiAffinity[0])
	if r := c.Refusal(p, []int{0}); !ok || r == nil || r.Kind != AntiAffinity || r.Group != mine {
		t.Errorf("%+v, want the rule of the pod that is there, of group %d", r, mine)
	}
}

// TestAssign checks how many pods go to each place. The places are the zones a, b and c.
func TestAssign(t *testing.T) {
	t.Parallel()
	web, db := pod("web"), pod("db")
	even := pod("web", spread(Zone, 1, "web"))
	together := pod("web", near(about(Zone, "web")))
	fond := pod("web", near(wish(10, about(Zone, "db"))))
	loose := pod("web", spread(Zone, 9, "web", soft))
	for name, c := range map[string]struct {
		pod    cluster.Pod
		there  []standing
		n      int
		places []Place
		want   []int
	}{
		"no pods":   {even, nil, 0, []Place{{Most: 1}}, []int{0}},
		"no places": {even, nil, 3, nil, []int{}},
		"no room":   {even, nil, 3, []Place{{Most: 0}, {Most: 0}}, []int{0, 0}},
		"spread: the cheapest has one more": {even, nil, 7,
			[]Place{{Most: 9, Price: 3}, {Most: 9, Price: 1}, {Most: 9, Price: 2}}, []int{2, 3, 2}},
		"spread: who is there counts": {even, []standing{{web, "a", "", 2}}, 4,
			[]Place{{Most: 9}, {Most: 9}, {Most: 9}}, []int{0, 2, 2}},
		"spread: a full zone holds the others back":         {even, nil, 7, []Place{{Most: 9}, {Most: 9}, {Most: 1}}, []int{2, 2, 1}},
		"spread: zones without a place hold them back more": {even, nil, 7, []Place{{Most: 9}, {Most: 9}}, []int{1, 1}},
		"spread: what was refused at first comes in the end": {even, []standing{{web, "a", "", 1}}, 8,
			[]Place{{Most: 9, Free: 9}, {Most: 9}, {Most: 9}}, []int{2, 3, 3}},
		"spread over others: all that the skew lets in": {pod("web", spread(Zone, 1, "db")),
			[]standing{{db, "a", "", 2}}, 5, []Place{{Most: 9}, {Most: 9, Price: 2}, {Most: 9, Price: 1}}, []int{0, 0, 5}},
		"apart: one in each": {pod("web", away(about(Zone, "web"))), nil, 5,
			[]Place{{Most: 9}, {Most: 9}, {Most: 9}}, []int{1, 1, 1}},
		"apart from others: the rest takes all": {pod("web", away(about(Zone, "db"))),
			[]standing{{db, "a", "", 1}}, 5, []Place{{Most: 9}, {Most: 2}, {Most: 9, Price: 1}}, []int{0, 2, 3}},
		"near others: where they are": {pod("web", near(about(Zone, "db"))),
			[]standing{{db, "b", "", 1}}, 5, []Place{{Most: 9}, {Most: 3}, {Most: 9}}, []int{0, 3, 0}},

		"small: they must stay together, so where all have room": {together, nil, 3,
			[]Place{{Most: 2, Free: 2}, {Most: 3, Price: 9}, {Most: 2}}, []int{0, 3, 0}},
		"small: not all have room anywhere": {together, nil, 9,
			[]Place{{Most: 2, Price: 2}, {Most: 3, Price: 1}, {Most: 2, Price: 2}}, []int{0, 3, 0}},
		"small: where others are they must follow": {together, []standing{{web, "a", "", 1}}, 3,
			[]Place{{Most: 2}, {Most: 3}, {Most: 3}}, []int{2, 0, 0}},
		"small is nothing to a wish": {pod("web", near(wish(1, about(Zone, "web")))), nil, 3,
			[]Place{{Most: 2, Price: 1}, {Most: 3, Price: 2}}, []int{2, 1}},
		"free room comes first": {fond, []standing{{db, "a", "", 1}}, 5,
			[]Place{{Most: 9}, {Most: 9, Free: 2, Rank: 3, Price: 9}}, []int{3, 2}},
		"free room, twice": {fond, []standing{{db, "a", "", 1}}, 5,
			[]Place{{Most: 9, Free: 1}, {Most: 9, Free: 2}}, []int{3, 2}},
		"wishes come before ranks": {fond, []standing{{db, "b", "", 1}}, 3,
			[]Place{{Most: 9}, {Most: 2, Rank: 1, Price: 9}}, []int{1, 2}},
		"wishes to be apart": {pod("web", away(wish(1, about(Zone, "db")))),
			[]standing{{db, "a", "", 1}}, 3, []Place{{Most: 9}, {Most: 2, Rank: 1}}, []int{1, 2}},
		"the heavier of two wishes": {
			pod("web", near(wish(10, about(Zone, "db")), wish(11, about(Zone, "cache")))),
			[]standing{{db, "a", "", 1}, {pod("cache"), "b", "", 1}}, 2, []Place{{Most: 9}, {Most: 9}}, []int{0, 2},
		},
		"two light ones outweigh it": {
			pod("web", near(wish(6, about(Zone, "db")), wish(11, about(Zone, "cache"))), away(wish(6, about(Zone, "cache")))),
			[]standing{{db, "a", "", 1}, {pod("cache"), "b", "", 1}}, 2, []Place{{Most: 9}, {Most: 9}}, []int{2, 0},
		},
		"a wish to spread gives way where there is no room": {pod("web", spread(Zone, 1, "web", soft)), nil, 5,
			[]Place{{Most: 9}, {Most: 1}, {Most: 1}}, []int{3, 1, 1}},
		"a wish to spread comes before ranks": {pod("web", spread(Zone, 1, "web", soft)), nil, 3,
			[]Place{{Most: 9}, {Most: 9, Rank: 1}, {Most: 9, Rank: 2}}, []int{1, 1, 1}},
		"nowhere meets no wish": {fond, nil, 1,
			[]Place{{Most: 9, Domains: []int{3}}, {Most: 9, Price: 1}}, []int{1, 0}},
		"nowhere is apart": {pod("web", away(wish(1, about(Zone, "db")))),
			[]standing{{db, "b", "", 1}}, 1, []Place{{Most: 9, Domains: []int{3}, Price: 1}, {Most: 9}}, []int{1, 0}},
		"ranks come before evenness": {loose, nil, 4, []Place{{Most: 3}, {Most: 9, Rank: 1}}, []int{3, 1}},
		"evenness comes before prices": {loose, []standing{{web, "a", "", 2}}, 4,
			[]Place{{Most: 9}, {Most: 9, Price: 5}}, []int{1, 3}},
		"prices, when all else is equal": {fond, nil, 4, []Place{{Most: 9, Price: 2}, {Most: 3, Price: 1}}, []int{1, 3}},
		"the first, when everything is":  {fond, nil, 4, []Place{{Most: 9}, {Most: 9}}, []int{4, 0}},
	} {
		b := bookOf(avoiding(c.there), c.pod)
		domainCounts := NewDomainCounts(b, domains)
		settle(domainCounts, b, c.there)
		p := &b.Profiles[b.Of[0]]
		for i := range c.places {
			if c.places[i].Domains == nil {
				c.places[i].Domains = []int{i}
			}
		}
		if got := domainCounts.Assign(p, c.n, c.places); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestAssignLoad checks that pods with affinity to their own kind go to the domain with fewer
// assigned pods if the price is equal. Other pods fill place after place.
func TestAssignLoad(t *testing.T) {
	t.Parallel()
	pods := []cluster.Pod{
		pod("web", away(about(Zone, "db"))), pod("queue", near(wish(1, about(Zone, "nobody")))), pod("cache", near(about(Zone, "cache"))),
	}
	for name, c := range map[string]struct {
		prices [2]float64
		want   [][]int
	}{
		"at the same price":  {[2]float64{1, 1}, [][]int{{4, 0}, {4, 0}, {0, 4}}},
		"prices come before": {[2]float64{1, 2}, [][]int{{4, 0}, {4, 0}, {4, 0}}},
	} {
		b := bookOf(nil, pods...)
		domainCounts := NewDomainCounts(b, domains)
		places := []Place{{Domains: []int{0}, Most: 9, Price: c.prices[0]}, {Domains: []int{1}, Most: 9, Price: c.prices[1]}}
		for i, want := range c.want {
			if got := domainCounts.Assign(&b.Profiles[b.Of[i]], 4, places); !slices.Equal(got, want) {
				t.Errorf("%s: pods of %s: %v, want %v", name, pods[i].Labels["app"], got, want)
			}
		}
	}
}

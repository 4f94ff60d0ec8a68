package topology

import (
	"math"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// on is n pods that were just added to a node.
type on struct {
	pod cluster.Pod
	n   int
}

func TestTallyRoom(t *testing.T) {
	t.Parallel()
	const everywhere = math.MaxInt
	web, db := pod("web"), pod("db")
	three := pod("web", spread(Hostname, 3, "web"))
	strict, together := Limits{Strict: true}, Limits{Together: true}
	// Each of four nodes has two pods or more.
	two := Limits{Fewest: func(_, minDomains int) int {
		if minDomains > 4 {
			return 0
		}
		return 2
	}}
	for name, c := range map[string]struct {
		pod    cluster.Pod
		there  []on
		limits Limits
		want   int
	}{
		"whom no rule concerns":           {web, []on{{db, 5}}, Limits{}, everywhere},
		"rules over zones are no concern": {pod("web", spread(Zone, 1, "web"), away(about(Zone, "web"))), []on{{web, 5}}, Limits{}, everywhere},

		"spread: the skew, for there may be a new machine without any": {three, nil, Limits{}, 3},
		"spread: less those who are there":                             {three, []on{{three, 1}, {web, 1}}, Limits{}, 1},
		"spread: others are no concern":                                {three, []on{{db, 9}}, Limits{}, 3},
		"spread: strangers of the same name neither":                   {three, []on{{pod("web", namespace("other")), 9}}, Limits{}, 3},
		"spread: full": {three, []on{{three, 3}}, Limits{}, 0},
		"spread: overfull by those who do not care": {three, []on{{web, 7}}, Limits{}, 0},
		"spread: no node has fewer than two":        {three, []on{{web, 1}}, two, 4},
		"spread: no node has fewer, but there are not enough of them": {pod("web", spread(Hostname, 3, "web", minDomains(5))),
			[]on{{web, 1}}, two, 2},
		"spread: there are just enough": {pod("web", spread(Hostname, 3, "web", minDomains(4))),
			[]on{{web, 1}}, two, 4},
		"spread: the narrower of two": {pod("web", spread(Hostname, 3, "web"),
			spread(Hostname, 1, "web")), nil, Limits{}, 1},
		"spread over others: as many as like": {pod("web", spread(Hostname, 1, "db")), []on{{db, 1}},
			Limits{}, everywhere},
		"spread over others: too many of them":           {pod("web", spread(Hostname, 1, "db")), []on{{db, 2}}, Limits{}, 0},
		"spread over others: no node has fewer than two": {pod("web", spread(Hostname, 1, "db")), []on{{db, 3}}, two, everywhere},
		"spread with an empty selector: nobody counts": {
			pod("web", spread(Hostname, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} })), []on{{web, 9}}, Limits{}, everywhere,
		},
		"spread of those who are there binds who would be counted": {web, []on{{three, 1}}, Limits{}, 2},
		"the narrowest of theirs": {web,
			[]on{{three, 1}, {pod("web", spread(Hostname, 2, "web")), 1}}, Limits{}, 0},
		"the narrowest came first": {web,
			[]on{{pod("web", spread(Hostname, 2, "web")), 1}, {three, 1}}, Limits{}, 0},
		"theirs, where no node has fewer than two": {web, []on{{three, 1}}, two, 4},
		"theirs, when it is broken already":        {web, []on{{web, 5}, {three, 1}}, Limits{}, 0},
		"theirs binds no others":                   {db, []on{{three, 3}}, Limits{}, everywhere},
		"theirs as a preference binds no pod": {web,
			[]on{{pod("web", spread(Hostname, 1, "web", soft)), 4}}, strict, everywhere},
		"spread as a wish": {pod("web", spread(Hostname, 1, "web", soft)),
			[]on{{web, 4}}, Limits{}, everywhere},
		"spread as a wish that counts": {pod("web", spread(Hostname, 2, "web", soft)), []on{{web, 1}}, strict, 1},

		"apart from its like: one":           {pod("web", away(about(Hostname, "web"))), []on{{db, 3}}, Limits{}, 1},
		"apart from its like: there is one":  {pod("web", away(about(Hostname, "web"))), []on{{web, 1}}, Limits{}, 0},
		"apart from others":                  {pod("web", away(about(Hostname, "db"))), []on{{web, 3}}, Limits{}, everywhere},
		"apart from others: there is one":    {pod("web", away(about(Hostname, "db"))), []on{{db, 1}}, Limits{}, 0},
		"others keep away from it":           {web, []on{{pod("db", away(about(Hostname, "web"))), 1}}, Limits{}, 0},
		"others keep away from others":       {web, []on{{pod("db", away(about(Hostname, "cache"))), 1}}, Limits{}, everywhere},
		"others would rather keep away":      {web, []on{{pod("db", away(wish(100, about(Hostname, "web")))), 1}}, strict, everywhere},
		"apart as a wish":                    {pod("web", away(wish(1, about(Hostname, "web")))), []on{{web, 1}}, Limits{}, everywhere},
		"apart as a wish that counts":        {pod("web", away(wish(1, about(Hostname, "web")))), []on{{db, 1}}, strict, 1},
		"apart as a wish that is not met":    {pod("web", away(wish(1, about(Hostname, "web")))), []on{{web, 1}}, strict, 0},
		"a wish does not widen what is must": {pod("web", away(about(Hostname, "web")), spread(Hostname, 4, "web", soft)), nil, strict, 1},

		"near others":                          {pod("web", near(about(Hostname, "db"))), []on{{db, 1}}, Limits{}, everywhere},
		"near others: nobody is there":         {pod("web", near(about(Hostname, "db"))), []on{{web, 1}}, Limits{}, 0},
		"near others: they come too":           {pod("web", near(about(Hostname, "db"))), nil, together, everywhere},
		"near itself: who is first comes tied": {pod("web", near(about(Hostname, "web"))), nil, Limits{}, 0},
		"near itself: they come together":      {pod("web", near(about(Hostname, "web"))), nil, together, everywhere},
		"near two: one pod must be both": {pod("web", near(about(Hostname, "db"), about(Hostname, "cache"))),
			[]on{{db, 1}, {pod("cache"), 1}}, Limits{}, 0},
		"near as a wish, even one that counts": {pod("web", near(wish(1, about(Hostname, "db")))), nil, strict, everywhere},
		"together, but apart from its like":    {pod("web", near(about(Hostname, "db")), away(about(Hostname, "web"))), nil, together, 1},
		"near db, which keeps away from it": {
			pod("web", near(about(Hostname, "db"))), []on{{pod("db", away(about(Hostname, "web"))), 1}}, Limits{}, 0,
		},
	} {
		pods := []cluster.Pod{c.pod}
		for _, there := range c.there {
			pods = append(pods, there.pod)
		}
		b := bookOf(nil, pods...)
		var tally HostCounts
		for i, there := range c.there {
			tally.Add(&b.Profiles[b.Of[1+i]], there.n)
		}
		if got := tally.Room(b, &b.Profiles[b.Of[0]], c.limits); got != c.want {
			t.Errorf("%s: room for %d, want %d", name, got, c.want)
		}
	}
}

// TestTallyFewest checks that each rule of the pod asks for the minimum of its own group with its own minDomains.
// For the rules of pods that are on the node already, minDomains is not known any more.
func TestTallyFewest(t *testing.T) {
	t.Parallel()
	b := bookOf(nil,
		pod("web", spread(Hostname, 2, "web", minDomains(3)), spread(Hostname, 5, "db", minDomains(7))),
		pod("web"))
	type question struct{ group, minDomains int }
	var asked []question
	limits := Limits{Fewest: func(group, minDomains int) int {
		asked = append(asked, question{group, minDomains})
		return 0
	}}
	var tally HostCounts
	owner, other := &b.Profiles[b.Of[0]], &b.Profiles[b.Of[1]]
	tally.Room(b, owner, limits)
	if len(asked) != 2 || asked[0] != (question{0, 3}) || asked[1] != (question{1, 7}) {
		t.Errorf("asked %v, want group 0 with 3, group 1 with 7", asked)
	}
	asked = nil
	tally.Add(owner, 1)
	if got := tally.Room(b, other, limits); got != 1 || len(asked) != 1 || asked[0] != (question{0, 0}) {
		t.Errorf("room for %d, asked %v; want 1, group 0 with 0", got, asked)
	}
}

// TestTallyResidents adds pods that were there before the plan, of which only the groups are known.
func TestTallyResidents(t *testing.T) {
	t.Parallel()
	b := bookOf(nil, pod("web", away(about(Hostname, "db"))), pod("db"), pod("cache", near(about(Hostname, "db"))))
	web, db, cache := &b.Profiles[b.Of[0]], &b.Profiles[b.Of[1]], &b.Profiles[b.Of[2]]
	const apartFromDB, nearDB = 0, 1
	var tally HostCounts
	room := func() [3]int {
		return [3]int{tally.Room(b, web, Limits{}), tally.Room(b, db, Limits{}), tally.Room(b, cache, Limits{})}
	}
	if got, want := room(), [3]int{math.MaxInt, math.MaxInt, 0}; got != want {
		t.Errorf("an empty machine has room for %v, want %v", got, want)
	}
	tally.AddOwners(apartFromDB, 1)
	if got, want := room(), [3]int{math.MaxInt, 0, 0}; got != want {
		t.Errorf("beside one that keeps db away: %v, want %v", got, want)
	}
	clone := tally.Clone()
	tally = HostCounts{}
	for _, g := range []int{apartFromDB, nearDB} {
		tally.AddPods(g, 2)
	}
	if got, want := room(), [3]int{0, math.MaxInt, math.MaxInt}; got != want {
		t.Errorf("beside two db: %v, want %v", got, want)
	}
	if got := tally.Matched(nearDB); got != 2 {
		t.Errorf("%d db, want 2", got)
	}
	if got := clone.Room(b, db, Limits{}); got != 0 || clone.Matched(nearDB) != 0 {
		t.Errorf("the copy has room for %d db and has %d: want what it was copied from, 0 and 0", got, clone.Matched(nearDB))
	}
	more := clone.Clone()
	more.AddPods(apartFromDB, 1)
	if clone.Matched(apartFromDB) != 0 || more.Matched(apartFromDB) != 1 {
		t.Error("a copy is not by itself")
	}
}

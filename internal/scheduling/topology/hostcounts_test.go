package topology

import (
	"math"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// on has n pods that were added to a node.
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
		"no rule":               {web, []on{{db, 5}}, Limits{}, everywhere},
		"only rules over zones": {pod("web", spread(Zone, 1, "web"), away(about(Zone, "web"))), []on{{web, 5}}, Limits{}, everywhere},

		"spread: maxSkew, because an empty new node is possible": {three, nil, Limits{}, 3},
		"spread: minus the pods on the node":                     {three, []on{{three, 1}, {web, 1}}, Limits{}, 1},
		"spread: other apps do not count":                        {three, []on{{db, 9}}, Limits{}, 3},
		"spread: other namespaces do not count":                  {three, []on{{pod("web", namespace("other")), 9}}, Limits{}, 3},
		"spread: full":                                           {three, []on{{three, 3}}, Limits{}, 0},
		"spread: over the limit by pods without a spread":        {three, []on{{web, 7}}, Limits{}, 0},
		"spread: no node has fewer than two":                     {three, []on{{web, 1}}, two, 4},
		"spread: fewer nodes than minDomains": {pod("web", spread(Hostname, 3, "web", minDomains(5))),
			[]on{{web, 1}}, two, 2},
		"spread: as many nodes as minDomains": {pod("web", spread(Hostname, 3, "web", minDomains(4))),
			[]on{{web, 1}}, two, 4},
		"spread: stricter of two": {pod("web", spread(Hostname, 3, "web"),
			spread(Hostname, 1, "web")), nil, Limits{}, 1},
		"spread of other pods: unlimited": {pod("web", spread(Hostname, 1, "db")), []on{{db, 1}},
			Limits{}, everywhere},
		"spread of other pods: over the limit":             {pod("web", spread(Hostname, 1, "db")), []on{{db, 2}}, Limits{}, 0},
		"spread of other pods: no node has fewer than two": {pod("web", spread(Hostname, 1, "db")), []on{{db, 3}}, two, everywhere},
		"spread with an empty selector: no pod counts": {
			pod("web", spread(Hostname, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} })), []on{{web, 9}}, Limits{}, everywhere,
		},
		"spread of pods on the node limits pods that it counts": {web, []on{{three, 1}}, Limits{}, 2},
		"strictest spread of pods on the node": {web,
			[]on{{three, 1}, {pod("web", spread(Hostname, 2, "web")), 1}}, Limits{}, 0},
		"strictest spread of pods on the node, added first": {web,
			[]on{{pod("web", spread(Hostname, 2, "web")), 1}, {three, 1}}, Limits{}, 0},
		"spread of pods on the node, no node has fewer than two": {web, []on{{three, 1}}, two, 4},
		"spread of pods on the node, already violated":           {web, []on{{web, 5}, {three, 1}}, Limits{}, 0},
		"spread of pods on the node does not limit other pods":   {db, []on{{three, 3}}, Limits{}, everywhere},
		"preferred spread of pods on the node limits no pod": {web,
			[]on{{pod("web", spread(Hostname, 1, "web", soft)), 4}}, strict, everywhere},
		"preferred spread": {pod("web", spread(Hostname, 1, "web", soft)),
			[]on{{web, 4}}, Limits{}, everywhere},
		"preferred spread, strict": {pod("web", spread(Hostname, 2, "web", soft)), []on{{web, 1}}, strict, 1},

		"anti-affinity to itself: room for one": {pod("web", away(about(Hostname, "web"))), []on{{db, 3}}, Limits{}, 1},
		"anti-affinity to itself: one is there": {pod("web", away(about(Hostname, "web"))), []on{{web, 1}}, Limits{}, 0},
		"anti-affinity to others":               {pod("web", away(about(Hostname, "db"))), []on{{web, 3}}, Limits{}, everywhere},
		"anti-affinity to others: one is there": {pod("web", away(about(Hostname, "db"))), []on{{db, 1}}, Limits{}, 0},
		"anti-affinity of others to the pod":    {web, []on{{pod("db", away(about(Hostname, "web"))), 1}}, Limits{}, 0},
		"anti-affinity of others to others":     {web, []on{{pod("db", away(about(Hostname, "cache"))), 1}}, Limits{}, everywhere},
		"preferred anti-affinity of others":     {web, []on{{pod("db", away(wish(100, about(Hostname, "web")))), 1}}, strict, everywhere},
		"preferred anti-affinity":               {pod("web", away(wish(1, about(Hostname, "web")))), []on{{web, 1}}, Limits{}, everywhere},
		"preferred anti-affinity, strict":       {pod("web", away(wish(1, about(Hostname, "web")))), []on{{db, 1}}, strict, 1},
		"preferred anti-affinity, strict, one":  {pod("web", away(wish(1, about(Hostname, "web")))), []on{{web, 1}}, strict, 0},
		"preference and requirement":            {pod("web", away(about(Hostname, "web")), spread(Hostname, 4, "web", soft)), nil, strict, 1},

		"affinity to others":                  {pod("web", near(about(Hostname, "db"))), []on{{db, 1}}, Limits{}, everywhere},
		"affinity to others: none is there":   {pod("web", near(about(Hostname, "db"))), []on{{web, 1}}, Limits{}, 0},
		"affinity to others: placed together": {pod("web", near(about(Hostname, "db"))), nil, together, everywhere},
		"affinity to itself: first pod alone": {pod("web", near(about(Hostname, "web"))), nil, Limits{}, 0},
		"affinity to itself: placed together": {pod("web", near(about(Hostname, "web"))), nil, together, everywhere},
		"two affinities: one pod must match both": {pod("web", near(about(Hostname, "db"), about(Hostname, "cache"))),
			[]on{{db, 1}, {pod("cache"), 1}}, Limits{}, 0},
		"preferred affinity, strict":               {pod("web", near(wish(1, about(Hostname, "db")))), nil, strict, everywhere},
		"placed together, anti-affinity to itself": {pod("web", near(about(Hostname, "db")), away(about(Hostname, "web"))), nil, together, 1},
		"affinity to db, which has anti-affinity to the pod": {
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

// TestTallyFewest checks that each rule of the pod calls Fewest with its own group and its own minDomains.
// For the rules of pods on the node, minDomains is unknown.
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
		t.Errorf("Fewest was called with %v, want group 0 with 3, group 1 with 7", asked)
	}
	asked = nil
	tally.Add(owner, 1)
	if got := tally.Room(b, other, limits); got != 1 || len(asked) != 1 || asked[0] != (question{0, 0}) {
		t.Errorf("room for %d, Fewest was called with %v; want 1, group 0 with 0", got, asked)
	}
}

// TestTallyResidents checks counts of residents, of which only the groups are known.
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
		t.Errorf("an empty node has room for %v, want %v", got, want)
	}
	tally.AddOwners(apartFromDB, 1)
	if got, want := room(), [3]int{math.MaxInt, 0, 0}; got != want {
		t.Errorf("beside a pod with anti-affinity to db: room for %v, want %v", got, want)
	}
	clone := tally.Clone()
	tally = HostCounts{}
	for _, g := range []int{apartFromDB, nearDB} {
		tally.AddPods(g, 2)
	}
	if got, want := room(), [3]int{0, math.MaxInt, math.MaxInt}; got != want {
		t.Errorf("beside two db: room for %v, want %v", got, want)
	}
	if got := tally.Matched(nearDB); got != 2 {
		t.Errorf("the node has %d db, want 2", got)
	}
	if got := clone.Room(b, db, Limits{}); got != 0 || clone.Matched(nearDB) != 0 {
		t.Errorf("the copy has room for %d db and has %d, want 0 and 0 like the original", got, clone.Matched(nearDB))
	}
	more := clone.Clone()
	more.AddPods(apartFromDB, 1)
	if clone.Matched(apartFromDB) != 0 || more.Matched(apartFromDB) != 1 {
		t.Error("a change of the copy changed the original")
	}
}

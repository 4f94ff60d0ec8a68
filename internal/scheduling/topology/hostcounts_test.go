package topology

import (
	"math"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
)

// onNode has n pods that were added to a node.
type onNode struct {
	pod cluster.Pod
	n   int
}

func TestHostCountsRoom(t *testing.T) {
	t.Parallel()
	const unlimited = math.MaxInt
	web, db := pod("web"), pod("db")
	three := pod("web", spread(Hostname, 3, "web"))
	strict, together := Limits{Strict: true}, Limits{Together: true}
	// Each of four nodes has two pods or more.
	twoEach := Limits{Fewest: func(_, minDomains int) int {
		if minDomains > 4 {
			return 0
		}
		return 2
	}}
	for name, c := range map[string]struct {
		pod    cluster.Pod
		onNode []onNode
		limits Limits
		want   int
	}{
		"no rule":               {web, []onNode{{db, 5}}, Limits{}, unlimited},
		"only rules over zones": {pod("web", spread(Zone, 1, "web"), away(about(Zone, "web"))), []onNode{{web, 5}}, Limits{}, unlimited},

		"spread: maxSkew, because an empty new node is possible": {three, nil, Limits{}, 3},
		"spread: minus the pods on the node":                     {three, []onNode{{three, 1}, {web, 1}}, Limits{}, 1},
		"spread: other apps do not count":                        {three, []onNode{{db, 9}}, Limits{}, 3},
		"spread: other namespaces do not count":                  {three, []onNode{{pod("web", namespace("other")), 9}}, Limits{}, 3},
		"spread: full":                                           {three, []onNode{{three, 3}}, Limits{}, 0},
		"spread: over the limit by pods without a spread":        {three, []onNode{{web, 7}}, Limits{}, 0},
		"spread: no node has fewer than two":                     {three, []onNode{{web, 1}}, twoEach, 4},
		"spread: fewer nodes than minDomains": {pod("web", spread(Hostname, 3, "web", minDomains(5))),
			[]onNode{{web, 1}}, twoEach, 2},
		"spread: as many nodes as minDomains": {pod("web", spread(Hostname, 3, "web", minDomains(4))),
			[]onNode{{web, 1}}, twoEach, 4},
		"spread: stricter of two": {pod("web", spread(Hostname, 3, "web"),
			spread(Hostname, 1, "web")), nil, Limits{}, 1},
		"spread of other pods: unlimited": {pod("web", spread(Hostname, 1, "db")), []onNode{{db, 1}},
			Limits{}, unlimited},
		"spread of other pods: over the limit":             {pod("web", spread(Hostname, 1, "db")), []onNode{{db, 2}}, Limits{}, 0},
		"spread of other pods: no node has fewer than two": {pod("web", spread(Hostname, 1, "db")), []onNode{{db, 3}}, twoEach, unlimited},
		"spread with an empty selector: no pod counts": {
			pod("web", spread(Hostname, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} })),
			[]onNode{{web, 9}}, Limits{}, unlimited,
		},
		"spread of pods on the node limits pods that it counts": {web, []onNode{{three, 1}}, Limits{}, 2},
		"strictest spread of pods on the node": {web,
			[]onNode{{three, 1}, {pod("web", spread(Hostname, 2, "web")), 1}}, Limits{}, 0},
		"strictest spread of pods on the node, added first": {web,
			[]onNode{{pod("web", spread(Hostname, 2, "web")), 1}, {three, 1}}, Limits{}, 0},
		"spread of pods on the node, no node has fewer than two": {web, []onNode{{three, 1}}, twoEach, 4},
		"spread of pods on the node, already violated":           {web, []onNode{{web, 5}, {three, 1}}, Limits{}, 0},
		"spread of pods on the node does not limit other pods":   {db, []onNode{{three, 3}}, Limits{}, unlimited},
		"preferred spread of pods on the node limits no pod": {web,
			[]onNode{{pod("web", spread(Hostname, 1, "web", soft)), 4}}, strict, unlimited},
		"preferred spread": {pod("web", spread(Hostname, 1, "web", soft)),
			[]onNode{{web, 4}}, Limits{}, unlimited},
		"preferred spread, strict": {pod("web", spread(Hostname, 2, "web", soft)), []onNode{{web, 1}}, strict, 1},

		"anti-affinity to itself: room for one": {pod("web", away(about(Hostname, "web"))), []onNode{{db, 3}}, Limits{}, 1},
		"anti-affinity to itself: one is there": {pod("web", away(about(Hostname, "web"))), []onNode{{web, 1}}, Limits{}, 0},
		"anti-affinity to others":               {pod("web", away(about(Hostname, "db"))), []onNode{{web, 3}}, Limits{}, unlimited},
		"anti-affinity to others: one is there": {pod("web", away(about(Hostname, "db"))), []onNode{{db, 1}}, Limits{}, 0},
		"anti-affinity of others to the pod":    {web, []onNode{{pod("db", away(about(Hostname, "web"))), 1}}, Limits{}, 0},
		"anti-affinity of others to others":     {web, []onNode{{pod("db", away(about(Hostname, "cache"))), 1}}, Limits{}, unlimited},
		"preferred anti-affinity of others":     {web, []onNode{{pod("db", away(weighted(100, about(Hostname, "web")))), 1}}, strict, unlimited},
		"preferred anti-affinity":               {pod("web", away(weighted(1, about(Hostname, "web")))), []onNode{{web, 1}}, Limits{}, unlimited},
		"preferred anti-affinity, strict":       {pod("web", away(weighted(1, about(Hostname, "web")))), []onNode{{db, 1}}, strict, 1},
		"preferred anti-affinity, strict: one":  {pod("web", away(weighted(1, about(Hostname, "web")))), []onNode{{web, 1}}, strict, 0},
		"preference and requirement":            {pod("web", away(about(Hostname, "web")), spread(Hostname, 4, "web", soft)), nil, strict, 1},

		"affinity to others":                  {pod("web", near(about(Hostname, "db"))), []onNode{{db, 1}}, Limits{}, unlimited},
		"affinity to others: none is there":   {pod("web", near(about(Hostname, "db"))), []onNode{{web, 1}}, Limits{}, 0},
		"affinity to others: placed together": {pod("web", near(about(Hostname, "db"))), nil, together, unlimited},
		"affinity to itself: first pod alone": {pod("web", near(about(Hostname, "web"))), nil, Limits{}, 0},
		"affinity to itself: placed together": {pod("web", near(about(Hostname, "web"))), nil, together, unlimited},
		"two affinities: one pod must match both": {pod("web", near(about(Hostname, "db"), about(Hostname, "cache"))),
			[]onNode{{db, 1}, {pod("cache"), 1}}, Limits{}, 0},
		"preferred affinity, strict":               {pod("web", near(weighted(1, about(Hostname, "db")))), nil, strict, unlimited},
		"placed together, anti-affinity to itself": {pod("web", near(about(Hostname, "db")), away(about(Hostname, "web"))), nil, together, 1},
		"affinity to db, which has anti-affinity to the pod": {
			pod("web", near(about(Hostname, "db"))), []onNode{{pod("db", away(about(Hostname, "web"))), 1}}, Limits{}, 0,
		},
	} {
		pods := []cluster.Pod{c.pod}
		for _, p := range c.onNode {
			pods = append(pods, p.pod)
		}
		b := indexOf(nil, pods...)
		var hostCounts HostCounts
		for i, p := range c.onNode {
			hostCounts.Add(&b.Profiles[b.ProfileOf[1+i]], p.n)
		}
		if got := hostCounts.Room(b, &b.Profiles[b.ProfileOf[0]], c.limits); got != c.want {
			t.Errorf("%s: room for %d, want %d", name, got, c.want)
		}
	}
}

// TestHostCountsFewest checks that each rule of the pod calls Fewest with its own group and its own minDomains.
// For the rules of pods on the node, minDomains is unknown.
func TestHostCountsFewest(t *testing.T) {
	t.Parallel()
	b := indexOf(nil,
		pod("web", spread(Hostname, 2, "web", minDomains(3)), spread(Hostname, 5, "db", minDomains(7))),
		pod("web"))
	type call struct{ group, minDomains int }
	var calls []call
	limits := Limits{Fewest: func(group, minDomains int) int {
		calls = append(calls, call{group, minDomains})
		return 0
	}}
	var hostCounts HostCounts
	owner, other := &b.Profiles[b.ProfileOf[0]], &b.Profiles[b.ProfileOf[1]]
	hostCounts.Room(b, owner, limits)
	if len(calls) != 2 || calls[0] != (call{0, 3}) || calls[1] != (call{1, 7}) {
		t.Errorf("Fewest was called with %v, want group 0 with 3, group 1 with 7", calls)
	}
	calls = nil
	hostCounts.Add(owner, 1)
	if got := hostCounts.Room(b, other, limits); got != 1 || len(calls) != 1 || calls[0] != (call{0, 0}) {
		t.Errorf("room for %d, Fewest was called with %v; want 1, group 0 with 0", got, calls)
	}
}

// TestHostCountsResidents checks the room after AddPods and AddOwners, which count residents by group.
func TestHostCountsResidents(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", away(about(Hostname, "db"))), pod("db"), pod("cache", near(about(Hostname, "db"))))
	web, db, cache := &b.Profiles[b.ProfileOf[0]], &b.Profiles[b.ProfileOf[1]], &b.Profiles[b.ProfileOf[2]]
	const apartFromDB, nearDB = 0, 1
	var hostCounts HostCounts
	room := func() [3]int {
		return [3]int{hostCounts.Room(b, web, Limits{}), hostCounts.Room(b, db, Limits{}), hostCounts.Room(b, cache, Limits{})}
	}
	if got, want := room(), [3]int{math.MaxInt, math.MaxInt, 0}; got != want {
		t.Errorf("an empty node has room for %v, want %v", got, want)
	}
	hostCounts.AddOwners(apartFromDB, 1)
	if got, want := room(), [3]int{math.MaxInt, 0, 0}; got != want {
		t.Errorf("beside a pod with anti-affinity to db: room for %v, want %v", got, want)
	}
	clone := hostCounts.Clone()
	hostCounts = HostCounts{}
	for _, g := range []int{apartFromDB, nearDB} {
		hostCounts.AddPods(g, 2)
	}
	if got, want := room(), [3]int{0, math.MaxInt, math.MaxInt}; got != want {
		t.Errorf("beside two db: room for %v, want %v", got, want)
	}
	if got := hostCounts.Matched(nearDB); got != 2 {
		t.Errorf("the node has %d db, want 2", got)
	}
	if got := clone.Room(b, db, Limits{}); got != 0 || clone.Matched(nearDB) != 0 {
		t.Errorf("the copy has room for %d db and has %d, want 0 and 0 like the original", got, clone.Matched(nearDB))
	}
	more := clone.Clone()
	more.AddPods(apartFromDB, 1)
	if clone.Matched(apartFromDB) != 0 || more.Matched(apartFromDB) != 1 {
		t.Error("a change of the copy changed the original, want only the copy changed")
	}
}

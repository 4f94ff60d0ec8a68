package topology

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

const capacityType = "karpenter.sh/capacity-type"

// pod returns a pod of an app; edit adds its rules.
func pod(app string, edit ...func(*cluster.Pod)) cluster.Pod {
	p := cluster.Pod{Namespace: "default", Labels: requirements.Labels{"app": app}}
	for _, e := range edit {
		e(&p)
	}
	return p
}

// apps returns a selector of the pods of these apps.
func apps(names ...string) cluster.Selector {
	return cluster.Selector{Labels: requirements.Requirements{"app": requirements.OneOf(names...)}}
}

// about returns a required term about the pods of an app.
func about(key, app string) cluster.Term {
	return cluster.Term{Key: key, Namespaces: []string{"default"}, Selector: apps(app)}
}

func weighted(weight int, t cluster.Term) cluster.Term {
	t.Weight = weight
	return t
}

func near(terms ...cluster.Term) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Affinity = append(p.Affinity, terms...) }
}

func away(terms ...cluster.Term) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.AntiAffinity = append(p.AntiAffinity, terms...) }
}

// spread adds a spread constraint over a label that counts the pods of an app.
func spread(key string, maxSkew int, app string, edit ...func(*cluster.Spread)) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		s := cluster.Spread{Key: key, MaxSkew: maxSkew, Selector: apps(app)}
		for _, e := range edit {
			e(&s)
		}
		p.Spread = append(p.Spread, s)
	}
}

func soft(s *cluster.Spread) { s.Soft = true }

func minDomains(n int) func(*cluster.Spread) { return func(s *cluster.Spread) { s.MinDomains = n } }

func label(key, value string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Labels[key] = value }
}

func volume(claims ...string) func(*cluster.Pod) { return func(p *cluster.Pod) { p.Volumes = claims } }

func namespace(name string) func(*cluster.Pod) { return func(p *cluster.Pod) { p.Namespace = name } }

// indexOf returns the Index of the pods, which all have the same signature.
func indexOf(residents []cluster.Resident, pods ...cluster.Pod) *Index {
	wanted := make([]PodRef, len(pods))
	for i := range pods {
		wanted[i] = PodRef{Pod: &pods[i]}
	}
	return NewIndex(wanted, residents, nil)
}

func TestNewIndex(t *testing.T) {
	t.Parallel()
	avoidsWeb := []cluster.Resident{{PodKind: &cluster.PodKind{RequiredAntiAffinity: []cluster.Term{about(Zone, "web")}}, Count: 1}}
	everywhere := about(Zone, "web")
	everywhere.Namespaces, everywhere.AllNamespaces = nil, true
	for name, c := range map[string]struct {
		pods      []cluster.Pod
		residents []cluster.Resident
		groups    int
		profileOf []int
	}{
		"pods without rules": {
			[]cluster.Pod{pod("web"), pod("db")}, nil, 0, []int{Plain, Plain},
		},
		"equal pods share a profile and a group": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web")), pod("db"), pod("web", spread(Zone, 1, "web"))}, nil, 1, []int{1, Plain, 1},
		},
		"labels that no selector uses do not change the profile": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web")), pod("web", label("hash", "1"), spread(Zone, 1, "web"))}, nil, 1, []int{1, 1},
		},
		"pods that others count have a profile": {
			[]cluster.Pod{pod("web", near(about(Zone, "db"))), pod("db"), pod("cache")}, nil, 1, []int{1, 2, Plain},
		},
		"different maxSkew: two profiles, one group": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web")), pod("web", spread(Zone, 2, "web"))}, nil, 1, []int{1, 2},
		},
		"different minDomains: two profiles, one group": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web")), pod("web", spread(Zone, 1, "web", minDomains(2)))}, nil, 1, []int{1, 2},
		},
		"required and preferred: two profiles, one group": {
			[]cluster.Pod{pod("web", away(about(Zone, "web"))), pod("web", away(weighted(5, about(Zone, "web"))))}, nil, 1, []int{1, 2},
		},
		"a spread counts the pods of its own namespace": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web")), pod("web", namespace("other"), spread(Zone, 1, "web"))}, nil, 2, []int{1, 2},
		},
		"different topology keys: two groups": {
			[]cluster.Pod{pod("web", spread(Zone, 1, "web"), spread(capacityType, 1, "web"))}, nil, 2, []int{1},
		},
		"different node policies: different groups": {
			[]cluster.Pod{
				pod("web", spread(Zone, 1, "web"), spread(Zone, 1, "web", func(s *cluster.Spread) { s.IgnoresNodeAffinity = true })),
				pod("web", spread(Zone, 1, "web", func(s *cluster.Spread) { s.HonorTaints = true })),
			}, nil, 3, []int{1, 2},
		},
		"required affinity: one group per label; each preference has its own": {
			[]cluster.Pod{pod("web",
				near(about(Zone, "db"), about(Zone, "cache"), weighted(1, about(Zone, "db")), weighted(2, about(Zone, "cache"))))},
			nil, 3, []int{1},
		},
		"affinity and anti-affinity: two groups": {
			[]cluster.Pod{pod("web", near(about(Zone, "web")), away(about(Zone, "web")))}, nil, 2, []int{1},
		},
		"all namespaces and one namespace: two groups": {
			[]cluster.Pod{pod("web", away(about(Zone, "web"), everywhere))}, nil, 2, []int{1},
		},
		"anti-affinity of residents": {
			[]cluster.Pod{pod("web"), pod("db"), pod("web", namespace("other"))}, avoidsWeb, 1, []int{1, Plain, Plain},
		},
		"two pods share a volume, one has its own": {
			[]cluster.Pod{pod("web", volume("a/data")), pod("db", volume("a/data")), pod("web", volume("a/logs"))}, nil, 2, []int{1, 1, 2},
		},
	} {
		b := indexOf(c.residents, c.pods...)
		if len(b.Groups) != c.groups || !slices.Equal(b.ProfileOf, c.profileOf) {
			t.Errorf("%s: %d groups, profiles %v; want %d, %v", name, len(b.Groups), b.ProfileOf, c.groups, c.profileOf)
		}
		again := indexOf(c.residents, c.pods...)
		if !reflect.DeepEqual(b.Groups, again.Groups) || !reflect.DeepEqual(b.Profiles, again.Profiles) {
			t.Errorf("%s: a second index of the same pods differs, want an equal one", name)
		}
	}
}

// TestGroupsBySignature checks that pods with different signatures have different groups for a spread, because a spread
// counts only nodes that its owner accepts. For affinity they share a group.
func TestGroupsBySignature(t *testing.T) {
	t.Parallel()
	p := pod("web", spread(Zone, 1, "web"), near(about(Zone, "web")))
	b := NewIndex([]PodRef{{&p, 0}, {&p, 1}, {&p, 0}}, nil, nil)
	if got, want := b.ProfileOf, []int{1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("profiles %v, want %v", got, want)
	}
	want := []Group{
		{Kind: Spread, Key: Zone, Signature: 0, Hard: true},
		{Kind: Affinity, Key: Zone, Signature: -1, Hard: true},
		{Kind: Spread, Key: Zone, Signature: 1, Hard: true},
	}
	if diff := cmp.Diff(want, b.Groups, cmpopts.IgnoreUnexported(Group{})); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	// The spreads of both signatures count the pods of both.
	if got := b.Profiles[1].In; !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("groups %v count the pods of the first signature, want 0, 1 and 2", got)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	emptySelector := func(s *cluster.Spread) { s.Selector = cluster.Selector{} }
	for name, c := range map[string]struct {
		pod  cluster.Pod
		want []Rule
	}{
		"spread that counts the pod": {
			pod("web", spread(Zone, 2, "web", minDomains(3))), []Rule{{Kind: Spread, Self: true, MaxSkew: 2, MinDomains: 3}},
		},
		"invalid maxSkew 0 means 1": {pod("web", spread(Zone, 0, "web")), []Rule{{Kind: Spread, Self: true, MaxSkew: 1}}},
		"preferred spread": {
			pod("web", spread(Zone, 1, "web", soft)), []Rule{{Kind: Spread, Self: true, MaxSkew: 1, Weight: 1}},
		},
		"spread of other pods":          {pod("web", spread(Zone, 1, "db")), []Rule{{Kind: Spread, MaxSkew: 1}}},
		"spread with an empty selector": {pod("web", spread(Zone, 1, "", emptySelector)), []Rule{{Kind: Spread, MaxSkew: 1}}},
		"affinity with an empty selector": {
			pod("web", near(cluster.Term{Key: Zone, AllNamespaces: true})), []Rule{{Kind: Affinity, Self: true}},
		},
		"one of two required terms selects the pod": {
			pod("web", near(about(Zone, "web"), about(capacityType, "db"))), []Rule{{Kind: Affinity}, {Kind: Affinity, Group: 1}},
		},
		"preferred affinity is a separate rule": {
			pod("web", near(about(Zone, "db"), weighted(7, about(Zone, "web")))),
			[]Rule{{Kind: Affinity}, {Kind: Affinity, Group: 1, Self: true, Weight: 7}},
		},
		"anti-affinity": {pod("web", away(about(Zone, "web"), weighted(9, about(Zone, "db")))),
			[]Rule{{Kind: AntiAffinity, Self: true}, {Kind: AntiAffinity, Group: 1, Weight: 9}}},
		"a volume": {pod("web", volume("default/data")), []Rule{{Kind: Affinity, Self: true, Volume: true}}},
	} {
		b := indexOf(nil, c.pod)
		if diff := cmp.Diff(c.want, b.Profiles[b.ProfileOf[0]].Domain, cmpopts.IgnoreUnexported(Rule{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestProfile checks that rules over host names are separate, and that only labels of the pod's rules and of hard
// groups are keys.
func TestProfile(t *testing.T) {
	t.Parallel()
	b := indexOf(nil,
		pod("web", spread(Hostname, 1, "web"), spread(Zone, 1, "web"), near(weighted(3, about(capacityType, "db")))),
		pod("db", near(about(Hostname, "web"))),
		pod("cache"))
	web, db := &b.Profiles[b.ProfileOf[0]], &b.Profiles[b.ProfileOf[1]]
	if want := []string{capacityType, Zone}; !slices.Equal(web.Keys, want) {
		t.Errorf("the keys of web are %v, want %v: the labels of the spread and of the preference", web.Keys, want)
	}
	if len(db.Keys) != 0 || len(db.In) != 1 || len(db.Host) != 1 || len(db.HostIn) != 0 {
		t.Errorf("db: %+v; want no key for a preference of other pods, and one rule over host names", db)
	}
	if len(web.Host) != 1 || len(web.Domain) != 2 || len(web.HostIn) != 2 || len(web.In) != 1 {
		t.Errorf("web: %+v; want one of its three rules over host names, and two groups over host names that count it", web)
	}
	if web.HasRequiredHostAffinity() || !db.HasRequiredHostAffinity() {
		t.Error("want required host affinity for db, and not for web")
	}
	if web.IsPlain() || db.IsPlain() || b.ProfileOf[2] != Plain || !b.Profiles[Plain].IsPlain() {
		t.Error("want only cache to be plain")
	}
	preferring := indexOf(nil, pod("db", near(weighted(1, about(Hostname, "web")))))
	if preferring.Profiles[1].HasRequiredHostAffinity() {
		t.Error("a preferred host affinity is reported as required, want it ignored")
	}
}

func TestMaxPerNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod         cluster.Pod
		most, group int
	}{
		"no rule":                {pod("web"), math.MaxInt, 0},
		"a spread":               {pod("web", spread(Hostname, 3, "web")), 3, 0},
		"stricter of two":        {pod("web", spread(Hostname, 3, "web"), away(about(Hostname, "web"))), 1, 1},
		"stricter of two, first": {pod("web", away(about(Hostname, "db"), about(Hostname, "web")), spread(Hostname, 2, "web")), 1, 2},
		"rules about other pods": {pod("web", away(about(Hostname, "db")), spread(Hostname, 1, "db")), math.MaxInt, 0},
		"preferences":            {pod("web", away(weighted(1, about(Hostname, "web"))), spread(Hostname, 1, "web", soft)), math.MaxInt, 0},
		"rules over zones":       {pod("web", away(about(Zone, "web"))), math.MaxInt, 0},
	} {
		b := indexOf(nil, c.pod)
		if most, group := b.Profiles[b.ProfileOf[0]].MaxPerNode(nil); most != c.most || group != c.group {
			t.Errorf("%s: at most %d pods by group %d, want %d by group %d", name, most, group, c.most, c.group)
		}
	}
	b := indexOf(nil, pod("web", spread(Hostname, 1, "web")))
	if most, _ := b.Profiles[b.ProfileOf[0]].MaxPerNode(func(int) bool { return false }); most != math.MaxInt {
		t.Errorf("if no node stays empty, a spread limits a node to %d pods, want no limit", most)
	}
}

func TestGroupsOf(t *testing.T) {
	t.Parallel()
	everywhere := cluster.Term{Key: Zone, AllNamespaces: true, Selector: apps("web")}
	not := cluster.Term{Key: Zone, Namespaces: []string{"default"}}
	not.Selector.Labels = requirements.Requirements{"app": requirements.NoneOf("web", "db")}
	both := about(Zone, "web")
	both.Selector.Labels = requirements.Requirements{"tier": requirements.Any(), "app": requirements.OneOf("web")}
	b := indexOf(nil, pod("x",
		spread(Zone, 1, "web"), // 0
		spread(Zone, 1, "", func(s *cluster.Spread) { s.Selector = cluster.Selector{} }), // 1: counts no pod
		away(everywhere, not, both),                                                                          // 2, 3, 4
		away(cluster.Term{Key: Zone, Namespaces: []string{"default"}}),                                       // 5: all pods of the namespace
		away(cluster.Term{Key: Zone, AllNamespaces: true, Selector: cluster.Selector{MatchesNothing: true}}), // 6: no pod
		away(cluster.Term{Key: Zone, Namespaces: []string{"a", "other"}, Selector: apps("db", "web")}),       // 7
		volume("default/data"), // 8: pods with the volume, with any labels
	))
	for _, c := range []struct {
		namespace string
		labels    requirements.Labels
		want      []int
	}{
		{"default", requirements.Labels{"app": "web"}, []int{0, 2, 5}},
		{"default", requirements.Labels{"app": "web", "pod-template-hash": "1"}, []int{0, 2, 5}},
		{"default", requirements.Labels{"app": "web", "pod-template-hash": "2"}, []int{0, 2, 5}},
		{"default", requirements.Labels{"app": "web", "tier": "front"}, []int{0, 2, 4, 5}},
		{"default", requirements.Labels{"tier": "front"}, []int{3, 5}},
		{"default", requirements.Labels{"app": "db"}, []int{5}},
		{"default", nil, []int{3, 5}},
		{"other", requirements.Labels{"app": "web"}, []int{2, 7}},
		{"other", requirements.Labels{"app": "db"}, []int{7}},
		{"elsewhere", requirements.Labels{"app": "web"}, []int{2}},
		{"elsewhere", nil, nil},
	} {
		for range 2 { // the second result is cached
			if got := b.GroupsOf(c.namespace, c.labels); !slices.Equal(got, c.want) {
				t.Errorf("groups of %v in %s: %v, want %v", c.labels, c.namespace, got, c.want)
			}
		}
	}
	// Selectors do not distinguish the first three pods above. The cache also has pod x.
	if got, want := len(b.groupsCache), 11-2+1; got != want {
		t.Errorf("the cache has %d entries, want %d", got, want)
	}
	if got, want := b.Profiles[b.ProfileOf[0]].In, []int{3, 5, 8}; !slices.Equal(got, want) {
		t.Errorf("groups %v count the owner of the rules, want %v", got, want)
	}
}

// TestGroupsOfVolumes checks that a pod is counted for its volume, and that other pods with its labels are not.
func TestGroupsOfVolumes(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("db", volume("default/data")), // 0
		pod("web", volume("default/data"), away(about(Zone, "web"), about(capacityType, "web"), about("rack", "web")))) // 1, 2, 3
	if got, want := b.Profiles[b.ProfileOf[1]].In, []int{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("groups %v count the pod, want %v", got, want)
	}
	if got, want := b.GroupsOf("default", requirements.Labels{"app": "web"}), []int{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("groups %v count other pods with its labels, want %v", got, want)
	}
}

func TestAntiAffinityGroup(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", away(about(Zone, "web")), near(about(Zone, "db"))))
	known, heavier, other := about(Zone, "web"), weighted(4, about(Zone, "web")), about(Zone, "db")
	if g, ok := b.AntiAffinityGroup(&known); !ok || g != 1 {
		t.Errorf("AntiAffinityGroup = %d, %t; want group 1: the affinity has group 0", g, ok)
	}
	if g, ok := b.AntiAffinityGroup(&heavier); !ok || g != 1 {
		t.Errorf("AntiAffinityGroup of the same term as a preference = %d, %t; want group 1", g, ok)
	}
	if _, ok := b.AntiAffinityGroup(&other); ok {
		t.Error("AntiAffinityGroup finds the group of an affinity, want none")
	}
}

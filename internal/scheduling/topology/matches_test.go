package topology

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestMatchesOf checks that MatchesOf returns the groups that count each pod of the kind, and the groups of its
// anti-affinity.
func TestMatchesOf(t *testing.T) {
	b := indexOf(nil, pod("web", spread(Zone, 1, "web"), away(about(Hostname, "web"), about(Zone, "db")))) // 0, 1, 2
	toDB, toWeb, unknown := about(Zone, "db"), about(Hostname, "web"), about(Zone, "cache")
	for name, c := range map[string]struct {
		kind       cluster.PodKind
		in, avoids []int
	}{
		"counted pods":    {kind: cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "web"}}, in: []int{0, 1}},
		"other namespace": {kind: cluster.PodKind{Namespace: "other", Labels: requirements.Labels{"app": "web"}}},
		"other app":       {kind: cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "cache"}}},
		"anti-affinity": {
			kind: cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "db"},
				RequiredAntiAffinity: []cluster.Term{toDB, unknown, toWeb, toDB}},
			in: []int{2}, avoids: []int{2, 1, 2},
		},
	} {
		first := b.MatchesOf(&c.kind)
		if !slices.Equal(first.In, c.in) || !slices.Equal(first.Avoids, c.avoids) {
			t.Errorf("%s: in %v, avoids %v; want %v and %v", name, first.In, first.Avoids, c.in, c.avoids)
		}
		if n := testing.AllocsPerRun(10, func() { b.MatchesOf(&c.kind) }); n != 0 {
			t.Errorf("%s: the second call allocates %v objects, want none", name, n)
		}
	}
}

// TestForeignRules checks that the anti-affinity of residents makes a group only if it matches a pod to schedule.
func TestForeignRules(t *testing.T) {
	t.Parallel()
	avoiding := func(terms ...cluster.Term) cluster.Resident {
		return cluster.Resident{Count: 1, PodKind: &cluster.PodKind{Namespace: "default", Labels: requirements.Labels{"app": "db"}, RequiredAntiAffinity: terms}}
	}
	residents := []cluster.Resident{
		avoiding(about(Hostname, "other"), about(Zone, "db")), avoiding(about(Zone, "web")), avoiding(about(Hostname, "web")),
		avoiding(about("rack", "db")),
	}
	b := indexOf(residents, pod("web", spread(Zone, 1, "db")), pod("api"))
	if got, want := len(b.Groups), 3; got != want {
		t.Fatalf("%d groups, want %d: the spread and the two rules about web", got, want)
	}
	if p := b.Profiles[b.ProfileOf[0]]; !slices.Equal(p.In, []int{1}) || !slices.Equal(p.HostIn, []int{2}) {
		t.Errorf("groups %v and host groups %v count web; want 1 and 2", p.In, p.HostIn)
	}
	if b.ProfileOf[1] != Plain {
		t.Errorf("api has the profile %+v, want the plain one", b.Profiles[b.ProfileOf[1]])
	}
	for i, want := range []Matches{{In: []int{0}}, {In: []int{0}, Avoids: []int{1}}, {In: []int{0}, Avoids: []int{2}}, {In: []int{0}}} {
		if got := b.MatchesOf(residents[i].PodKind); !slices.Equal(got.In, want.In) || !slices.Equal(got.Avoids, want.Avoids) {
			t.Errorf("resident %d: counted by %v, avoids %v; want %v and %v", i, got.In, got.Avoids, want.In, want.Avoids)
		}
	}
	term := about(Zone, "db")
	if g, ok := b.AntiAffinityGroup(&term); ok {
		t.Errorf("an anti-affinity that matches no pod is group %d, want no group", g)
	}
}

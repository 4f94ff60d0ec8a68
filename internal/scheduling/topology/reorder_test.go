package topology

import (
	"slices"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestReordersPlaces checks that pods go to the best place again as soon as a rule allows this place again, even while
// other places are allowed too.
func TestReordersPlaces(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(places []Place){
		"free room": func(p []Place) { p[0].Free = 9 },
		"rank":      func(p []Place) { p[1].Rank, p[2].Rank = 1, 1 },
	} {
		places := []Place{{Domains: []int{0}, Most: 9, Price: 3}, {Domains: []int{1}, Most: 9, Price: 1}, {Domains: []int{2}, Most: 9, Price: 1}}
		change(places)
		b := indexOf(nil, pod("web", spread(Zone, 1, "web")))
		if got, want := NewDomainCounts(b, domains).Assign(&b.Profiles[1], 4, places), []int{2, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("%s: assigned %v, want %v", name, got, want)
		}
	}
}

// TestPreferencesAfterReorder checks that pods satisfy a preferred spread again as soon as this is possible.
func TestPreferencesAfterReorder(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", spread(Zone, 1, "web", soft)))
	got := NewDomainCounts(b, domains).Assign(&b.Profiles[1], 5, []Place{
		{Domains: []int{0}, Most: 9}, {Domains: []int{1}, Most: 9, Rank: 1}, {Domains: []int{2}, Most: 9, Rank: 2},
	})
	if want := []int{2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("assigned %v, want %v", got, want)
	}
}

// TestPodsOnOtherNodesAreNotCounted checks that a spread does not count pods of the same app whose nodes
// the spread's owner does not accept, as in kube-scheduler.
func TestPodsOnOtherNodesAreNotCounted(t *testing.T) {
	t.Parallel()
	arch := func(value string) []requirements.Requirements {
		return []requirements.Requirements{{"kubernetes.io/arch": requirements.OneOf(value)}}
	}
	owner, other := pod("web", spread(Zone, 1, "web")), pod("web")
	owner.Required, other.Required = arch("amd64"), arch("arm64")
	b := NewIndex([]PodRef{{&owner, 0}, {&other, 1}}, nil, nil)
	c := NewDomainCounts(b, map[string]int{Zone: 2})
	if p := &b.Profiles[b.ProfileOf[1]]; len(p.In) > 0 {
		t.Errorf("groups %v count the pod, want none", p.In)
	}
	got := c.Assign(&b.Profiles[b.ProfileOf[0]], 4, []Place{{Domains: []int{0}, Most: 9}, {Domains: []int{1}, Most: 9}})
	if want := []int{2, 2}; !slices.Equal(got, want) {
		t.Errorf("assigned %v, want %v", got, want)
	}
}

// TestLabelWithoutDomains checks that pods with a rule over a label that no node has go to nodes without the label.
func TestLabelWithoutDomains(t *testing.T) {
	t.Parallel()
	b := indexOf(nil, pod("web", away(about(Zone, "web"))))
	if got := NewDomainCounts(b, nil).Assign(&b.Profiles[1], 1, []Place{{Domains: []int{0}, Most: 1}}); got[0] != 1 {
		t.Errorf("assigned %v, want the pod in the only place", got)
	}
}

package snapshot

import (
	"fmt"
	"testing"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestPodKinds: equal pods get the same pointer, and different pods different pointers. Kinds without pods are deleted.
func TestPodKinds(t *testing.T) {
	t.Parallel()
	var kinds podKinds
	web := []cluster.Term{{Key: "kubernetes.io/hostname", Namespaces: []string{"a"}, Selector: cluster.Selector{
		Labels: requirements.Requirements{"app": requirements.OneOf("web")},
	}}}
	allPods := []cluster.Term{{Key: "kubernetes.io/hostname", AllNamespaces: true}}
	noPod := []cluster.Term{{Key: "kubernetes.io/hostname", AllNamespaces: true, Selector: cluster.Selector{MatchesNothing: true}}}
	build := func() []*podKind {
		return []*podKind{
			kinds.of("a", nil, nil, false),
			kinds.of("a", nil, nil, true),
			kinds.of("b", nil, nil, false),
			kinds.of("a", requirements.Labels{"app": "web", "tier": "x"}, nil, false),
			kinds.of("a", requirements.Labels{"app": "x", "tier": "web"}, nil, false),
			kinds.of("a", requirements.Labels{"app": "web", "tier": "x"}, web, false),
			kinds.of("a", requirements.Labels{"app": "web", "tier": "x"}, allPods, false),
			kinds.of("a", requirements.Labels{"app": "web", "tier": "x"}, noPod, false),
		}
	}
	first, texts := build(), map[string]bool{}
	for i, again := range build() {
		if again != first[i] {
			t.Errorf("kind %d, %q, has another pointer the second time", i, again.text)
		}
		texts[again.text] = true
	}
	if len(texts) != len(first) {
		t.Errorf("%d different kinds have %d different texts, want one each", len(first), len(texts))
	}
	for range 2 { // build has counted each kind twice
		for _, kind := range first {
			kinds.drop(kind)
		}
	}
	if len(kinds.byHash) != 0 {
		t.Errorf("%d hashes are left after all pods were dropped, want 0", len(kinds.byHash))
	}
}

// TestResidents counts pods by kind. The result is sorted and does not depend on the order of the pods.
func TestResidents(t *testing.T) {
	t.Parallel()
	var kinds podKinds
	web := kinds.of("a", requirements.Labels{"app": "web"}, nil, false)
	db := kinds.of("a", requirements.Labels{"app": "db"}, nil, false)
	var r residents
	if r.values() != nil {
		t.Error("the residents without a pod are not nil")
	}
	for _, kind := range []*podKind{web, db, web} {
		r.add(kind)
	}
	got := r.values()
	if len(got) != 2 || got[0].PodKind != &db.PodKind || got[0].Count != 1 || got[1].PodKind != &web.PodKind || got[1].Count != 2 {
		t.Errorf("residents are %v, want 1 of db, then 2 of web", got)
	}
}

// BenchmarkPodKinds should take under 50 ms, without allocations, for 150,000 pods of 5,000 kinds.
func BenchmarkPodKinds(b *testing.B) {
	var labels [5000]requirements.Labels
	for i := range labels {
		labels[i] = requirements.Labels{
			"app": fmt.Sprint("app-", i), "pod-template-hash": fmt.Sprint(i), "team": "x", "app.kubernetes.io/part-of": "shop",
		}
	}
	var kinds podKinds
	b.ReportAllocs()
	for b.Loop() {
		for i := range 150_000 {
			kinds.of("default", labels[i%len(labels)], nil, false)
		}
	}
}

// TestKindsDiffer: kinds that differ only in their anti-affinity have different hashes, so that a lookup is fast.
func TestKindsDiffer(t *testing.T) {
	t.Parallel()
	var kinds podKinds
	for i := range 500 {
		avoids := []cluster.Term{{Key: "zone", Selector: cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"a": fmt.Sprint(i)})}}}
		kinds.of("tenant", requirements.Labels{"app": "x"}, avoids, false)
	}
	if len(kinds.byHash) != 500 {
		t.Errorf("500 different kinds have %d hashes, want 500", len(kinds.byHash))
	}
}

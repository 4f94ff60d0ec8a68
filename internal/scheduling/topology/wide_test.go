package topology

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// drawPodWithRules draws a pod with at most maxTerms anti-affinity terms and two spreads. Their selectors use the
// labels of the drawn pods.
func drawPodWithRules(t *rapid.T, name string, maxTerms int) cluster.Pod {
	p := cluster.Pod{Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), Name: name, Labels: requirements.Labels{}}
	for _, key := range []string{"x", "y", "z"} {
		if value := rapid.IntRange(0, 3).Draw(t, key); value > 0 {
			p.Labels[key] = fmt.Sprint(value)
		}
	}
	selector := func() cluster.Selector {
		s := cluster.Selector{Labels: requirements.Requirements{}}
		for range rapid.IntRange(1, 2).Draw(t, "requirements") {
			values := []string{fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "value")), fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "value"))}
			operator := rapid.SampledFrom([]requirements.Operator{"In", "NotIn", "Exists", "DoesNotExist", "Gt"}).Draw(t, "operator")
			if operator == "Gt" {
				values = values[:1]
			}
			v, _ := requirements.ValuesOf(operator, values...)
			s.Labels.Narrow(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key"), v)
		}
		return s
	}
	for range rapid.IntRange(0, maxTerms).Draw(t, "terms") {
		term := cluster.Term{Key: rapid.SampledFrom([]string{Hostname, Zone}).Draw(t, "domain"), Selector: selector()}
		term.Namespaces = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of")}
		term.AllNamespaces = rapid.Bool().Draw(t, "all")
		p.AntiAffinity = append(p.AntiAffinity, term)
	}
	for _, key := range []string{Hostname, Zone}[:rapid.IntRange(0, 2).Draw(t, "spreads")] {
		p.Spread = append(p.Spread, cluster.Spread{Key: key, MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew"), Selector: selector()})
	}
	return p
}

// TestWideEqualsOrdinary checks that a wide Index allows the same pods on a node, and in zones, as an ordinary Index.
func TestWideEqualsOrdinary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pods []PodRef
		for i := range rapid.IntRange(1, 8).Draw(t, "pods") {
			p := drawPodWithRules(t, fmt.Sprint("p", i), 4)
			pods = append(pods, PodRef{&p, 0})
		}
		resident := drawPodWithRules(t, "resident", 4)
		kind := &cluster.PodKind{Namespace: resident.Namespace, Labels: resident.Labels, RequiredAntiAffinity: resident.AntiAffinity}
		residents := []cluster.Resident{{PodKind: kind, Count: 1}}
		ordinary := NewIndex(pods, residents, nil)
		wide := newWide(pods, make([]bool, len(pods)), residents, []*cluster.PodKind{kind})
		order := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range pods {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "order")
		var hostCounts [2]HostCounts
		var domainCounts [2]*DomainCounts
		for k, b := range []*Index{ordinary, wide} {
			domainCounts[k] = NewDomainCounts(b, map[string]int{Zone: 2})
			addResident(b, kind, &hostCounts[k], domainCounts[k])
		}
		for _, i := range order {
			domain := rapid.IntRange(0, 1).Draw(t, "zone")
			var rooms [2]int
			var refused [2]bool
			for k, b := range []*Index{ordinary, wide} {
				p := &b.Profiles[b.ProfileOf[i]]
				rooms[k] = hostCounts[k].Room(b, p, Limits{})
				cell := slices.Repeat([]int{domain}, len(p.Keys))
				refused[k] = domainCounts[k].Refusal(p, cell) != nil
				hostCounts[k].Add(p, 1)
				domainCounts[k].Add(p, cell, 1)
			}
			if rooms[0] != rooms[1] || refused[0] != refused[1] {
				t.Fatalf("pod %d: ordinary index: room for %d, zone refused: %t; wide index: room for %d, zone refused: %t; want the same",
					i, rooms[0], refused[0], rooms[1], refused[1])
			}
		}
	})
}

// addResident adds a resident to the node, and to the first zone.
func addResident(b *Index, kind *cluster.PodKind, hostCounts *HostCounts, domainCounts *DomainCounts) {
	s := b.MatchesOf(kind)
	for _, g := range s.In {
		if b.Groups[g].Key == Hostname {
			hostCounts.AddPods(g, 1)
		} else {
			domainCounts.AddPods(g, 0, 1)
		}
	}
	for _, g := range s.Avoids {
		if b.Groups[g].Key == Hostname {
			hostCounts.AddOwners(g, 1)
		} else {
			domainCounts.AddOwners(g, 0, 1)
		}
	}
}

// TestWideIsBounded checks that the pods whose rules count the most pods lose their preferences or wait, and that other
// pods keep their rules.
func TestWideIsBounded(t *testing.T) {
	t.Parallel()
	const hostile = 1500 // pods with anti-affinity to all pods other than themselves
	index := func(weight int) *Index {
		var pods []PodRef
		for i := range hostile {
			id := fmt.Sprint(i)
			others := cluster.Selector{Labels: requirements.Requirements{"id": requirements.NoneOf(id)}}
			pods = append(pods, PodRef{&cluster.Pod{
				Namespace: "a", Name: "p" + id, Labels: requirements.Labels{"id": id},
				AntiAffinity: []cluster.Term{{Key: Hostname, Weight: weight, Namespaces: []string{"a"}, Selector: others}},
			}, 0})
		}
		web := cluster.Selector{Labels: requirements.Exactly(requirements.Labels{"app": "web"})}
		pods = append(pods, PodRef{&cluster.Pod{
			Namespace: "b", Name: "web", Labels: requirements.Labels{"app": "web"},
			AntiAffinity: []cluster.Term{{Key: Hostname, Weight: weight, Namespaces: []string{"b"}, Selector: web}},
		}, 0})
		return NewIndex(pods, nil, func() []*cluster.PodKind { return nil })
	}
	for _, weight := range []int{0, 1} {
		b := index(weight)
		counted := 0
		for i := range hostile {
			p := &b.Profiles[b.ProfileOf[i]]
			counted += len(p.HostIn)
		}
		// Without limits, there are hostile*(hostile-1) pairs: more than four times the limit.
		if most := max(maxPreferredPairs, maxRequiredPairs) * 2; counted > most {
			t.Errorf("weight %d: pods are counted %d times, want at most %d", weight, counted, most)
		}
		leftOut := 0
		for i := range hostile {
			leftOut += b.Omitted[i] + toInt(b.Deferred[i])
		}
		if leftOut == 0 {
			t.Errorf("weight %d: no rule is left out, want some", weight)
		}
		if b.Omitted[hostile] > 0 || b.Deferred[hostile] || len(b.Profiles[b.ProfileOf[hostile]].Host) != 1 {
			t.Errorf("weight %d: the ordinary pod lost its rule, want it kept", weight)
		}
	}
}

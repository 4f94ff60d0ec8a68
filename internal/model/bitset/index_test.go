package bitset_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestIndex compares the results of the index with those of Requirements.Accepts for each member.
func TestIndex(t *testing.T) {
	t.Parallel()
	var members []requirements.Labels
	for _, zone := range []string{"", "a", "b"} {
		for _, size := range []string{"", "1", "2", "10"} {
			l := requirements.Labels{}
			if zone != "" {
				l["zone"] = zone
			}
			if size != "" {
				l["size"] = size
			}
			members = append(members, l)
		}
	}
	x := bitset.NewIndex(len(members), func(key string, add func(from, to int, value string)) {
		for i, l := range members {
			if value, ok := l[key]; ok {
				add(i, i+1, value)
			}
		}
	})
	tried := []requirements.Requirements{nil}
	for _, r := range []requirements.Requirement{
		{Key: "zone", Operator: requirements.In, Values: []string{"a", "c"}},
		{Key: "zone", Operator: requirements.NotIn, Values: []string{"a"}},
		{Key: "zone", Operator: requirements.Exists},
		{Key: "zone", Operator: requirements.DoesNotExist},
		{Key: "size", Operator: requirements.Gt, Values: []string{"1"}},
		{Key: "size", Operator: requirements.Lt, Values: []string{"10"}},
		{Key: "other", Operator: requirements.Exists},
	} {
		reqs, wrong := requirements.All(r)
		if wrong != nil {
			t.Fatal(wrong)
		}
		for _, earlier := range tried[:len(tried):len(tried)] { // the first is nil, so reqs is also tried alone
			tried = append(tried, reqs.And(earlier))
		}
	}
	for i, reqs := range tried {
		either := []requirements.Requirements{reqs, tried[(i+3)%len(tried)]} // and another of tried
		all, some := x.Satisfying(reqs), x.SatisfyingOne(either)
		for m, labels := range members {
			if got, want := all.Has(m), reqs.Accepts(labels); got != want {
				t.Errorf("%v satisfies %v: %t, want %t", labels, reqs, got, want)
			}
			if got, want := some.Has(m), either[0].Accepts(labels) || either[1].Accepts(labels); got != want {
				t.Errorf("%v satisfies one of %v: %t, want %t", labels, either, got, want)
			}
		}
	}
	if n := x.SatisfyingOne(nil).Count(); n != len(members) {
		t.Errorf("without alternatives, %d members are returned, want %d", n, len(members))
	}
}

// TestSets combines two ranges that cross words of the bit map.
func TestSets(t *testing.T) {
	t.Parallel()
	s, u := bitset.New(200), bitset.New(200)
	s.AddRange(60, 190)
	u.AddRange(0, 130)
	both, difference := s.Intersection(u), s.Clone()
	difference.AndNot(u)
	if both.Count() != 70 || !both.Has(60) || both.Has(59) || both.Has(130) {
		t.Errorf("60…189 and 0…129 have %d members in common, want the 70 of 60…129", both.Count())
	}
	if difference.Count() != 60 || difference.Next(0) != 130 || difference.Intersects(u) || !difference.Intersects(s) {
		t.Errorf("60…189 without 0…129 are %d members from %d on, want the 60 of 130…189", difference.Count(), difference.Next(0))
	}
	if s.Key() == difference.Key() || difference.Any() != difference.Intersects(nil) {
		t.Error("different sets have the same key, or Any differs from Intersects(nil)")
	}
	difference.Or(both)
	if s.Key() != difference.Key() {
		t.Error("equal sets have different keys")
	}
}

package conversion

import (
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestSelectorsAsKubernetes matches random selectors, many of them invalid, with random labels. The results must equal
// those of Kubernetes' own code.
func TestSelectorsAsKubernetes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	key := func() string { return pick("a", "b", "c.d/e", "", "-", "x/y/z") }
	value := func() string { return pick("1", "2", "3", "", "no good") }
	valid, matched := 0, 0
	for range 20_000 {
		s := &metav1.LabelSelector{}
		for range r.IntN(2) {
			s.MatchLabels = map[string]string{key(): value()}
		}
		for range r.IntN(3) {
			e := metav1.LabelSelectorRequirement{Key: key(), Operator: metav1.LabelSelectorOperator(
				pick("In", "NotIn", "Exists", "DoesNotExist", "In", "NotIn", "Gt", ""))}
			for range r.IntN(3) {
				e.Values = append(e.Values, value())
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
		theirs, err := metav1.LabelSelectorAsSelector(s)
		ours, problem := selectorOf(s)
		if (err != nil) != (problem != "") {
			t.Fatalf("%s: Kubernetes returns the error %v, selectorOf the problem %q", metav1.FormatLabelSelector(s), err, problem)
		}
		if err != nil {
			continue
		}
		valid++
		set := labels.Set{}
		for range r.IntN(4) {
			set[pick("a", "b", "c.d/e")] = pick("1", "2", "3", "")
		}
		if got := ours.Matches(set); got != theirs.Matches(set) {
			t.Fatalf("%s matches %v: %t, but %t in Kubernetes", metav1.FormatLabelSelector(s), set, got, !got)
		} else if got {
			matched++
		}
	}
	if valid < 5000 || matched < 1000 {
		t.Errorf("%d selectors are valid, want at least 5000; %d of them match the labels, want at least 1000", valid, matched)
	}
	fromNil, problem := selectorOf(nil)
	if problem != "" || fromNil.Matches(nil) || !fromNil.MatchesNothing {
		t.Errorf("the nil selector is converted to %+v, %q; want a selector that selects nothing", fromNil, problem)
	}
}

// TestLabelsAsKubernetes compares the validation of labels with that of Kubernetes. The fixed texts include names of 63
// and 64 characters, and prefixes of 234 and 267 characters, of which 253 are allowed.
func TestLabelsAsKubernetes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	long := strings.Repeat("a", 64)
	texts := []string{"", "/", "a/", "/a", "a/b", "A/b", "a.b/C", "a..b/c", "a-/b", "-a/b", "a_b/c", long, long[1:], long[1:] + "/a",
		strings.Repeat(long[32:]+".", 7) + "com/a", strings.Repeat(long[32:]+".", 8) + "com/a", "a/" + long, "ä", "a\x00"}
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteByte("aZ0-_./ \n"[r.IntN(9)])
		}
		texts = append(texts, b.String())
	}
	for _, text := range texts {
		if got, want := isLabelKey(text), len(validation.IsQualifiedName(text)) == 0; got != want {
			t.Errorf("isLabelKey(%q) is %t, want %t", text, got, want)
		}
		if got, want := isLabelValue(text), len(validation.IsValidLabelValue(text)) == 0; got != want {
			t.Errorf("isLabelValue(%q) is %t, want %t", text, got, want)
		}
	}
}

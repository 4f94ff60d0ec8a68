package suggest_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-sh/joiner/internal/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"batch-max-duration", "batch-idle-duration", "cluster-name", "cluster-endpoint", "log-level",
		"metrics-port", "kube-client-qps"}
	for word, want := range map[string]string{
		"cluster-naem":         "cluster-name",
		"clusterName":          "cluster-name",
		"CLUSTER_NAM":          "cluster-name",
		"settings.clusterName": "", // package config removes the prefix before it calls Nearest
		"loglevel":             "log-level",
		"log-lvl":              "log-level",
		"metric-port":          "metrics-port",
		"batch-max":            "batch-max-duration",
		"duration":             "batch-max-duration", // the shorter of the two names that contain "duration"
		"qps":                  "kube-client-qps",
		"colour":               "",
		"":                     "",
		"--":                   "",
	} {
		if got := suggest.Nearest(word, words); got != want {
			t.Errorf("nearest to %q: %q, want %q", word, got, want)
		}
	}
	if got := suggest.Hint("ture", []string{"true", "false"}); got != " (did you mean true?)" {
		t.Errorf("hint for ture: %q, want true", got)
	}
	if got := suggest.Hint("maybe", []string{"true", "false"}); got != "" {
		t.Errorf("hint for maybe: %q, want none: no word is similar", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}:              0,
		{"", "abc"}:           3,
		{"abc", "abc"}:        0,
		{"abc", "acb"}:        1,
		{"abcd", "abd"}:       1,
		{"kitten", "sitting"}: 3,
		{"ca", "abc"}:         3, // not 2: no byte is edited twice
	} {
		if got := suggest.Distance(pair[0], pair[1]); got != want {
			t.Errorf("distance of %v: %d, want %d", pair, got, want)
		}
	}
}

// TestDistanceProperties checks that Distance is symmetric, at most the length of the longer word, and at least the
// difference of the lengths. It also checks that Nearest does not depend on the order of the words.
func TestDistanceProperties(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[a-d]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d, longer := suggest.Distance(a, b), max(len(a), len(b))
		if d != suggest.Distance(b, a) || (d == 0) != (a == b) || d > longer || d < longer-min(len(a), len(b)) {
			t.Fatalf("distance of %q and %q: %d, and %d with the arguments swapped; want the same, from %d to %d, 0 only for equal words",
				a, b, d, suggest.Distance(b, a), longer-min(len(a), len(b)), longer)
		}
		words := rapid.SliceOf(word).Draw(t, "words")
		reversed := slices.Clone(words)
		slices.Reverse(reversed)
		if x, y := suggest.Nearest(a, words), suggest.Nearest(a, reversed); x != y {
			t.Fatalf("nearest to %q of %q: %q, and %q with the words in reverse order; want the same", a, words, x, y)
		}
	})
}

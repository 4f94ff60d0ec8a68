package output

import (
	"strings"
	"testing"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, want string }{
		"no change":           {"a\nb\n", "a\nb\n", ""},
		"all added":           {"", "a\nb\n", "+ a|+ b"},
		"all removed":         {"a\n", "", "- a"},
		"line changed":        {"1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n", "  2|  3|- 4|+ x|  5|  6|  …"},
		"line added":          {"a\nb\n", "a\nc\nb\n", "  a|+ c|  b"},
		"two distant changes": {"a\n1\n2\n3\n4\n5\n6\nb\n", "1\n2\n3\n4\n5\n6\n", "- a|  1|  2|  …|  5|  6|- b"},
		"lines with - and +":  {"- a\n", "+ a\n", "- - a|+ + a"},
	} {
		if got := strings.Join(Difference(c.before, c.after), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

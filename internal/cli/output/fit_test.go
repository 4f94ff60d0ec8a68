package output

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFit: no line exceeds the width. Texts are wrapped at blanks. Names are split only if wrapping is not enough.
func TestFit(t *testing.T) {
	t.Parallel()
	table := Table{Header: []string{"NODE", "COUNT", "WHY"}, Right: []int{1}, Rows: [][]string{
		{"ip-10-0-1-17.eu-west-1.compute.internal", "1,234",
			"its pods would not cost less elsewhere, or not enough less to be worth moving them"},
		{"n1", "5", "it is not ready"},
	}}
	for width, want := range map[int]string{
		0: `NODE                                     COUNT  WHY
ip-10-0-1-17.eu-west-1.compute.internal  1,234  its pods would not cost less elsewhere, or not enough less to be worth moving them
n1                                           5  it is not ready
`,
		80: `NODE                                     COUNT  WHY
ip-10-0-1-17.eu-west-1.compute.internal  1,234  its pods would not cost less
                                                elsewhere, or not enough less to
                                                be worth moving them
n1                                           5  it is not ready
`,
	} {
		if got := table.Fit(width); got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
	for _, width := range []int{40, 50, 60, 70, 100, 120} {
		text := table.Fit(width)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line has %d characters:\n%s", width, n, text)
			}
		}
		// From 70 characters on, no name needs to be split.
		if withoutBlanks := func(s string) string { return strings.Join(strings.Fields(s), "") }; width >= 70 &&
			!strings.Contains(withoutBlanks(text), "ip-10-0-1-17.eu-west-1.compute.internal") {
			t.Errorf("width %d: the name of the node is split or missing:\n%s", width, text)
		}
	}
	if got := table.Fit(1); !strings.Contains(got, "n1") {
		t.Errorf("width 1: the name n1 is missing:\n%s", got)
	}
}

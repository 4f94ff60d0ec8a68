package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/diagnosis"
)

// TestScreen: whatever is found fits on one screen, the first cause in its first lines.
func TestScreen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 60)
	for _, n := range []int{0, 1, 2, 5, 40, 300} {
		var all []diagnosis.Finding
		for i := range n {
			f := diagnosis.Finding{Check: fmt.Sprintf("NET-%d", i), Verdict: diagnosis.Broken, Certainty: diagnosis.Likely, Subject: "EC2NodeClass a", Page: "docs/checks/NET-1.md",
				Cause: fmt.Sprintf("cause %d", i), Evidence: []string{long, "two\nlines", "three", "four"}, Fix: "one\ntwo"}
			if i%3 == 1 {
				f.Follows = "NET-0"
			}
			all = append(all, f)
		}
		for i := range n {
			all = append(all, diagnosis.Finding{Check: fmt.Sprintf("AUTH-%d", i), Verdict: diagnosis.Unknown, Cause: fmt.Sprintf("why %d", i%7)})
		}
		all = append(all, diagnosis.Finding{Check: "ID-1", Verdict: diagnosis.Fine})
		got := screen(all, nil)
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if len(lines) > screenLines {
			t.Errorf("%d findings take %d lines:\n%s", n, len(lines), got)
		}
		if n > 0 && !strings.Contains(strings.Join(lines[:min(3, len(lines))], "\n"), "cause 0") {
			t.Errorf("%d findings: the first cause is not in the first lines:\n%s", n, got)
		}
		if n > 2 && !strings.Contains(got, "more: -o json has them") && !strings.Contains(got, fmt.Sprintf("cause %d", n-1)) {
			t.Errorf("%d findings: some are lost:\n%s", n, got)
		}
		want := "1 check fine"
		if n > 0 {
			want += fmt.Sprintf(", %d could not be made", n)
		}
		if lines[len(lines)-1] != want {
			t.Errorf("it ends with %q", lines[len(lines)-1])
		}
	}
}

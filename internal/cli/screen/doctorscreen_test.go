package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// TestScreen: the worst cause is in the first lines, each cause has its fix, and only one screen has evidence.
func TestScreen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 60)
	for _, n := range []int{0, 1, 2, 5, 40, 300} {
		var all []diagnosis.Finding
		for i := range n {
			f := diagnosis.Finding{Check: fmt.Sprintf("NET-%d", i), Verdict: diagnosis.Broken, Certainty: diagnosis.Likely,
				Subject: "EC2NodeClass a", Page: "docs/checks/NET-1.md",
				Cause: fmt.Sprintf("cause %d", i), Evidence: []string{long, "two\nlines", "three", "four"},
				Fix: fix.New("", fix.AdviceStep("one %d", i), fix.AdviceStep("two %d", i))}
			if i%3 == 1 { // a third of the findings follow from the first, so they have no block of their own
				f.Follows = "NET-0"
			}
			all = append(all, f)
		}
		for i := range n {
			all = append(all, diagnosis.Finding{Check: fmt.Sprintf("AUTH-%d", i), Verdict: diagnosis.Unknown, Cause: fmt.Sprintf("why %d", i%7)})
		}
		all = append(all, diagnosis.Finding{Check: "ID-1", Verdict: diagnosis.Fine})
		got := Findings(all, nil, nil)
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if limit := screenLines + 4*maxCauses; len(lines) > limit { // beyond the screen, a cause takes 4 lines
			t.Errorf("%d findings take %d lines, more than the limit:\n%s", n, len(lines), got)
		}
		if n > 0 && !strings.Contains(strings.Join(lines[:min(3, len(lines))], "\n"), "cause 0") {
			t.Errorf("%d findings: the first cause is not in the first lines:\n%s", n, got)
		}
		for i := range min(n, maxCauses) {
			if i%3 != 1 && !strings.Contains(got, fmt.Sprintf("  fix   # one %d\n        # two %d\n", i, i)) {
				t.Errorf("%d findings: the fix of cause %d is missing:\n%s", n, i, got)
			}
		}
		if n > maxCauses && !strings.Contains(got, "more: -o json has them") {
			t.Errorf("%d findings: the number of omitted causes is missing:\n%s", n, got)
		}
		want := "1 check fine"
		if n > 0 {
			want += fmt.Sprintf(", %d could not run", n)
		}
		if lines[len(lines)-1] != want {
			t.Errorf("the last line is %q, want %q", lines[len(lines)-1], want)
		}
	}
}

// TestScreenCauses: each cause has one block with all of its subjects and fixes. The output marks EC2NodeClasses that
// no NodePool uses, and names lists that were read only partly.
func TestScreenCauses(t *testing.T) {
	t.Parallel()
	finding := func(check, subject, cause string, advice ...string) diagnosis.Finding {
		var steps []fix.Step
		for _, s := range advice {
			steps = append(steps, fix.AdviceStep("%s", s))
		}
		return diagnosis.Finding{Check: check, Verdict: diagnosis.Broken, Certainty: diagnosis.Certain, Subject: subject,
			Cause: cause, Fix: fix.New(subject, steps...), Evidence: []string{"seen"}, Page: "page"}
	}
	consequence := finding("ARCH-6", "NodePool p", "it launches both architectures")
	consequence.Follows = "AUTH-2"
	unused := finding("AUTH-2", "EC2NodeClass old", "role x is not mapped", "map x")
	unused.Unused = true
	got := Findings([]diagnosis.Finding{finding("AUTH-2", "EC2NodeClass a", "role r is not mapped", "map r"),
		finding("AUTH-2", "EC2NodeClass b", "role r is not mapped", "map r", "map r for b"), consequence, unused}, nil,
		[]string{"events: only the first 5000 were read"})
	want := `AUTH-2 broken, certain: EC2NodeClass a, b
  role r is not mapped
  seen  seen
  seen  seen
  fix   # map r
        # map r for b
  then  ARCH-6 broken, NodePool p: it launches both architectures
  more  page

AUTH-2 broken, certain: EC2NodeClass old (no NodePool uses it)
  role x is not mapped
  seen  seen
  fix   # map x
  more  page

only a part was read: events: only the first 5000 were read
0 checks fine
`
	if got != want {
		t.Errorf("output\n%s\nwant\n%s", got, want)
	}
}

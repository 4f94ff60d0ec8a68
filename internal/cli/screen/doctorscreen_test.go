package screen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-sh/joiner/internal/diagnosis"
	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
)

// TestScreen: the worst cause is in the first lines, each cause has its fix, and the evidence fits on one screen.
func TestScreen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 60)
	for _, n := range []int{0, 1, 2, 5, 40, 300} {
		var all []diagnosis.Finding
		for i := range n {
			f := diagnosis.Finding{Check: fmt.Sprintf("NET-%d", i), Verdict: diagnosis.Broken, Certainty: diagnosis.Likely,
				Subject: "EC2NodeClass a", Page: "docs/checks/NET-1.md",
				Cause: fmt.Sprintf("cause %d", i), Evidence: []string{long, "two\nlines", "three", "four"},
				Fix: fix.Of("", fix.Say("one %d", i), fix.Say("two %d", i))}
			if i%3 == 1 {
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
		if most := screenLines + 4*mostCauses; len(lines) > most {
			t.Errorf("%d findings take %d lines:\n%s", n, len(lines), got)
		}
		if n > 0 && !strings.Contains(strings.Join(lines[:min(3, len(lines))], "\n"), "cause 0") {
			t.Errorf("%d findings: the first cause is not in the first lines:\n%s", n, got)
		}
		for i := range min(n, mostCauses) {
			if i%3 != 1 && !strings.Contains(got, fmt.Sprintf("  fix   # one %d\n        # two %d\n", i, i)) {
				t.Errorf("%d findings: the fix of cause %d is not there:\n%s", n, i, got)
			}
		}
		if n > mostCauses && !strings.Contains(got, "more: -o json has them") {
			t.Errorf("%d findings: some are lost:\n%s", n, got)
		}
		want := "1 check fine"
		if n > 0 {
			want += fmt.Sprintf(", %d could not run", n)
		}
		if lines[len(lines)-1] != want {
			t.Errorf("it ends with %q", lines[len(lines)-1])
		}
	}
}

// TestScreenCauses: each cause has one block with all of its subjects and fixes. Classes that no NodePool uses are marked, and partly read
// lists are reported.
func TestScreenCauses(t *testing.T) {
	t.Parallel()
	f := func(check, subject, cause string, say ...string) diagnosis.Finding {
		var steps []fix.Step
		for _, s := range say {
			steps = append(steps, fix.Say("%s", s))
		}
		return diagnosis.Finding{Check: check, Verdict: diagnosis.Broken, Certainty: diagnosis.Certain, Subject: subject,
			Cause: cause, Fix: fix.Of(subject, steps...), Evidence: []string{"seen"}, Page: "page"}
	}
	then := f("ARCH-6", "NodePool p", "it buys both")
	then.Follows = "AUTH-2"
	unused := f("AUTH-2", "EC2NodeClass old", "role x is not mapped", "map x")
	unused.Unused = true
	got := Findings([]diagnosis.Finding{f("AUTH-2", "EC2NodeClass a", "role r is not mapped", "map r"),
		f("AUTH-2", "EC2NodeClass b", "role r is not mapped", "map r", "again b"), then, unused}, nil,
		[]string{"events: only the first 5000 were read"})
	want := `AUTH-2 broken, certain: EC2NodeClass a, b
  role r is not mapped
  seen  seen
  seen  seen
  fix   # map r
        # again b
  then  ARCH-6 broken, NodePool p: it buys both
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
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

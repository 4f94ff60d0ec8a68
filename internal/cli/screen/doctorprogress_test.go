package screen

import (
	"bytes"
	"testing"
	"time"
)

// TestProgress: a terminal has one line, updated with the oldest source and the time since the start. Elsewhere, each
// slow source has a line with its own time.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isTerminal bool
		want       string
	}{
		// The blanks overwrite the end of the longer line before.
		"on a terminal": {true, "\rreading pods (1 s)\r" + "\rreading eks:DescribeCluster prod and 1 more (4 s)\r" +
			"\rreading sts (5 s)                                \r"},
		"elsewhere": {false, "still reading eks:DescribeCluster prod (3 s)\nread eks:DescribeCluster prod after 4 s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			p := NewProgress(&out, func() time.Time { return now })
			p.isTerminal = c.isTerminal
			p.Note("pods", false)
			p.show() // prints nothing, because no second has passed
			now = now.Add(time.Second)
			p.show()
			p.Note("pods", true)
			p.show() // prints nothing, because nothing is being read
			p.Note("eks:DescribeCluster prod", false)
			now = now.Add(3 * time.Second)
			p.Note("sts", false)
			p.show()
			now = now.Add(time.Second)
			p.Note("eks:DescribeCluster prod", true)
			p.show()
			if out.String() != c.want {
				t.Errorf("output\n%q\nwant\n%q", out.String(), c.want)
			}
		})
	}
	var nilProgress *Progress // its methods do nothing
	nilProgress.Note("pods", false)
	nilProgress.Watch()()
}

package kubelet

import "testing"

// TestLastLines checks that lastLines returns complete lines, or all text if n is larger than the number of lines.
func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"a\nb\nc\n", 0, ""},
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc\n", 3, "a\nb\nc\n"},
		{"a\nb\nc\n", 9, "a\nb\nc\n"},
		{"a\nb", 1, "b"},
		{"a\nb", 0, ""},
		{"", 5, ""},
		{"\n", 1, "\n"},
	} {
		if got := string(lastLines([]byte(c.text), c.n)); got != c.want {
			t.Errorf("the last %d lines of %q are %q, want %q", c.n, c.text, got, c.want)
		}
	}
}

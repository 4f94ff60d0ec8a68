package suggest_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// TestShort checks that a message stays short and valid UTF-8, whatever text it quotes.
func TestShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 300_000)
	for name, test := range map[string]struct{ text, want string }{
		"short": {"spec.replicas: -1 is not between 0 and 5", "spec.replicas: -1 is not between 0 and 5"},
		"a long word": {"key " + strings.Repeat("x", 201) + " is there twice",
			"key " + strings.Repeat("x", 200) + "…(201 bytes) is there twice"},
	} {
		if got := suggest.Short(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for _, text := range []string{long, strings.Repeat("a ", 300_000), strings.Repeat(" ", 300_000), "x " + long + " y", long + "\n" + long} {
		got := suggest.Short(text) // at most 1,000 bytes, and the full length as text
		if len(got) > 1100 || !utf8.ValidString(got) {
			t.Errorf("got %d bytes for a text of %d bytes, want at most 1100 bytes of valid UTF-8", len(got), len(text))
		}
	}
}

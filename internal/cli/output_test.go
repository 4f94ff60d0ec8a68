package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestLinesHaveNoControls: a table has U+FFFD in place of a control character, JSON has an escape.
func TestLinesHaveNoControls(t *testing.T) {
	t.Parallel()
	for format, want := range map[format]string{
		asTable: "NodePool a\uFFFD[2J\uFFFD: paused\n",
		asJSON:  "[\n  {\n    \"object\": \"NodePool a\\u001b[2J\\u202e\",\n    \"says\": \"paused\"\n  }\n]\n",
	} {
		var out strings.Builder
		err := format.writeLines(&out, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "NodePool %s: paused\n", "a\x1b[2J\u202e")
			return err
		})
		if err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", format, out.String(), err, want)
		}
	}
}

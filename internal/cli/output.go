package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// format is how a command writes its answer: the value of -o.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asWide  format = "wide" // a table whose lines are as long as they are
)

// flag adds -o to a command.
func (o *format) flag(flags *pflag.FlagSet) {
	*o = asTable
	flags.VarP(o, "output", "o", "table, wide, json or yaml")
}

// String returns the value of the flag.
func (o *format) String() string { return string(*o) }

// Type names the kind of value, for the help text.
func (o *format) Type() string { return "format" }

// Set reads the value of the flag.
func (o *format) Set(text string) error {
	switch format(text) {
	case asTable, asWide, asJSON, asYAML:
		*o = format(text)
		return nil
	}
	return fmt.Errorf("want table, wide, json or yaml%s", suggest.Hint(text, []string{string(asTable), string(asWide), string(asJSON), string(asYAML)}))
}

// isText reports whether the answer is for people.
func (o *format) isText() bool { return *o == asTable || *o == asWide }

// usualWidth is how wide tables are where nothing says how wide the terminal is.
const usualWidth = 100

// width is how wide lines of tables may be: as the terminal that COLUMNS or standard output says, else usualWidth; 0: as wide as they are.
func (o *format) width(w io.Writer) int {
	if *o == asWide {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if a, ok := w.(*answer); ok {
		w = a.w
	}
	if f, ok := w.(*os.File); ok {
		if n := terminalWidth(f); n > 0 {
			return n
		}
	}
	return usualWidth
}

// reported is one line of an answer about an object.
type reported struct {
	Object string `json:"object,omitempty"` // empty: the line is about none
	Says   string `json:"says"`
}

// lines writes what do writes, lines of "OBJECT: what was done", in the format of -o. What was done before an error is written, too.
func (o *format) lines(w io.Writer, do func(io.Writer) error) error {
	if o.isText() {
		return do(harmlessWriter{w})
	}
	var text bytes.Buffer
	err := do(&text)
	all := []reported{}
	for line := range strings.Lines(text.String()) {
		object, says, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || object == "note" {
			object, says = "", strings.TrimSuffix(line, "\n")
		}
		all = append(all, reported{Object: object, Says: says})
	}
	if wrong := o.write(w, nil, func() any { return all }); err == nil {
		err = wrong
	}
	return err
}

// write writes text as a table, or value as JSON or YAML. No text of others commands the terminal in any of them.
func (o *format) write(w io.Writer, text func() string, value func() any) error {
	if o.isText() {
		_, err := io.WriteString(w, harmless(text()))
		return err
	}
	data, err := json.MarshalIndent(value(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the answer as JSON: %w", err)
	}
	data = escaped(data, *o == asYAML)
	data = append(data, '\n')
	if *o == asYAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write the answer as YAML: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}

// harmlessWriter writes whole lines without what a terminal acts on.
type harmlessWriter struct{ to io.Writer }

// Write writes the text, and counts it as it was given.
func (w harmlessWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, harmless(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// harmless keeps the lines and columns of a text, and nothing else that a terminal acts on.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// escaped writes what a terminal acts on as JSON may write it too: \u202e. The values stay the same, but where YAML is made of them, which shows
// text as it is: there it is shown escaped.
func escaped(data []byte, forYAML bool) []byte {
	var b bytes.Buffer
	slash := `\`
	if forYAML {
		slash = `\\`
	}
	for _, r := range string(data) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "%su%04x%su%04x", slash, high, slash, low)
		default:
			fmt.Fprintf(&b, "%su%04x", slash, r)
		}
	}
	return b.Bytes()
}

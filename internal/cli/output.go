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

// format is the output format of a command: the value of -o.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asWide  format = "wide" // a table without a maximum width
)

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
	return fmt.Errorf("want table, wide, json or yaml%s",
		suggest.Hint(text, []string{string(asTable), string(asWide), string(asJSON), string(asYAML)}))
}

// isText reports whether the format is text for people, not JSON or YAML.
func (o *format) isText() bool { return *o == asTable || *o == asWide }

// defaultWidth is the width of tables, in characters, if the width of the terminal is unknown.
const defaultWidth = 100

// width returns the maximum width of tables on w, in characters: the variable COLUMNS, else the width of w if w is a
// terminal, else defaultWidth. It returns 0 for asWide: no limit.
func (o *format) width(w io.Writer) int {
	if *o == asWide {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if s, ok := w.(*stdoutWriter); ok { // the writer that Root sets
		w = s.w
	}
	if f, ok := w.(*os.File); ok {
		if n := terminalWidth(f); n > 0 {
			return n
		}
	}
	return defaultWidth
}

type outputLine struct {
	Object string `json:"object,omitempty"` // empty: the line is not about an object
	Says   string `json:"says"`
}

// writeLines writes to w, in the format of -o, the lines that the function do writes: "OBJECT: result". If do returns
// an error, writeLines writes the lines before the error, and returns the error.
func (o *format) writeLines(w io.Writer, do func(io.Writer) error) error {
	if o.isText() {
		return do(safeWriter{w})
	}
	var text bytes.Buffer
	err := do(&text)
	all := []outputLine{}
	for line := range strings.Lines(text.String()) {
		object, says, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || object == "note" { // "note: TEXT" is not about an object
			object, says = "", strings.TrimSuffix(line, "\n")
		}
		all = append(all, outputLine{Object: object, Says: says})
	}
	if writeErr := o.write(w, nil, func() any { return all }); err == nil {
		err = writeErr
	}
	return err
}

// write writes the result of text, or that of value as JSON or YAML, by the format. It replaces control characters in
// text and escapes them in JSON and YAML. text may be nil if the format is not text.
func (o *format) write(w io.Writer, text func() string, value func() any) error {
	if o.isText() {
		_, err := io.WriteString(w, replaceControls(text()))
		return err
	}
	data, err := json.MarshalIndent(value(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the output as JSON: %w", err)
	}
	data = escapeControls(data, *o == asYAML)
	data = append(data, '\n')
	if *o == asYAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write the output as YAML: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}

// safeWriter replaces control characters in the text that it writes.
type safeWriter struct{ to io.Writer }

// Write writes the text with control characters replaced. It returns the length of the original text.
func (w safeWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, replaceControls(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// replaceControls replaces the control characters of a text, except for newlines and tabs.
func replaceControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// escapeControls replaces the control and invisible characters in JSON with escapes such as \u202e, which a JSON parser
// converts back. The conversion to YAML would write the characters themselves, so for YAML the backslash is doubled:
// the value then has the text \u202e.
func escapeControls(data []byte, forYAML bool) []byte {
	var b bytes.Buffer
	backslash := `\`
	if forYAML {
		backslash = `\\`
	}
	for _, r := range string(data) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "%su%04x%su%04x", backslash, high, backslash, low)
		default:
			fmt.Fprintf(&b, "%su%04x", backslash, r)
		}
	}
	return b.Bytes()
}

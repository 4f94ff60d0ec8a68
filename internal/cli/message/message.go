// Package message puts texts of libraries and files on one line that is safe for a terminal.
//
// In: an error or a text.
// Out: one line without credentials in URLs and without control characters.
// Never: output; the caller prints the line.
package message

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// WithoutSyscall returns an error about a file without the name of the system call: "open x: no such file" becomes "x:
// no such file".
func WithoutSyscall(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return fmt.Errorf("%s: %w", pathErr.Path, pathErr.Err)
	}
	return err
}

// OneLine returns a message as one line: it joins the lines with semicolons, masks credentials in URLs, and replaces
// control characters except tabs.
func OneLine(s string) string {
	s = diagnosis.MaskURLs(s)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

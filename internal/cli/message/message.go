// Package message puts texts of libraries and files on one line that is safe for a terminal.
//
// In: an error or a text.
// Out: one line without credentials and control characters.
// Never: a call.
package message

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// Plain removes the system call from a file error: "open x: no such file" becomes "x: no such file".
func Plain(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}

// OneLine puts a message on one line. It masks credentials in URLs and replaces control characters, since texts of
// libraries and files may contain either.
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

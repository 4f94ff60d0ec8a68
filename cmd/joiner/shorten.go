package main

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode"
)

// maxText is the maximum length in bytes of the value of an attribute in a log line. Some values are from objects that
// users write, and could be of any length.
const maxText = 4096

// shorten returns the attribute with at most maxText bytes of its text. It replaces the characters for which isHidden
// is true. It does not change attributes without text, such as numbers.
func shorten(a slog.Attr) slog.Attr {
	text := ""
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			text = v.Error()
		case fmt.Stringer:
			text = v.String()
		default:
			text = fmt.Sprint(v)
		}
	default:
	}
	hasHidden := strings.ContainsFunc(text, isHidden)
	switch {
	case len(text) <= maxText && !hasHidden:
		return a
	case len(text) <= maxText:
		return slog.String(a.Key, replaceHidden(text))
	}
	return slog.String(a.Key, fmt.Sprintf("%s… (%d bytes)", replaceHidden(strings.ToValidUTF8(text[:maxText], "")), len(text)))
}

// isHidden reports whether the character is 0x7f, or a control or invisible character that is not ASCII. The other
// ASCII control characters are escaped by the log's JSON and text encoders.
func isHidden(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPrint(r) || r == 0x7f }

func replaceHidden(text string) string {
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

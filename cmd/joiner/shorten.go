package main

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode"
)

// longestText is the maximum length in bytes of the value of an attribute in a log line. Some values are from objects
// that users write, and could be of any length.
const longestText = 4096

// shortened returns the attribute with at most longestText bytes of its text, and without the characters for which
// isHidden is true. Attributes without text, such as numbers, are not changed.
func shortened(a slog.Attr) slog.Attr {
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
	isHarmless := !strings.ContainsFunc(text, isHidden)
	switch {
	case len(text) <= longestText && isHarmless:
		return a
	case len(text) <= longestText:
		return slog.String(a.Key, harmless(text))
	}
	return slog.String(a.Key, fmt.Sprintf("%s… (%d bytes)", harmless(strings.ToValidUTF8(text[:longestText], "")), len(text)))
}

// isHidden reports whether the character is a control or invisible character that the JSON encoder does not escape. The
// encoder escapes those of ASCII, except 0x7f.
func isHidden(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPrint(r) || r == 0x7f }

// harmless replaces the characters for which isHidden is true.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

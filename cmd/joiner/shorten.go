package main

import (
	"fmt"
	"log/slog"
	"strings"
	"unicode"
)

// longestText is the length of a text in a log line, in bytes. Names, messages and amounts come from objects that users write.
const longestText = 4096

// shortened returns the attribute with a text of bounded length.
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

// isHidden reports whether a terminal acts on the character, or does not show it. JSON escapes those of ASCII itself, and no others.
func isHidden(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPrint(r) || r == 0x7f }

// harmless replaces the characters that a terminal acts on, and that JSON leaves as they are.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

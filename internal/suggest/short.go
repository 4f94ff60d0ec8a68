package suggest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxWord is the maximum length of one quoted word, in bytes.
	maxWord = 200
	// maxText is the maximum length of a message, in bytes.
	maxText = 1000
)

// Short shortens a message that quotes text of a user: each word to 200 bytes (a field path can be that long), and the
// message to 1,000 bytes. After a shortened word or message, the result gives the full length.
func Short(text string) string {
	if len(text) <= maxWord {
		return text
	}
	var b strings.Builder
	for rest := text; rest != "" && b.Len() <= maxText; {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(cut(rest[:end], maxWord))
		space := strings.IndexFunc(rest[end:], func(c rune) bool { return !unicode.IsSpace(c) })
		if space < 0 {
			space = len(rest) - end
		}
		b.WriteString(cut(rest[end:end+space], maxWord))
		rest = rest[end+space:]
	}
	if b.Len() <= maxText {
		return b.String()
	}
	head := prefix(b.String(), maxText)
	return fmt.Sprintf("%s… (%d bytes in all)", head, len(text))
}

// cut returns a text of up to limit bytes unchanged. Of a longer text it returns at most limit bytes, followed by the
// full length of the text.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s…(%d bytes)", prefix(text, limit), len(text))
}

// prefix returns at most the first limit bytes of the text. It never splits a UTF-8 character.
func prefix(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

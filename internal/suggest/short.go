package suggest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostWord is how many bytes of one word of a user's text a message repeats.
	mostWord = 200
	// mostText is how long a message may be.
	mostText = 1000
)

// Short shortens a message that quotes text of a user: to 200 bytes for each word (a field path can be that long) and 1,000 bytes in all.
// The result states how many bytes the word, or the message, has in full.
func Short(text string) string {
	if len(text) <= mostWord {
		return text
	}
	var b strings.Builder
	for rest := text; rest != "" && b.Len() <= mostText; {
		end := strings.IndexFunc(rest, unicode.IsSpace)
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(cut(rest[:end], mostWord))
		space := strings.IndexFunc(rest[end:], func(c rune) bool { return !unicode.IsSpace(c) })
		if space < 0 {
			space = len(rest) - end
		}
		b.WriteString(cut(rest[end:end+space], mostWord))
		rest = rest[end+space:]
	}
	if b.Len() <= mostText {
		return b.String()
	}
	head := whole(b.String(), mostText)
	return fmt.Sprintf("%s… (%d bytes in all)", head, len(text))
}

// cut returns the beginning of a text that is too long, and how long it is.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s…(%d bytes)", whole(text, most), len(text))
}

// whole returns at most the given number of bytes, and no part of a character.
func whole(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

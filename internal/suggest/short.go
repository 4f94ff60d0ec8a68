package suggest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostWord is the maximum length of one quoted word, in bytes.
	mostWord = 200
	// mostText is the maximum length of a message, in bytes.
	mostText = 1000
)

// Short shortens a message that quotes text of a user: each word to 200 bytes (a field path can be that long), and the message to 1,000
// bytes. Where it cuts, the result gives the full length of the word or the message.
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

// cut returns the first bytes of the text, followed by the full length of the text. At most this many bytes of the text are kept.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s…(%d bytes)", whole(text, most), len(text))
}

// whole returns at most the first most bytes of the text. It never splits a UTF-8 character.
func whole(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

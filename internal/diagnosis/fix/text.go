package fix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostEscaped is how many characters of a text of others a note repeats.
const mostEscaped = 160

// Escape writes text of others so that it can stand in a comment behind a command: on one line, without what a terminal acts on, without what a
// shell acts on where it takes # for a word, as an interactive zsh does, and cut where it is long.
func Escape(text string) string {
	var b strings.Builder
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if n == mostEscaped {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isActive(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case isVisible(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
		n++
	}
	return b.String()
}

// isActive reports whether a shell acts on the character outside of quotes, other than by looking for files.
func isActive(r rune) bool { return strings.ContainsRune("$`;&|<>()'\"\\!", r) }

// isVisible reports whether a terminal shows the character where it stands, and as one.
func isVisible(r rune) bool {
	return r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Bidi_Control, r)
}

// Visible writes text of others for a terminal: control characters, ANSI sequences, line ends and the marks that turn the direction of writing are
// escaped, so that a line of it is one line, and is shown as it is.
func Visible(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !isVisible(r) }) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isVisible(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// plainWord is a word that every shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$`)

// quoted is a word as a shell reads it back.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// sentence fills in a text of the program. What was read from somewhere is escaped.
func sentence(format constant, args []any) string {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case int:
			safe[i] = a
		case Value:
			safe[i] = a.String()
		default:
			safe[i] = Escape(fmt.Sprint(a))
		}
	}
	return fmt.Sprintf(string(format), safe...)
}

func sortedKeys(f Fields) []constant {
	out := make([]constant, 0, len(f))
	for k := range f {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

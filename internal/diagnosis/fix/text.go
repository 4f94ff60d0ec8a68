package fix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxEscaped is the maximum number of characters of untrusted text in a note, counted before they are escaped.
const maxEscaped = 160

// Escape makes untrusted text safe in a comment after a command: on one line, without characters that a terminal or a
// shell acts on, and shortened if it is long. An interactive zsh does not treat # as the start of a comment, so shell
// characters are escaped too.
func Escape(text string) string {
	var b strings.Builder
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if n == maxEscaped {
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

// isActive reports whether the character has an effect outside quotes in a shell, other than globbing.
func isActive(r rune) bool { return strings.ContainsRune("$`;&|<>()'\"\\!", r) }

// isVisible reports whether a terminal shows the character in place, as one character.
func isVisible(r rune) bool {
	return r == ' ' || unicode.IsPrint(r) && !unicode.Is(unicode.Bidi_Control, r)
}

// Visible makes untrusted text safe for a terminal. It escapes control characters, ANSI sequences, line ends and
// bidirectional marks, so a line stays one line and the terminal shows every character.
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

// plainWord matches words that need no quotes in any shell. zsh expands a leading =.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$`)

func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// sentence formats a text of the program. It escapes all arguments except ints and valid Values.
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

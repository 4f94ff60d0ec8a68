package bootstrap

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The patterns of values without quotes.
// Source: the TOML specification 1.0.
var (
	tomlInteger = regexp.MustCompile(`^([+-]?(0|[1-9](_?[0-9])*)|0x[0-9A-Fa-f](_?[0-9A-Fa-f])*|0o[0-7](_?[0-7])*|0b[01](_?[01])*)$`)
	tomlFloat   = regexp.MustCompile(`^[+-]?(inf|nan|(0|[1-9](_?[0-9])*)(\.[0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?)$`)
	tomlTime    = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?|[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)$`)
)

// skip skips one value: a string, an array with all its elements, or a bare word.
func (s *tomlScanner) skip() error {
	switch s.peek() {
	case '"', '\'':
		return s.quoted()
	case '[':
		return s.array()
	}
	start := s.at
	for !s.done() && !strings.ContainsRune(",]}#\n", rune(s.peek())) { // these end a bare word
		s.take()
	}
	word := strings.TrimRight(s.text[start:s.at], " \t")
	if word == "" {
		return nil // the caller reports the missing value with its name
	}
	return checkWord(word)
}

// checkWord rejects a word that is not a valid value without quotes.
func checkWord(word string) error {
	switch {
	case word == "true", word == "false", tomlTime.MatchString(word):
		return nil
	case tomlInteger.MatchString(word):
		if _, err := strconv.ParseInt(strings.ReplaceAll(word, "_", ""), 0, 64); err != nil {
			return fmt.Errorf("the number %s is too large", word)
		}
		return nil
	case tomlFloat.MatchString(word):
		return nil
	}
	return fmt.Errorf("%q is neither a number, true, false nor a time; text needs quotes", word)
}

// array skips [a, b, …].
func (s *tomlScanner) array() error {
	s.take()
	for {
		s.blank()
		if s.peek() == ']' {
			s.take()
			return nil
		}
		if s.done() {
			return errEnd
		}
		if err := s.element(); err != nil {
			return err
		}
		s.blank()
		switch c := s.peek(); {
		case s.done():
			return errEnd
		case c == ',':
			s.take()
		case c != ']':
			return fmt.Errorf("want , or ] in the array, have %q", string(c))
		}
	}
}

// element skips one value of an array.
func (s *tomlScanner) element() error {
	start := s.at
	if s.peek() != '{' {
		if err := s.skip(); err != nil {
			return err
		}
		if s.at == start {
			return fmt.Errorf("want a value in the array, have %q", string(s.peek()))
		}
		return nil
	}
	entries, err := s.inline(nil)
	if err != nil {
		return err
	}
	return checkInline(entries)
}

// quoted skips a string of any of the four kinds.
func (s *tomlScanner) quoted() error {
	mark := s.text[s.at : s.at+1]
	end := mark
	if triple := strings.Repeat(mark, 3); strings.HasPrefix(s.text[s.at:], triple) {
		end = triple
	}
	s.at += len(end)
	for !s.done() {
		if strings.HasPrefix(s.text[s.at:], end) {
			s.at += len(end)
			for range len(end) - 1 { // up to two quotes before the closing three belong to the text
				if s.peek() == mark[0] {
					s.at++
				}
			}
			return nil
		}
		if err := s.letter(mark == `"`, len(end) == 3); err != nil {
			return err
		}
	}
	return errEnd
}

// letter skips one character of a string, or one escape. escapes is true if the string may have escapes, lines if it
// may have several lines.
func (s *tomlScanner) letter(escapes, lines bool) error {
	if s.peek() == '\n' && !lines {
		return errors.New("a string does not end on its line")
	}
	if s.take() == '\\' && escapes {
		return s.escape(lines)
	}
	return nil
}

// escape skips the part of an escape after the backslash. lines is true if the string may have several lines.
func (s *tomlScanner) escape(lines bool) error {
	var digits int
	switch c := s.take(); c {
	case 'b', 't', 'n', 'f', 'r', '"', '\\':
		return nil
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case ' ', '\t', '\n':
		if !lines || !s.continues(c) {
			return errors.New("a backslash precedes a space")
		}
		return nil
	default:
		return fmt.Errorf("unknown escape \\%s; write a backslash as \\\\", string(rune(c)))
	}
	from := s.at
	s.at = min(s.at+digits, len(s.text))
	n, err := strconv.ParseUint(s.text[from:s.at], 16, 32)
	if err != nil || s.at-from != digits || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return fmt.Errorf("the escape \\%s is not a character", s.text[from-1:s.at])
	}
	return nil
}

// continues skips the blanks after a backslash, of which c is the first, and reports whether the line ends after them.
func (s *tomlScanner) continues(c byte) bool {
	for c == ' ' || c == '\t' {
		c = s.take()
	}
	return c == '\n'
}

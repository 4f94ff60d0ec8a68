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

// skipValue skips one value: a string, an array with all its elements, or a bare word.
func (s *tomlScanner) skipValue() error {
	switch s.peek() {
	case '"', '\'':
		return s.skipString()
	case '[':
		return s.skipArray()
	}
	start := s.at
	for !s.atEnd() && !strings.ContainsRune(",]}#\n", rune(s.peek())) { // these end a bare word
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

func (s *tomlScanner) skipArray() error {
	s.take()
	for {
		s.skipBlanks()
		if s.peek() == ']' {
			s.take()
			return nil
		}
		if s.atEnd() {
			return errEnd
		}
		if err := s.skipElement(); err != nil {
			return err
		}
		s.skipBlanks()
		switch c := s.peek(); {
		case s.atEnd():
			return errEnd
		case c == ',':
			s.take()
		case c != ']':
			return fmt.Errorf("want , or ] in the array, have %q", string(c))
		}
	}
}

func (s *tomlScanner) skipElement() error {
	start := s.at
	if s.peek() != '{' {
		if err := s.skipValue(); err != nil {
			return err
		}
		if s.at == start {
			return fmt.Errorf("want a value in the array, have %q", string(s.peek()))
		}
		return nil
	}
	entries, err := s.readInlineTable(nil)
	if err != nil {
		return err
	}
	return checkInline(entries)
}

// skipString skips a string of any of the four kinds: basic or literal, on one line or several.
func (s *tomlScanner) skipString() error {
	quoteMark := s.text[s.at : s.at+1]
	end := quoteMark
	if triple := strings.Repeat(quoteMark, 3); strings.HasPrefix(s.text[s.at:], triple) {
		end = triple
	}
	s.at += len(end)
	for !s.atEnd() {
		if strings.HasPrefix(s.text[s.at:], end) {
			s.at += len(end)
			for range len(end) - 1 { // up to two quotes before the closing three belong to the text
				if s.peek() == quoteMark[0] {
					s.at++
				}
			}
			return nil
		}
		if err := s.skipCharacter(quoteMark == `"`, len(end) == 3); err != nil {
			return err
		}
	}
	return errEnd
}

// skipCharacter skips one character or one escape of a string. hasEscapes is true if the string may have escapes,
// isMultiline if it may have several lines.
func (s *tomlScanner) skipCharacter(hasEscapes, isMultiline bool) error {
	if s.peek() == '\n' && !isMultiline {
		return errors.New("a string does not end on its line")
	}
	if s.take() == '\\' && hasEscapes {
		return s.skipEscape(isMultiline)
	}
	return nil
}

// skipEscape skips the part of an escape after the backslash. isMultiline is true if the string may have several lines.
func (s *tomlScanner) skipEscape(isMultiline bool) error {
	var digits int
	switch c := s.take(); c {
	case 'b', 't', 'n', 'f', 'r', '"', '\\':
		return nil
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case ' ', '\t', '\n':
		if !isMultiline || !s.skipToLineEnd(c) {
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

// skipToLineEnd skips the spaces after a backslash; c is the first of them. It reports whether the line ends after the
// spaces.
func (s *tomlScanner) skipToLineEnd(c byte) bool {
	for c == ' ' || c == '\t' {
		c = s.take()
	}
	return c == '\n'
}

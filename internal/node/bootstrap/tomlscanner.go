package bootstrap

import (
	"errors"
	"fmt"
	"strings"
)

// tomlScanner scans TOML text. It finds the ends of keys and values and checks their syntax. It does not interpret
// values.
type tomlScanner struct {
	text string
	at   int // index of the next byte
	line int // number of the line, from 1
}

var errEnd = errors.New("the text ends in the middle of a setting")

func (s *tomlScanner) atEnd() bool { return s.at >= len(s.text) }

// peek returns the next byte, 0 at the end.
func (s *tomlScanner) peek() byte {
	if s.atEnd() {
		return 0
	}
	return s.text[s.at]
}

func (s *tomlScanner) take() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.at++
	return c
}

// skipBlanks skips spaces, newlines and comments.
func (s *tomlScanner) skipBlanks() {
	for !s.atEnd() {
		switch c := s.peek(); {
		case c == '#':
			s.skipComment()
		case c == ' ' || c == '\t' || c == '\n':
			s.take()
		default:
			return
		}
	}
}

func (s *tomlScanner) skipComment() {
	for !s.atEnd() && s.peek() != '\n' {
		s.take()
	}
}

// skipSpaces skips spaces within a line.
func (s *tomlScanner) skipSpaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.take()
	}
}

// endOfLine returns an error if anything but a comment remains on the line.
func (s *tomlScanner) endOfLine() error {
	s.skipSpaces()
	if s.peek() == '#' {
		s.skipComment()
	}
	if !s.atEnd() && s.peek() != '\n' {
		return fmt.Errorf("unexpected %q after the value", s.peek())
	}
	return nil
}

// readHeader reads [a.b] or [[a.b]].
func (s *tomlScanner) readHeader() (*tomlTable, error) {
	s.take()
	isElement := s.peek() == '['
	if isElement {
		s.take()
	}
	path, err := s.readKeys(']')
	if err != nil {
		return nil, err
	}
	if isElement && s.take() != ']' {
		return nil, errors.New("want ]] at the end of the table's name")
	}
	return &tomlTable{path: path, isElement: isElement}, s.endOfLine()
}

// readEntry reads key = value; an inline table becomes several entries.
func (s *tomlScanner) readEntry() (path []string, entries []tomlEntry, err error) {
	if path, err = s.readKeys('='); err != nil {
		return nil, nil, err
	}
	if entries, err = s.readValue(path); err != nil {
		return nil, nil, err
	}
	return path, entries, s.endOfLine()
}

// readKeys reads a dotted key and the next character, which must be end, and returns the names of the key.
func (s *tomlScanner) readKeys(end byte) ([]string, error) {
	var path []string
	for {
		s.skipSpaces()
		key, err := s.readKey()
		if err != nil {
			return nil, err
		}
		path = append(path, key)
		s.skipSpaces()
		switch c := s.take(); {
		case c == end:
			return path, nil
		case c != '.':
			return nil, fmt.Errorf("want %q after the key %s", end, strings.Join(path, "."))
		}
	}
}

// readKey reads one name of a dotted key, quoted or bare.
func (s *tomlScanner) readKey() (string, error) {
	if c := s.peek(); c == '"' || c == '\'' {
		start := s.at
		if strings.HasPrefix(s.text[start:], strings.Repeat(string(rune(c)), 3)) {
			return "", errors.New("the name of a setting must not have three quotes")
		}
		if err := s.skipString(); err != nil {
			return "", err
		}
		return unquoteKey(s.text[start:s.at]), nil
	}
	start := s.at
	for !s.atEnd() && isBare(s.peek()) {
		s.take()
	}
	if s.at == start {
		return "", fmt.Errorf("want the name of a setting, have %q", string(s.peek()))
	}
	return s.text[start:s.at], nil
}

func (s *tomlScanner) readValue(path []string) ([]tomlEntry, error) {
	s.skipSpaces()
	if s.peek() == '{' {
		return s.readInlineTable(path)
	}
	start := s.at
	if err := s.skipValue(); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(s.text[start:s.at])
	if text == "" {
		return nil, fmt.Errorf("the setting %s has no value", strings.Join(path, "."))
	}
	return []tomlEntry{{path, text}}, nil
}

// readInlineTable reads { a = 1, b.c = 2 }, and returns its keys as entries below path.
func (s *tomlScanner) readInlineTable(path []string) ([]tomlEntry, error) {
	s.take()
	var out []tomlEntry
	s.skipSpaces()
	if s.peek() == '}' {
		s.take()
		return out, nil
	}
	for {
		keys, err := s.readKeys('=')
		if err != nil {
			return nil, err
		}
		entries, err := s.readValue(append(path[:len(path):len(path)], keys...)) // append copies path
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
		s.skipSpaces()
		switch c := s.take(); c {
		case '}':
			return out, nil
		case ',':
		default:
			return nil, errors.New("want , or } in the inline table")
		}
	}
}

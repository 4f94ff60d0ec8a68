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

// done reports whether the whole text is read.
func (s *tomlScanner) done() bool { return s.at >= len(s.text) }

// peek returns the next byte, 0 at the end.
func (s *tomlScanner) peek() byte {
	if s.done() {
		return 0
	}
	return s.text[s.at]
}

// take returns the next byte and moves past it.
func (s *tomlScanner) take() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.at++
	return c
}

// blank skips spaces, newlines and comments.
func (s *tomlScanner) blank() {
	for !s.done() {
		switch c := s.peek(); {
		case c == '#':
			s.comment()
		case c == ' ' || c == '\t' || c == '\n':
			s.take()
		default:
			return
		}
	}
}

// comment skips a comment up to the end of its line.
func (s *tomlScanner) comment() {
	for !s.done() && s.peek() != '\n' {
		s.take()
	}
}

// gap skips spaces within a line.
func (s *tomlScanner) gap() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.take()
	}
}

// endOfLine returns an error if anything but a comment remains on the line.
func (s *tomlScanner) endOfLine() error {
	s.gap()
	if s.peek() == '#' {
		s.comment()
	}
	if !s.done() && s.peek() != '\n' {
		return fmt.Errorf("unexpected %q after the value", s.peek())
	}
	return nil
}

// header reads [a.b] or [[a.b]].
func (s *tomlScanner) header() (*tomlTable, error) {
	s.take()
	list := s.peek() == '['
	if list {
		s.take()
	}
	path, err := s.keys(']')
	if err != nil {
		return nil, err
	}
	if list && s.take() != ']' {
		return nil, errors.New("want ]] at the end of the table's name")
	}
	return &tomlTable{path: path, list: list}, s.endOfLine()
}

// entry reads key = value; an inline table becomes several entries.
func (s *tomlScanner) entry() (path []string, entries []tomlEntry, err error) {
	if path, err = s.keys('='); err != nil {
		return nil, nil, err
	}
	if entries, err = s.value(path); err != nil {
		return nil, nil, err
	}
	return path, entries, s.endOfLine()
}

// keys reads a dotted key and the character end after it, and returns the names of the key.
func (s *tomlScanner) keys(end byte) ([]string, error) {
	var path []string
	for {
		s.gap()
		key, err := s.key()
		if err != nil {
			return nil, err
		}
		path = append(path, key)
		s.gap()
		switch c := s.take(); {
		case c == end:
			return path, nil
		case c != '.':
			return nil, fmt.Errorf("want %q after the key %s", end, strings.Join(path, "."))
		}
	}
}

// key reads one name of a dotted key, quoted or bare.
func (s *tomlScanner) key() (string, error) {
	if c := s.peek(); c == '"' || c == '\'' {
		start := s.at
		if strings.HasPrefix(s.text[start:], strings.Repeat(string(rune(c)), 3)) {
			return "", errors.New("the name of a setting must not have three quotes")
		}
		if err := s.quoted(); err != nil {
			return "", err
		}
		return unquoteKey(s.text[start:s.at]), nil
	}
	start := s.at
	for !s.done() && isBare(s.peek()) {
		s.take()
	}
	if s.at == start {
		return "", fmt.Errorf("want the name of a setting, have %q", string(s.peek()))
	}
	return s.text[start:s.at], nil
}

// value reads the value after "path =".
func (s *tomlScanner) value(path []string) ([]tomlEntry, error) {
	s.gap()
	if s.peek() == '{' {
		return s.inline(path)
	}
	start := s.at
	if err := s.skip(); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(s.text[start:s.at])
	if text == "" {
		return nil, fmt.Errorf("the setting %s has no value", strings.Join(path, "."))
	}
	return []tomlEntry{{path, text}}, nil
}

// inline reads { a = 1, b.c = 2 }, and returns its keys as entries below path.
func (s *tomlScanner) inline(path []string) ([]tomlEntry, error) {
	s.take()
	var out []tomlEntry
	s.gap()
	if s.peek() == '}' {
		s.take()
		return out, nil
	}
	for {
		keys, err := s.keys('=')
		if err != nil {
			return nil, err
		}
		entries, err := s.value(append(path[:len(path):len(path)], keys...))
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
		s.gap()
		switch c := s.take(); c {
		case '}':
			return out, nil
		case ',':
		default:
			return nil, errors.New("want , or } in the inline table")
		}
	}
}

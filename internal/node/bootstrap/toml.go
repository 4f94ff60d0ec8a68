package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tomlDoc is a TOML document, parsed into tables and their keys as needed to merge Joiner's settings into the user's.
// Values keep their text. Comments are lost.
type tomlDoc struct {
	tables  []*tomlTable
	blocked []string // first parent of a key that set was given, if it is not a table; nil: none
}

type tomlTable struct {
	path      []string // nil: the table of the keys before the first header
	isElement bool     // the table is one element of an array of tables, [[path]]; comments call the array a list
	entries   []tomlEntry
}

type tomlEntry struct {
	path  []string // path below the table: one name, or several for a dotted key
	value string   // as written in the document
}

// parseTOML parses a document. Dotted keys and inline tables become separate tables, so that their keys can be set one
// by one. parseTOML rejects a text that TOML 1.0 rejects, because the instance would reject that text too. But it
// accepts impossible dates and times, such as a 13th month.
func parseTOML(text string) (*tomlDoc, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		return nil, fmt.Errorf("line %d: it has the control character %q", 1+strings.Count(text[:i], "\n"), text[i])
	}
	s := &tomlScanner{text: text, line: 1}
	names := newTOMLNames()
	doc := &tomlDoc{}
	table := &tomlTable{}
	doc.tables = append(doc.tables, table)
	for {
		s.skipBlanks()
		if s.atEnd() {
			return doc, nil
		}
		if s.peek() == '[' {
			next, err := s.readHeader()
			if err == nil {
				err = names.addHeader(next.path, next.isElement)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", s.line, err)
			}
			table = doc.open(next)
			continue
		}
		path, entries, err := s.readEntry()
		if err == nil {
			err = cmp.Or(names.addKey(path), checkInline(entries))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		}
		for _, e := range entries {
			doc.put(table, e)
		}
	}
}

// open returns the table of the document at t's path, for the keys that follow its header. If there is none yet, or if
// t is an element of a list or below one, open adds t to the document and returns t.
func (d *tomlDoc) open(t *tomlTable) *tomlTable {
	if !t.isElement && !d.inList(t.path) {
		if i := d.index(t.path); i >= 0 {
			return d.tables[i]
		}
	}
	d.tables = append(d.tables, t)
	return t
}

// put adds the entry, which was read in table t. An entry with the dotted key b.c moves to the table b below t. In a
// list the entry stays in t, because the elements of a list all have the same path.
func (d *tomlDoc) put(t *tomlTable, e tomlEntry) {
	last := len(e.path) - 1
	if last > 0 && !t.isElement && !d.inList(t.path) {
		t = d.open(&tomlTable{path: slices.Concat(t.path, e.path[:last])})
		e.path = e.path[last:]
	}
	t.entries = append(t.entries, e)
}

// index returns the index of the table at path; -1 if there is none, or only a list.
func (d *tomlDoc) index(path []string) int {
	return slices.IndexFunc(d.tables, func(t *tomlTable) bool { return !t.isElement && slices.Equal(t.path, path) })
}

// inList reports whether the path is that of a list, or leads into an element of a list.
func (d *tomlDoc) inList(path []string) bool {
	return slices.ContainsFunc(d.tables, func(t *tomlTable) bool { return t.isElement && isWithin(path, t.path) })
}

// set sets the key, bare or quoted, in the table to value, which must be TOML. It removes previous values of the key
// and everything below the key. If a parent of the key is not a table, set records the first such parent in d.blocked.
func (d *tomlDoc) set(table, key, value string) {
	path := append(splitDotted(table), unquoteKey(key))
	if parent := d.obstacle(path); parent != nil && d.blocked == nil {
		d.blocked = parent
	}
	d.dropPath(path)
	t := d.open(&tomlTable{path: splitDotted(table)})
	t.entries = append(t.entries, tomlEntry{path[len(path)-1:], value})
}

func (d *tomlDoc) drop(table string) { d.dropPath(splitDotted(table)) }

// dropPath removes the table or key at the path and everything below it.
func (d *tomlDoc) dropPath(path []string) {
	d.tables = slices.DeleteFunc(d.tables, func(t *tomlTable) bool { return isWithin(t.path, path) })
	for _, t := range d.tables {
		if t.isElement {
			continue
		}
		t.entries = slices.DeleteFunc(t.entries, func(e tomlEntry) bool {
			return isWithin(slices.Concat(t.path, e.path), path)
		})
	}
}

// isWithin reports whether path equals ancestor or begins with it.
func isWithin(path, ancestor []string) bool {
	return len(path) >= len(ancestor) && slices.Equal(path[:len(ancestor)], ancestor)
}

func splitDotted(table string) []string { return strings.Split(table, ".") }

// String returns the document as TOML. Tables without keys are left out, unless they are elements of a list.
func (d *tomlDoc) String() string {
	var b strings.Builder
	for _, t := range d.tables {
		if len(t.entries) == 0 && !t.isElement {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		switch {
		case t.isElement:
			b.WriteString("[[" + joinKeys(t.path) + "]]\n")
		case t.path != nil:
			b.WriteString("[" + joinKeys(t.path) + "]\n")
		}
		for _, e := range t.entries {
			b.WriteString(joinKeys(e.path) + " = " + e.value + "\n")
		}
	}
	return b.String()
}

func joinKeys(path []string) string {
	out := make([]string, len(path))
	for i, k := range path {
		out[i] = formatKey(k)
	}
	return strings.Join(out, ".")
}

// formatKey returns the key, quoted unless TOML allows a bare key.
func formatKey(k string) string {
	isBareKey := k != ""
	for i := range len(k) {
		isBareKey = isBareKey && isBare(k[i])
	}
	if isBareKey {
		return k
	}
	return quoteTOML(k)
}

// isControl reports whether TOML forbids the character everywhere.
func isControl(c rune) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }

// isBare reports whether TOML allows the character in a key without quotes.
func isBare(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '_' }

// unquoteKey returns the name that a quoted or bare key stands for.
func unquoteKey(k string) string {
	if s, err := strconv.Unquote(k); err == nil && strings.HasPrefix(k, `"`) {
		return s
	}
	return strings.Trim(k, "'")
}

package bootstrap

import (
	"fmt"
	"slices"
	"strings"
)

// tomlNames records the names that a TOML document has defined so far, to reject duplicate definitions. A TOML parser
// on the instance would reject them too, and the node would never join.
// Source: the TOML specification 1.0, "Table" and "Array of Tables".
type tomlNames struct {
	root *tomlName
	open *tomlName // the table that following keys belong to
}

type tomlName struct {
	kind  tomlKind
	below map[string]*tomlName // the names below this name, by the next part of the path
}

// tomlKind is the kind of definition of a name. It determines what may be added to the name.
type tomlKind int

// The kinds of definitions.
const (
	impliedTable tomlKind = iota // defined as a part of a longer header
	headedTable                  // defined by its own header
	dottedTable                  // defined as a part of a dotted key
	listOfTables                 // defined by [[ ]]; tomlName.below then holds the names of the last element
	plainValue                   // defined by a key; the value may be an inline table
)

func newTOMLNames() *tomlNames {
	root := &tomlName{kind: headedTable, below: map[string]*tomlName{}}
	return &tomlNames{root: root, open: root}
}

// addHeader records [path] or, if isElement is true, [[path]]. Following keys belong to that table.
func (n *tomlNames) addHeader(path []string, isElement bool) error {
	last := len(path) - 1
	at := n.root
	for i, part := range path[:last] {
		next := at.child(part, impliedTable)
		if next.kind == plainValue {
			return fmt.Errorf("%s is a value and has no tables", joinKeys(path[:i+1]))
		}
		at = next
	}
	old, isKnown := at.below[path[last]]
	switch {
	case !isKnown && isElement:
		n.open = at.child(path[last], listOfTables)
	case !isKnown:
		n.open = at.child(path[last], headedTable)
	case isElement && old.kind == listOfTables:
		old.below = map[string]*tomlName{}
		n.open = old
	case !isElement && old.kind == impliedTable:
		old.kind = headedTable
		n.open = old
	default:
		return fmt.Errorf("%s is defined a second time", joinKeys(path))
	}
	return nil
}

// addKey records a key of the open table.
func (n *tomlNames) addKey(path []string) error {
	last := len(path) - 1
	at := n.open
	for i, part := range path[:last] {
		next := at.child(part, dottedTable)
		if next.kind != dottedTable {
			return fmt.Errorf("%s is defined elsewhere, so no key can be added to it here", joinKeys(path[:i+1]))
		}
		at = next
	}
	if at.below[path[last]] != nil {
		return fmt.Errorf("%s is defined a second time", joinKeys(path))
	}
	at.child(path[last], plainValue)
	return nil
}

// checkInline returns an error if the entries of an inline table define a key twice.
func checkInline(entries []tomlEntry) error {
	for i, e := range entries {
		for _, earlier := range entries[:i] {
			if isWithin(e.path, earlier.path) || isWithin(earlier.path, e.path) {
				return fmt.Errorf("%s is defined a second time", joinKeys(e.path))
			}
		}
	}
	return nil
}

// child returns n.below[part], and creates it with the kind if it is missing.
func (n *tomlName) child(part string, kind tomlKind) *tomlName {
	if c := n.below[part]; c != nil {
		return c
	}
	c := &tomlName{kind: kind, below: map[string]*tomlName{}}
	n.below[part] = c
	return c
}

// obstacle returns the first parent of path that is a value or a list of tables. No key can be set below such a parent.
// It returns nil if there is none.
func (d *tomlDoc) obstacle(path []string) []string {
	for i := 1; i < len(path); i++ {
		parent := path[:i]
		for _, t := range d.tables {
			if t.isElement && slices.Equal(t.path, parent) {
				return parent
			}
			isParent := func(e tomlEntry) bool { return slices.Equal(slices.Concat(t.path, e.path), parent) }
			if !t.isElement && !d.inList(t.path) && slices.ContainsFunc(t.entries, isParent) {
				return parent
			}
		}
	}
	return nil
}

// quoteTOML returns the text as a basic string of TOML. It does not use Go's quoting, because TOML lacks some of Go's
// escapes.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

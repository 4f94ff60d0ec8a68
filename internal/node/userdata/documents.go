package userdata

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	yamlv3 "go.yaml.in/yaml/v3"
)

// DecodeTOML parses a text; ok is false if it is not valid TOML.
func DecodeTOML(body string) (doc map[string]any, ok bool) {
	_, err := Guarded(func() (any, error) { return nil, toml.Unmarshal([]byte(body), &doc) })
	return doc, err == nil
}

// List returns the value if it is a list, else a list of this one value.
func List(value any) []any {
	if l, ok := value.([]any); ok {
		return l
	}
	return []any{value}
}

// maxSpots limits the number of recorded positions in a document, and maxDepth the number of dots in their paths. The
// limits protect the controller from a hostile document.
const (
	maxSpots = 2000
	maxDepth = 20
)

// SpotsOfTOML returns the positions of tables and settings, by path: at most about maxSpots.
func SpotsOfTOML(t Text) map[string]Spot {
	out := map[string]Spot{}
	_, _ = Guarded(func() (any, error) {
		p := unstable.Parser{}
		p.Reset([]byte(t.Body))
		table := ""
		for p.NextExpression() && len(out) < maxSpots {
			e := p.Expression()
			switch e.Kind {
			case unstable.Table, unstable.ArrayTable:
				table = addKeys(&p, e.Key(), "", t.At, out)
			case unstable.KeyValue:
				addValue(&p, e, table, t.At, out)
			default:
			}
		}
		return nil, p.Error()
	})
	return out
}

// addValue records the position of a key, and those of the keys of its inline table.
func addValue(p *unstable.Parser, e *unstable.Node, table string, at Spot, out map[string]Spot) {
	path := addKeys(p, e.Key(), table, at, out)
	if value := e.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			if child := it.Node(); child.Kind == unstable.KeyValue {
				addValue(p, child, path, at, out)
			}
		}
	}
}

// addKeys records the positions of the parts of a dotted key below path, and returns the whole path of the key.
func addKeys(p *unstable.Parser, it unstable.Iterator, path string, at Spot, out map[string]Spot) string {
	for it.Next() {
		n := it.Node()
		path = strings.TrimPrefix(path+"."+string(n.Data), ".")
		if _, known := out[path]; !known {
			start := p.Shape(n.Raw).Start
			out[path] = Spot{Part: at.Part, Line: start.Line, Column: start.Column}
		}
	}
	return path
}

// AsType reports whether errors.As finds a T in err, and stores it in to.
func AsType[T error](err error, to *T) bool { return errors.As(err, to) }

// FirstKnown returns a, or b if a is unknown.
func FirstKnown(a, b Spot) Spot {
	if a == (Spot{}) {
		return b
	}
	return a
}

// InTable returns " in " and the table's path for a problem's text; empty for the top level.
func InTable(table string) string {
	if table == "" {
		return ""
	}
	return " in " + table
}

// Dig returns the value at a path of tables, nil if there is none.
func Dig(value any, path ...string) any {
	for _, key := range path {
		table, _ := value.(map[string]any)
		value = table[key]
	}
	return value
}

// yamlLine matches the line number in the error of a YAML parser.
var yamlLine = regexp.MustCompile(`line (\d+)`)

// SpotOfYAML returns the position at which a YAML parser stopped, or at if err does not contain its line. at is the
// position of the document.
func SpotOfYAML(err error, at Spot) Spot {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return Spot{Part: at.Part, Line: at.Line + n - 1}
		}
	}
	return at
}

// PlainYAML returns the message of a YAML parser in parentheses; empty if the message may quote the parsed text.
func PlainYAML(err error) string {
	_, what, ok := strings.Cut(err.Error(), "line ")
	if _, rest, cut := strings.Cut(what, ": "); ok && cut && !strings.ContainsAny(rest, "\"`\n!") {
		return " (" + rest + ")"
	}
	return ""
}

// SpotsOfYAML returns the positions of the fields of a document, by path: at most about maxSpots.
func SpotsOfYAML(t Text) map[string]Spot {
	out := map[string]Spot{}
	var doc yamlv3.Node
	_, err := Guarded(func() (any, error) { return nil, yamlv3.Unmarshal([]byte(t.Body), &doc) })
	if err == nil && len(doc.Content) == 1 {
		addSpots(doc.Content[0], "", t.At, out)
	}
	return out
}

// addSpots records the positions of the fields and list entries below the node n, whose path is path.
func addSpots(n *yamlv3.Node, path string, at Spot, out map[string]Spot) {
	if len(out) > maxSpots || strings.Count(path, ".") > maxDepth {
		return
	}
	spot := func(n *yamlv3.Node) Spot { return Spot{Part: at.Part, Line: at.Line + n.Line - 1, Column: n.Column} }
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			child := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			out[child] = spot(n.Content[i])
			addSpots(n.Content[i+1], child, at, out)
		}
	case yamlv3.SequenceNode:
		for i, entry := range n.Content {
			child := path + "." + strconv.Itoa(i)
			out[child] = spot(entry)
			addSpots(entry, child, at, out)
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
}

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
	_, err := CatchPanic(func() (any, error) { return nil, toml.Unmarshal([]byte(body), &doc) })
	return doc, err == nil
}

// List returns the value if it is a list, and otherwise a list with the value as its only element.
func List(value any) []any {
	if l, ok := value.([]any); ok {
		return l
	}
	return []any{value}
}

// maxPositions limits the number of recorded positions in a document. maxDepth limits the number of dots in the path of
// a position in YAML. Both protect the controller from a hostile document.
const (
	maxPositions = 2000
	maxDepth     = 20
)

// PositionsOfTOML returns the positions of tables and settings, by path. After maxPositions, it reads no further table
// or setting. t must begin at line 1 of its part.
func PositionsOfTOML(t Text) map[string]Position {
	out := map[string]Position{}
	_, _ = CatchPanic(func() (any, error) {
		p := unstable.Parser{}
		p.Reset([]byte(t.Body))
		table := ""
		for p.NextExpression() && len(out) < maxPositions {
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
func addValue(p *unstable.Parser, e *unstable.Node, table string, at Position, out map[string]Position) {
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
func addKeys(p *unstable.Parser, it unstable.Iterator, path string, at Position, out map[string]Position) string {
	for it.Next() {
		n := it.Node()
		path = strings.TrimPrefix(path+"."+string(n.Data), ".")
		if _, known := out[path]; !known {
			start := p.Shape(n.Raw).Start
			out[path] = Position{Part: at.Part, Line: start.Line, Column: start.Column}
		}
	}
	return path
}

// AsType reports whether errors.As finds a T in err, and stores it in target.
func AsType[T error](err error, target *T) bool { return errors.As(err, target) }

// FirstKnown returns a, or b if a is unknown.
func FirstKnown(a, b Position) Position {
	if a == (Position{}) {
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

// ValueAt returns the value at a path of tables, nil if there is none.
func ValueAt(value any, path ...string) any {
	for _, key := range path {
		table, _ := value.(map[string]any)
		value = table[key]
	}
	return value
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// YAMLErrorPosition returns the position at which a YAML parser stopped. If err contains no line number, it returns
// start, the position of the document.
func YAMLErrorPosition(err error, start Position) Position {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return Position{Part: start.Part, Line: start.Line + n - 1}
		}
	}
	return start
}

// SafeYAMLMessage returns the message of a YAML parser, in parentheses. It is empty if the message may quote the parsed
// text: it has quotes, a tag (!) or several lines.
func SafeYAMLMessage(err error) string {
	_, fromNumber, hasNumber := strings.Cut(err.Error(), "line ")
	if _, rest, ok := strings.Cut(fromNumber, ": "); hasNumber && ok && !strings.ContainsAny(rest, "\"`\n!") {
		return " (" + rest + ")"
	}
	return ""
}

// PositionsOfYAML returns the positions of the fields of a document, by path. After maxPositions, it descends into no
// further field.
func PositionsOfYAML(t Text) map[string]Position {
	out := map[string]Position{}
	var doc yamlv3.Node
	_, err := CatchPanic(func() (any, error) { return nil, yamlv3.Unmarshal([]byte(t.Body), &doc) })
	if err == nil && len(doc.Content) == 1 {
		addPositions(doc.Content[0], "", t.At, out)
	}
	return out
}

// addPositions records the positions of the fields and list entries below the node n, whose path is path.
func addPositions(n *yamlv3.Node, path string, at Position, out map[string]Position) {
	if len(out) > maxPositions || strings.Count(path, ".") > maxDepth {
		return
	}
	position := func(of *yamlv3.Node) Position {
		return Position{Part: at.Part, Line: at.Line + of.Line - 1, Column: of.Column}
	}
	switch n.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			below := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			out[below] = position(n.Content[i])
			addPositions(n.Content[i+1], below, at, out)
		}
	case yamlv3.SequenceNode:
		for i, entry := range n.Content {
			below := path + "." + strconv.Itoa(i)
			out[below] = position(entry)
			addPositions(entry, below, at, out)
		}
	case yamlv3.DocumentNode, yamlv3.ScalarNode, yamlv3.AliasNode:
	}
}

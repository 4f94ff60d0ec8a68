package fix

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Tree is a part of a patch or policy document: Fields, a List, a Value, or Labels.
type Tree interface {
	tree() any            // the tree for encoding/json
	invalid() []Value     // the invalid values in the tree
	hasPlaceholder() bool // the tree contains a placeholder
}

// Fields is an object whose field names are the program's own.
type Fields map[constant]Tree

// List is a list.
type List []Tree

// Labels is an object with one field. The field name is a label key that the user chose.
type Labels struct{ Key, Value Value }

// At puts a tree at a path of fields: At(v, "spec", "role") is {"spec":{"role":v}}. Without a path, At is nil.
func At(t Tree, path ...constant) Fields {
	out := t
	for i := len(path) - 1; i > 0; i-- {
		out = Fields{path[i]: out}
	}
	if len(path) == 0 {
		return nil
	}
	return Fields{path[0]: out}
}

// Path is a JSON pointer with list indexes: Path("/spec/list/%d/key", 3).
func Path(format constant, indexes ...int) Value {
	args := make([]any, len(indexes))
	for i, index := range indexes {
		args[i] = index
	}
	return Value{text: fmt.Sprintf(string(format), args...), valid: true}
}

// Document is a tree as JSON in one word of a command. If the tree has invalid values, Document returns the first.
func Document(t Tree) Value {
	if bad := t.invalid(); len(bad) > 0 {
		return bad[0]
	}
	return Value{text: marshal(t), valid: true, isPlaceholder: t.hasPlaceholder()}
}

// marshal returns the tree as one line of JSON, with <, > and & unescaped.
func marshal(t Tree) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t.tree()); err != nil {
		return "" // maps, lists, texts and numbers are always JSON
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func (v Value) tree() any {
	if v.data != nil {
		return v.data
	}
	return v.text
}

func (v Value) invalid() []Value {
	if v.valid {
		return nil
	}
	return []Value{v}
}

func (v Value) hasPlaceholder() bool { return v.isPlaceholder }

func (f Fields) tree() any {
	out := make(map[string]any, len(f))
	for k, t := range f {
		out[string(k)] = t.tree()
	}
	return out
}

func (f Fields) invalid() []Value {
	var out []Value
	for _, k := range sortedKeys(f) {
		out = append(out, f[k].invalid()...)
	}
	return out
}

func (f Fields) hasPlaceholder() bool {
	for _, t := range f {
		if t.hasPlaceholder() {
			return true
		}
	}
	return false
}

func (l List) tree() any {
	out := make([]any, len(l))
	for i, t := range l {
		out[i] = t.tree()
	}
	return out
}

func (l List) invalid() []Value {
	var out []Value
	for _, t := range l {
		out = append(out, t.invalid()...)
	}
	return out
}

func (l List) hasPlaceholder() bool {
	for _, t := range l {
		if t.hasPlaceholder() {
			return true
		}
	}
	return false
}

func (l Labels) tree() any { return map[string]any{l.Key.text: l.Value.tree()} }

func (l Labels) invalid() []Value { return append(l.Key.invalid(), l.Value.invalid()...) }

func (l Labels) hasPlaceholder() bool { return l.Key.isPlaceholder || l.Value.isPlaceholder }

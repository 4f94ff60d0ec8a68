package kube

import (
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/suggest"
)

var unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)

// typo is a field that a kind does not have.
type typo struct {
	path string // "spec.template.spec.requirments"
	near string // the field beside it that was probably meant, by its path; empty if none is like it
}

// typoOf finds out whether a problem of strict decoding is about an unknown field.
func typoOf(problem error, object client.Object) (typo, bool) {
	match := unknownField.FindStringSubmatch(problem.Error())
	if match == nil {
		return typo{}, false
	}
	out := typo{path: match[1]}
	parent, name := "", out.path
	if i := strings.LastIndex(out.path, "."); i >= 0 {
		parent, name = out.path[:i], out.path[i+1:]
	}
	near := suggest.Nearest(name, fieldsAt(reflect.TypeOf(object), parent))
	if near == "" {
		return out, true
	}
	out.near = near
	if parent != "" {
		out.near = parent + "." + near
	}
	return out, true
}

// sentence says what is wrong.
func (t typo) sentence() string {
	text := "there is no field " + t.path
	return text + t.hint()
}

// hint says in brackets what was meant, or where the field is now; empty if neither is known.
func (t typo) hint() string {
	switch moved := movedFields[t.path]; {
	case t.near != "" && t.near == t.path:
		return ""
	case moved != "":
		return " (" + moved + ")"
	case t.near != "":
		return " (is " + lastKey(t.near) + " meant?)"
	}
	return ""
}

// fieldsAt returns the names of the fields that objects of the type have at a path.
func fieldsAt(typ reflect.Type, path string) []string {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		name, _, _ = strings.Cut(name, "[")
		typ = fieldType(plainType(typ), name)
		if typ == nil {
			return nil
		}
	}
	var out []string
	visitFields(plainType(typ), func(name string, _ reflect.Type) { out = append(out, name) })
	return out
}

// plainType is the type behind pointers and lists.
func plainType(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	return typ
}

func fieldType(typ reflect.Type, name string) reflect.Type {
	var out reflect.Type
	visitFields(typ, func(have string, of reflect.Type) {
		if have == name {
			out = of
		}
	})
	return out
}

// visitFields visits the fields of a struct by their names in JSON, with those of structs that are part of it.
func visitFields(typ reflect.Type, visit func(name string, typ reflect.Type)) {
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			visitFields(plainType(f.Type), visit)
		case name != "" && name != "-":
			visit(name, f.Type)
		}
	}
}

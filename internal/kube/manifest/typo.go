package manifest

import (
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/conversion"
	"github.com/joiner-sh/joiner/internal/suggest"
)

var unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)

// typo is an unknown field of an object.
type typo struct {
	path string // path of the field: "spec.template.spec.requirments"
	near string // path of the most similar known field at the same place; empty if none is similar
}

// typoOf returns the unknown field that an error of strict decoding reports; false if the error reports something else.
func typoOf(strictError error, object client.Object) (typo, bool) {
	match := unknownField.FindStringSubmatch(strictError.Error())
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

func (t typo) sentence() string {
	text := "there is no field " + t.path
	return text + t.hint()
}

// hint returns, in parentheses, the field that was probably meant or the current place of the field; empty if neither
// is known.
func (t typo) hint() string {
	switch moved := movedFields[t.path]; {
	case t.near != "" && t.near == t.path: // the same name would not help
		return ""
	case moved != "":
		return " (" + moved + ")"
	case t.near != "":
		return " (did you mean " + lastKey(t.near) + "?)"
	}
	return ""
}

// fieldsAt returns the JSON names of the fields at a path of the type.
func fieldsAt(typ reflect.Type, path string) []string {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		name, _, _ = strings.Cut(name, "[")
		typ = fieldType(conversion.ElementType(typ), name)
		if typ == nil {
			return nil
		}
	}
	var out []string
	conversion.VisitFields(conversion.ElementType(typ), func(name string, _ reflect.Type) { out = append(out, name) })
	return out
}

// fieldType returns the type of the field with this JSON name; nil if there is none.
func fieldType(typ reflect.Type, name string) reflect.Type {
	var out reflect.Type
	conversion.VisitFields(typ, func(fieldName string, field reflect.Type) {
		if fieldName == name {
			out = field
		}
	})
	return out
}

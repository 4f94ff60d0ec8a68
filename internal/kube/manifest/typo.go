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
		typ = fieldType(conversion.ElementType(typ), name)
		if typ == nil {
			return nil
		}
	}
	var out []string
	conversion.VisitFields(conversion.ElementType(typ), func(name string, _ reflect.Type) { out = append(out, name) })
	return out
}

func fieldType(typ reflect.Type, name string) reflect.Type {
	var out reflect.Type
	conversion.VisitFields(typ, func(have string, of reflect.Type) {
		if have == name {
			out = of
		}
	})
	return out
}

package diagnosis

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkShape checks a JSON tree against the type into which it will be decoded. Its error names the JSON path of the
// first difference, while the errors of encoding/json name Go types.
func checkShape(path string, tree any, t reflect.Type) error {
	if tree == nil {
		return nil // decoding treats null like an absent field; checkList rejects null in lists
	}
	wrong := func(want string) error {
		return fmt.Errorf("%s is %s, and should be %s", OrElse(path, "it"), kindOf(tree), want)
	}
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		return checkShape(path, tree, t.Elem())
	case kind == reflect.Slice:
		list, ok := tree.([]any)
		if !ok {
			return wrong("a list")
		}
		return checkList(path, list, t.Elem())
	case kind == reflect.Map, kind == reflect.Struct && t != reflect.TypeFor[time.Time]():
		object, ok := tree.(map[string]any)
		if !ok {
			return wrong("an object")
		}
		return checkFields(path, object, t)
	}
	if want := expectedKind(tree, t); want != "" {
		return wrong(want)
	}
	return nil
}

// expectedKind returns the kind that a scalar should have, as an error names it; empty if the scalar has type t.
func expectedKind(tree any, t reflect.Type) string {
	text, isText := tree.(string)
	number, isNumber := tree.(json.Number)
	_, isBool := tree.(bool)
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		if _, err := time.Parse(time.RFC3339, text); !isText || err != nil {
			return "a time, for instance 2026-05-01T12:00:00Z"
		}
	case kind == reflect.String && !isText:
		return "a text"
	case kind == reflect.Bool && !isBool:
		return "true or false"
	case kind == reflect.Int, kind == reflect.Int32, kind == reflect.Int64:
		if _, err := strconv.ParseInt(number.String(), 10, t.Bits()); !isNumber || err != nil {
			return "a whole number"
		}
	}
	return ""
}

func checkList(path string, list []any, t reflect.Type) error {
	for i, element := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if element == nil {
			return fmt.Errorf("%s is null", at)
		}
		if err := checkShape(at, element, t); err != nil {
			return err
		}
	}
	return nil
}

// checkFields checks the fields of an object against those of the type. Like decoding, it ignores fields that the type
// does not have.
func checkFields(path string, object map[string]any, t reflect.Type) error {
	fields := map[string]reflect.Type{}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = t.Field(i).Type
		}
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys) // so that of several mistakes, the same one is reported each time
	for _, key := range keys {
		field := fields[key]
		if t.Kind() == reflect.Map {
			field = t.Elem()
		}
		if field == nil {
			continue
		}
		if err := checkShape(strings.TrimPrefix(path+"."+key, "."), object[key], field); err != nil {
			return err
		}
	}
	return nil
}

func kindOf(tree any) string {
	switch v := tree.(type) {
	case string:
		return "a text"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "the number " + v.String()
	case []any:
		return "a list"
	}
	return "an object"
}

// markNulls marks items whose value is null as NotAsked. Decoding would make null an empty list, which counts as known.
func markNulls(tree any) {
	switch t := tree.(type) {
	case []any:
		for _, child := range t {
			markNulls(child)
		}
	case map[string]any:
		for _, child := range t {
			markNulls(child)
		}
		value, hasValue := t["value"]
		_, isItem := t["source"]
		if absent, _ := t["absent"].(string); isItem && hasValue && value == nil && absent == "" {
			t["absent"], t["why"] = string(NotAsked), "the bundle has null for it"
		}
	}
}

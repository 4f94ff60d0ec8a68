package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Difference is one path at which two definitions differ.
type Difference struct {
	// Path in the definition, for instance spec.names.shortNames or, in a schema,
	// …properties.spec.properties.weight.maximum.
	Path string
	// Ours and Theirs are the values at the path; nil if absent.
	Ours, Theirs any
}

// String returns the path and both values in one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: ours %s, theirs %s", d.Path, text(d.Ours), text(d.Theirs))
}

// Compare lists the differences between two definitions, sorted by path. It ignores descriptions, the messages of
// validation rules, and the order of lists that are sets: enum, required, categories, short names.
func Compare(ours, theirs *apiextensionsv1.CustomResourceDefinition) ([]Difference, error) {
	a, err := tree(ours)
	if err != nil {
		return nil, err
	}
	b, err := tree(theirs)
	if err != nil {
		return nil, err
	}
	return compare("", a, b), nil
}

// tree returns the name and the spec of a definition as plain JSON values.
func tree(crd *apiextensionsv1.CustomResourceDefinition) (any, error) {
	data, err := json.Marshal(map[string]any{"name": crd.Name, "spec": crd.Spec})
	if err != nil {
		return nil, fmt.Errorf("read definition %s: %w", crd.Name, err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("read definition %s: %w", crd.Name, err)
	}
	return value, nil
}

func compare(path string, ours, theirs any) []Difference {
	if a, ok := ours.(map[string]any); ok {
		if b, ok := theirs.(map[string]any); ok {
			return compareMaps(path, a, b)
		}
	}
	if a, ok := ours.([]any); ok {
		if b, ok := theirs.([]any); ok {
			return compareLists(path, a, b)
		}
	}
	if reflect.DeepEqual(ours, theirs) {
		return nil
	}
	return []Difference{{Path: path, Ours: ours, Theirs: theirs}}
}

// compareMaps ignores descriptions, messages, and the order of lists that are sets.
func compareMaps(path string, ours, theirs map[string]any) []Difference {
	keys := maps.Clone(ours)
	maps.Copy(keys, theirs)
	var found []Difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if isDescription(key, ours[key], theirs[key]) {
			continue
		}
		a, b := ours[key], theirs[key]
		if isSet(key) {
			a, b = sorted(a), sorted(b)
		}
		found = append(found, compare(join(path, key), a, b)...)
	}
	return found
}

// compareLists compares the elements with the same index. An element that one list lacks is nil.
func compareLists(path string, ours, theirs []any) []Difference {
	var found []Difference
	for i := range max(len(ours), len(theirs)) {
		var a, b any
		if i < len(ours) {
			a = ours[i]
		}
		if i < len(theirs) {
			b = theirs[i]
		}
		found = append(found, compare(path+"["+strconv.Itoa(i)+"]", a, b)...)
	}
	return found
}

// isDescription reports whether a key holds a text for people. A property of a schema can also be named description or
// message, but the value of a property is an object.
func isDescription(key string, values ...any) bool {
	if key != "description" && key != "message" {
		return false
	}
	for _, value := range values {
		if _, ok := value.(map[string]any); ok {
			return false
		}
	}
	return true
}

// isSet reports whether the list of this key is a set, in which the order has no meaning.
func isSet(key string) bool {
	return slices.Contains([]string{"enum", "required", "categories", "shortNames"}, key)
}

// sorted returns a sorted copy of value if it is a list of strings, and value itself otherwise.
func sorted(value any) any {
	list, ok := value.([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok }) {
		return value
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b any) int {
		x, _ := a.(string)
		y, _ := b.(string)
		return slices.Compare([]byte(x), []byte(y))
	})
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func text(value any) string {
	if value == nil {
		return "nothing"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

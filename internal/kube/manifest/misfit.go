package manifest

import (
	"regexp"
	"strings"
)

// typeMismatch is a value of the wrong type, as in this error of Go's JSON decoder: "json: cannot unmarshal string into
// Go struct field DeploymentSpec.spec.replicas of type int32".
type typeMismatch struct {
	path        string // "spec.replicas"; empty for the object itself
	given, want string // type names of YAML
}

var cannotUnmarshal = regexp.MustCompile(`cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field (\S+)|value) of type (\S+)`)

// typeMismatchOf returns the typeMismatch that a decoding error reports; false if the error reports something else.
func typeMismatchOf(err error) (typeMismatch, bool) {
	match := cannotUnmarshal.FindStringSubmatch(err.Error())
	if match == nil {
		return typeMismatch{}, false
	}
	_, path, _ := strings.Cut(match[2], ".") // the part before the first dot is a Go type
	return typeMismatch{path: path, given: givenType(match[1]), want: wantedType(match[3])}, true
}

// The type names of YAML.
const (
	typeText   = "a text"
	typeNumber = "a number"
	typeWhole  = "a whole number"
	typeBool   = "true or false"
	typeList   = "a list"
	typeFields = "a mapping"
)

func givenType(jsonType string) string {
	switch jsonType {
	case "string":
		return typeText
	case "number":
		return typeNumber
	case "bool":
		return typeBool
	case "array":
		return typeList
	}
	return typeFields
}

// wantedType returns the YAML name of a Go type; typeFields for structs and maps.
func wantedType(goType string) string {
	switch {
	case goType == "string":
		return typeText
	case goType == "bool":
		return typeBool
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return typeWhole
	case strings.HasPrefix(goType, "float"):
		return typeNumber
	case strings.HasPrefix(goType, "[]"):
		return typeList
	}
	return typeFields
}

func (m typeMismatch) sentence() string {
	text := "it is " + m.given + ", and should be " + m.want
	if m.path != "" {
		text = m.path + " is " + m.given + ", and should be " + m.want
	}
	switch {
	case m.want == typeText && (m.given == typeBool || m.given == typeNumber):
		return text + `; put the value in quotes: YAML does not read yes, no, on, off, y, n and digits as text`
	case m.given == typeText && (m.want == typeWhole || m.want == typeNumber || m.want == typeBool):
		return text + "; write it without quotes"
	}
	return text
}

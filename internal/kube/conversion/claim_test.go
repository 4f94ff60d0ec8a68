package conversion

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/requirements"
)

// TestAnyValue: all requirements have the same key, "".
func TestAnyValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reqs []requirements.Requirement
		want string // "": no value
	}{
		"one of": {[]requirements.Requirement{{Operator: requirements.In, Values: []string{"b", "a"}}}, "a"},
		"exists": {[]requirements.Requirement{{Operator: requirements.Exists}}, "1"},
		"exists but not 1 or 2": {[]requirements.Requirement{{Operator: requirements.Exists},
			{Operator: requirements.NotIn, Values: []string{"1", "2"}}}, "3"},
		"at least":                    {[]requirements.Requirement{{Operator: requirements.Gte, Values: []string{"7"}}}, "7"},
		"below":                       {[]requirements.Requirement{{Operator: requirements.Lt, Values: []string{"7"}}}, "6"},
		"a missing label is accepted": {[]requirements.Requirement{{Operator: requirements.NotIn, Values: []string{"x"}}}, ""},
		"no value": {[]requirements.Requirement{{Operator: requirements.In, Values: []string{"x"}},
			{Operator: requirements.In, Values: []string{"y"}}}, ""},
	} {
		all, _ := requirements.All(c.reqs...)
		if got, ok := anyValue(all[""]); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: anyValue = %q, %t; want %q", name, got, ok, c.want)
		}
	}
}

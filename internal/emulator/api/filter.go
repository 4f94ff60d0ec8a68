package api

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Filter is a condition of a describe call.
type Filter struct {
	Name   string   // "tag:Name", "instance-type"…
	Values []string `aws:"Value"` // one of the values must match; * and ? are wildcards
}

// Filterable has the data of a resource that filters compare.
type Filterable struct {
	Tags   map[string]string   // the resource's tags; nil: none
	Values map[string][]string // the values of the resource, by the name of the filter
}

// passesAll reports whether the resource passes all filters. As in EC2, a filter that the resource type does not
// support is an error.
func passesAll(filters []Filter, f Filterable) (bool, error) {
	for _, filter := range filters {
		values, known := f.valuesOf(filter.Name)
		if !known {
			return false, &failure.Error{Code: "InvalidParameterValue", Message: "The filter '" + filter.Name + "' is invalid"}
		}
		if len(filter.Values) == 0 {
			return false, &failure.Error{Code: "InvalidParameterValue", Message: "The filter '" + filter.Name + "' has no values"}
		}
		if !slices.ContainsFunc(values, func(v string) bool { return matchesAny(filter.Values, v) }) {
			return false, nil
		}
	}
	return true, nil
}

// valuesOf returns the resource's values for a filter; false if the resource type does not support the filter.
func (f Filterable) valuesOf(name string) ([]string, bool) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		v, tagged := f.Tags[key]
		if !tagged {
			return nil, true
		}
		return []string{v}, true
	}
	switch name {
	case "tag-key":
		keys := make([]string, 0, len(f.Tags))
		for k := range f.Tags {
			keys = append(keys, k)
		}
		return keys, true
	case "tag-value":
		values := make([]string, 0, len(f.Tags))
		for _, v := range f.Tags {
			values = append(values, v)
		}
		return values, true
	}
	v, ok := f.Values[name]
	return v, ok
}

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesWildcards(p, text) })
}

// matchesWildcards reports whether text matches a pattern with the wildcards * and ?. After a \ a wildcard stands for
// itself. The time is at most proportional to the product of both lengths.
func matchesWildcards(pattern, text string) bool {
	p, t := 0, 0
	// star is the position of the last * in the pattern, -1: none. mark is the position in the text where the match of
	// that * ends.
	star, mark := -1, 0
	for t < len(text) {
		isEscaped := p < len(pattern) && pattern[p] == '\\' && p+1 < len(pattern)
		switch {
		case isEscaped && pattern[p+1] == text[t]:
			p, t = p+2, t+1
		case !isEscaped && p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case !isEscaped && p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			p, mark = star+1, mark+1 // a mismatch: let the last * match one more byte
			t = mark
		default:
			return false
		}
	}
	// The rest of the pattern must match the empty text.
	return strings.Trim(pattern[p:], "*") == ""
}

// FilterItems returns the items that pass all filters. If there are no items, it calls filterable with the zero value
// of T: an unknown filter is an error even then.
func FilterItems[T any](items []T, filters []Filter, filterable func(T) Filterable) ([]T, error) {
	if len(filters) == 0 {
		return items, nil
	}
	var out []T
	for _, item := range items {
		ok, err := passesAll(filters, filterable(item))
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
	}
	if len(items) == 0 {
		var zero T
		_, err := passesAll(filters, filterable(zero))
		return nil, err
	}
	return out, nil
}

package iampolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// condition is one key of a statement's Condition, with its operator.
type condition struct {
	op     operator
	key    string // in lower case: condition keys are case-insensitive
	values []string

	forAll   bool // ForAllValues: each value of the request must match
	forAny   bool // ForAnyValue: one value of the request must match
	ifExists bool // IfExists: the condition is met if the request lacks the key
}

// readConditions reads the Condition of a statement, sorted by operator and key.
func readConditions(all map[string]map[string]oneOrMany[scalar]) ([]condition, error) {
	var out []condition
	for _, spelled := range slices.Sorted(maps.Keys(all)) {
		withOperator, err := readOperator(spelled)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(all[spelled])) {
			c := withOperator
			c.key = strings.ToLower(key)
			for _, v := range all[spelled][key] {
				c.values = append(c.values, string(v))
			}
			if len(c.values) == 0 {
				return nil, fmt.Errorf("condition %s of %s has no value", spelled, key)
			}
			if err := rejectVariables(append([]string{key}, c.values...)); err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// readOperator parses an operator with its prefix and suffix, such as "ForAllValues:StringLikeIfExists". It returns a
// condition without key and values.
func readOperator(spelled string) (condition, error) {
	var c condition
	rest := spelled
	if after, ok := strings.CutPrefix(rest, "ForAllValues:"); ok {
		rest, c.forAll = after, true
	} else if after, ok := strings.CutPrefix(rest, "ForAnyValue:"); ok {
		rest, c.forAny = after, true
	}
	rest, c.ifExists = strings.CutSuffix(rest, "IfExists")
	var ok bool
	if c.op, ok = operators()[rest]; !ok {
		return condition{}, fmt.Errorf("condition operator %q is not supported", spelled)
	}
	if c.op.absence && (c.ifExists || c.forAll || c.forAny) {
		return condition{}, fmt.Errorf("condition operator %q: Null takes neither prefix nor suffix", spelled)
	}
	return c, nil
}

// operator compares one value of the policy with one value of the request.
type operator struct {
	matches func(policy, request string) bool
	negated bool // the condition is met if none of the policy's values match
	absence bool // Null: the policy's value "true" requires that the key is absent, "false" that it is present
}

// operators returns the supported operators, by name without prefix and suffix.
func operators() map[string]operator {
	equal := func(p, r string) bool { return p == r }
	return map[string]operator{
		"StringEquals":              {matches: equal},
		"StringNotEquals":           {matches: equal, negated: true},
		"StringEqualsIgnoreCase":    {matches: strings.EqualFold},
		"StringNotEqualsIgnoreCase": {matches: strings.EqualFold, negated: true},
		"StringLike":                {matches: like},
		"StringNotLike":             {matches: like, negated: true},
		"ArnEquals":                 {matches: arnLike},
		"ArnLike":                   {matches: arnLike},
		"ArnNotEquals":              {matches: arnLike, negated: true},
		"ArnNotLike":                {matches: arnLike, negated: true},
		"Bool":                      {matches: strings.EqualFold},
		"Null":                      {absence: true},
	}
}

// holds reports whether a request with these keys meets the condition. If the key is absent, the request meets only
// these conditions:
//
//   - a condition with IfExists or ForAllValues;
//   - a condition with a negated operator, unless it has ForAnyValue;
//   - Null with the value "true".
//
// See https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html.
func (c condition) holds(request Keys) bool {
	values, present := request.find(c.key)
	switch {
	case c.op.absence:
		return slices.Contains(c.values, fmt.Sprint(!present))
	case !present && c.ifExists, !present && c.forAll:
		return true
	case !present && c.forAny:
		return false
	case !present:
		return c.op.negated
	}
	meets := func(value string) bool {
		found := slices.ContainsFunc(c.values, func(p string) bool { return c.op.matches(p, value) })
		return found != c.op.negated
	}
	mustAllMeet := c.forAll || c.op.negated && !c.forAny
	if mustAllMeet {
		return !slices.ContainsFunc(values, func(v string) bool { return !meets(v) })
	}
	return slices.ContainsFunc(values, meets)
}

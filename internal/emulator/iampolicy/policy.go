// Package iampolicy evaluates, like IAM, whether policies allow a request.
//
// In: policy documents as JSON; a request: an action, one resource, and the condition keys that AWS would know.
// Out: a verdict: allowed, explicitly denied, or not allowed by any statement.
// Never: a call to AWS, or a guess. Documents with unsupported parts of the policy language are rejected when they are
// read.
package iampolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Policy is a parsed identity-based policy.
type Policy struct {
	statements []statement
}

type statement struct {
	sid        string
	deny       bool
	actions    patterns
	resources  patterns
	conditions []condition
}

// patterns is an element Action, NotAction, Resource or NotResource.
type patterns struct {
	texts  []string
	except bool // NotAction or NotResource: match everything but texts
}

type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement oneOrMany[writtenStatement]
}

type writtenStatement struct {
	Sid         string
	Effect      string
	Action      oneOrMany[string]
	NotAction   oneOrMany[string]
	Resource    oneOrMany[string]
	NotResource oneOrMany[string]
	Condition   map[string]map[string]oneOrMany[scalar]
}

// Read parses a policy document. It rejects documents that IAM rejects, and documents with features that this package
// does not support: Principal, policy variables and some condition operators. The supported operators are those for
// strings, ARNs and booleans, and Null.
func Read(text []byte) (Policy, error) {
	var doc document
	if err := decodeStrictly(text, &doc); err != nil {
		return Policy{}, fmt.Errorf("read policy: %w", err)
	}
	if doc.Version != "2012-10-17" {
		return Policy{}, fmt.Errorf("read policy: Version is %q, want 2012-10-17", doc.Version)
	}
	if len(doc.Statement) == 0 {
		return Policy{}, errors.New("read policy: there is no Statement")
	}
	var p Policy
	for i, s := range doc.Statement {
		parsed, err := s.read()
		if err != nil {
			return Policy{}, fmt.Errorf("read policy: statement %d %s: %w", i+1, s.Sid, err)
		}
		p.statements = append(p.statements, parsed)
	}
	return p, nil
}

func (w writtenStatement) read() (statement, error) {
	out := statement{sid: w.Sid, deny: w.Effect == "Deny"}
	if w.Effect != "Allow" && w.Effect != "Deny" {
		return statement{}, fmt.Errorf("its Effect is %q, want Allow or Deny", w.Effect)
	}
	var err error
	if out.actions, err = readPatterns("Action", w.Action, w.NotAction); err != nil {
		return statement{}, err
	}
	for _, a := range out.actions.texts {
		if a != "*" && !strings.Contains(a, ":") {
			return statement{}, fmt.Errorf("action %q has no service", a)
		}
	}
	if out.resources, err = readPatterns("Resource", w.Resource, w.NotResource); err != nil {
		return statement{}, err
	}
	for _, r := range out.resources.texts {
		if r != "*" && (!strings.HasPrefix(r, "arn:") || len(strings.SplitN(r, ":", arnParts)) < arnParts) {
			return statement{}, fmt.Errorf("resource %q is not an ARN", r)
		}
	}
	out.conditions, err = readConditions(w.Condition)
	return out, err
}

// readPatterns returns the patterns of an element, such as Action, or of its negation, such as NotAction. It returns an
// error unless exactly one of the two is set.
func readPatterns(name string, positive, negated []string) (patterns, error) {
	out := patterns{texts: positive}
	if len(negated) > 0 {
		out = patterns{texts: negated, except: true}
	}
	if (len(positive) > 0) == (len(negated) > 0) {
		return patterns{}, fmt.Errorf("want either %s or Not%s", name, name)
	}
	return out, rejectVariables(out.texts)
}

// rejectVariables rejects policy variables such as ${aws:username}.
func rejectVariables(texts []string) error {
	for _, t := range texts {
		if strings.Contains(t, "${") {
			return fmt.Errorf("%q has a policy variable or a placeholder that was not filled in", t)
		}
	}
	return nil
}

// oneOrMany is a list whose JSON may be a single value instead.
type oneOrMany[T any] []T

// UnmarshalJSON decodes a value or a list of values.
func (m *oneOrMany[T]) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var many []T
		err := decodeStrictly(text, &many)
		*m = many
		return err
	}
	var one T
	err := decodeStrictly(text, &one)
	*m = []T{one}
	return err
}

// decodeStrictly rejects unknown fields, for example Principal.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// scalar is the value of a condition. Its JSON is a string or a boolean.
type scalar string

// UnmarshalJSON decodes a string, true or false.
func (s *scalar) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true", "false":
		*s = scalar(text)
		return nil
	}
	var v string
	err := json.Unmarshal(text, &v)
	*s = scalar(v)
	return err
}

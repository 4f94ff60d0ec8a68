package permissions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Policy is one managed policy. There are several because a managed policy has at most 6,144 characters.
type Policy struct {
	Name       string      // "launch": used in file names, and as the end of the name in IAM
	Statements []Statement // in the order of the document
}

// Statement is one statement of a policy, as in IAM's JSON.
type Statement struct {
	Why       string     `json:"-"` // the reason, in a sentence
	Worst     string     `json:"-"` // what the holder of stolen controller credentials can do with the statement
	Sid       string     // unique in the policy
	Effect    string     // "Allow" or "Deny"
	Action    []string   // IAM actions
	Resource  []string   // ARNs; * matches any characters
	Condition Conditions `json:",omitempty"` // nil: unconditional
}

// Conditions are the conditions of a statement: operator → condition key → values.
type Conditions map[string]map[string][]string

const (
	allow = "Allow"
	deny  = "Deny"
)

// JSON returns the policy as IAM accepts it.
func (p Policy) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		Version   string
		Statement []Statement
	}{"2012-10-17", p.Statements})
	if err != nil {
		return nil, fmt.Errorf("write policy %s: %w", p.Name, err)
	}
	return b.Bytes(), nil
}

// Policies returns the policies of the controller. The policy "interruption" is only needed with an interruption queue.
func Policies(s Scope) ([]Policy, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	return []Policy{
		{Name: "launch", Statements: s.launch()},
		{Name: "profiles", Statements: s.profiles()},
		{Name: "reading", Statements: s.reading()},
		{Name: "interruption", Statements: s.interruption()},
	}, nil
}

// Actions returns the actions that policies allow, sorted.
func Actions(policies []Policy) []string {
	var out []string
	for _, p := range policies {
		for _, s := range p.Statements {
			if s.Effect == allow {
				out = append(out, s.Action...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

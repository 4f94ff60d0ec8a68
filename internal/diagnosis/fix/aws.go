package fix

import (
	"slices"
	"strings"
	"time"
)

// AWS is a call to AWS.
type AWS struct {
	Service, Action string   // "eks", "create-access-entry"
	Params          []Param  // in the order of the command
	Query           string   // field of the answer that another call uses, see Param.From; empty: none
	Expected        Expected // preconditions of deleting an access entry
}

// clone returns a copy that shares no slices with a. The copy leaves out Param.invalid.
func (a AWS) clone() AWS {
	a.Params = slices.Clone(a.Params)
	for i := range a.Params {
		a.Params[i].Values = slices.Clone(a.Params[i].Values)
		a.Params[i].invalid = nil
	}
	return a
}

// Param is one parameter of a call.
type Param struct {
	Name   string   // "--role-name"
	Values []string // empty: the parameter is a flag, or From is set
	From   *AWS     // call whose answer is the value; nil: use Values

	invalid        []Value // values without the required syntax
	hasPlaceholder bool    // a value is a placeholder that the user must replace
	words          []Word  // the parameter as words of the command
}

// Expected is the state that an access entry must still have when it is deleted. The zero value expects nothing.
type Expected struct {
	Type    string    // "STANDARD"
	Created time.Time // zero: any
}

// P returns a parameter with its values. A parameter without values is a flag.
func P(name constant, values ...Value) Param {
	p := Param{Name: string(name), words: toWords(string(name))}
	for _, v := range values {
		p.invalid = append(p.invalid, v.invalid()...)
		p.hasPlaceholder = p.hasPlaceholder || v.isPlaceholder
		p.Values = append(p.Values, v.text)
		p.words = append(p.words, Word{Text: v.text})
	}
	return p
}

// PFrom returns a parameter whose value is a field in the answer of another call. query is the path of the field.
func PFrom(name constant, call Step, query constant) Param {
	p := Param{Name: string(name), invalid: call.invalid, hasPlaceholder: call.hasPlaceholder}
	if call.aws != nil {
		a := call.aws.clone()
		a.Query = string(query)
		p.From = &a
	}
	command := append(slices.Clone(call.words), toWords("--query", string(query), "--output", "text")...)
	p.words = append(toWords(string(name)), Word{From: command})
	return p
}

// Call returns the step that calls AWS. It is of kind ReadOnly if the action only reads, otherwise of kind Change.
func Call(service, action constant, params ...Param) Step {
	s := Step{kind: Change, aws: &AWS{Service: string(service), Action: string(action)},
		words: toWords("aws", string(service), string(action))}
	if isReadOnly(string(action)) {
		s.kind = ReadOnly
	}
	for _, p := range params {
		s.invalid = append(s.invalid, p.invalid...)
		s.hasPlaceholder = s.hasPlaceholder || p.hasPlaceholder
		s.words = append(s.words, p.words...)
		p.invalid, p.words = nil, nil
		s.aws.Params = append(s.aws.Params, p)
	}
	return s
}

// isReadOnly reports whether an AWS action changes nothing. start-session counts as read-only: it only opens a shell on
// an instance for the user.
func isReadOnly(action string) bool {
	verb, _, _ := strings.Cut(action, "-")
	return slices.Contains([]string{"describe", "list", "get", "lookup", "wait", "decode"}, verb) || action == "start-session"
}

// Expecting returns the step with the state that an access entry must have when the step is carried out. Steps that do
// not call AWS are returned unchanged.
func (s Step) Expecting(entryType string, created time.Time) Step {
	if s.aws == nil {
		return s
	}
	a := s.aws.clone()
	a.Expected = Expected{Type: entryType, Created: created}
	s.aws = &a
	return s
}

// Joiner is the step with a read-only joiner command. The words are constants and identifiers.
func Joiner(words ...Value) Step {
	s := Step{kind: ReadOnly, words: toWords("joiner")}
	for _, v := range words {
		s.invalid = append(s.invalid, v.invalid()...)
		s.hasPlaceholder = s.hasPlaceholder || v.isPlaceholder
		s.words = append(s.words, Word{Text: v.text})
	}
	return s
}

// Controller is the step in which the user starts the controller of a cluster, on the host that ran it before.
func Controller(cluster, region Value) Step {
	return Step{kind: ByHand, invalid: append(cluster.invalid(), region.invalid()...),
		hasPlaceholder: cluster.isPlaceholder || region.isPlaceholder,
		words:          toWords("env", "CLUSTER_NAME="+cluster.text, "AWS_REGION="+region.text, "joiner", "controller")}
}

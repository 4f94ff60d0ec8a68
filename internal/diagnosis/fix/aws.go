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
	Query           string   // field of the answer that is the value of a Param; empty: none
	Expected        Expected // preconditions of deleting an access entry
}

// clone returns a copy that shares no slices with a, without the faults of its parameters.
func (a AWS) clone() AWS {
	a.Params = slices.Clone(a.Params)
	for i := range a.Params {
		a.Params[i].Values = slices.Clone(a.Params[i].Values)
		a.Params[i].faults = nil
	}
	return a
}

// Param is one parameter of a call.
type Param struct {
	Name   string   // "--role-name"
	Values []string // empty: the parameter is a flag
	From   *AWS     // call whose answer is the value; nil: use Values

	faults  []Value // values without the required syntax
	isBlank bool    // a value is a placeholder that the user must fill in
	words   []Word  // the parameter as words of the command
}

// Expected is the state that an access entry must still have when it is deleted. The zero value expects nothing.
type Expected struct {
	Type    string    // "STANDARD"
	Created time.Time // zero: any
}

// P returns a parameter with its values. A parameter without values is a flag.
func P(name constant, values ...Value) Param {
	p := Param{Name: string(name), words: texts(string(name))}
	for _, v := range values {
		p.faults = append(p.faults, v.invalid()...)
		p.isBlank = p.isBlank || v.blank
		p.Values = append(p.Values, v.text)
		p.words = append(p.words, Word{Text: v.text})
	}
	return p
}

// PFrom returns a parameter whose value is a field in the answer of another call.
func PFrom(name constant, call Step, query constant) Param {
	p := Param{Name: string(name), faults: call.faults, isBlank: call.isBlank}
	if call.aws != nil {
		a := call.aws.clone()
		a.Query = string(query)
		p.From = &a
	}
	p.words = append(texts(string(name)), Word{From: append(slices.Clone(call.words), texts("--query", string(query), "--output", "text")...)})
	return p
}

// Call returns the step that calls AWS.
func Call(service, action constant, params ...Param) Step {
	s := Step{kind: Change, aws: &AWS{Service: string(service), Action: string(action)}, words: texts("aws", string(service), string(action))}
	if isReading(string(action)) {
		s.kind = Look
	}
	for _, p := range params {
		s.faults = append(s.faults, p.faults...)
		s.isBlank = s.isBlank || p.isBlank
		s.words = append(s.words, p.words...)
		p.faults, p.words = nil, nil
		s.aws.Params = append(s.aws.Params, p)
	}
	return s
}

// isReading reports whether an AWS action changes nothing by itself. start-session opens a shell on an instance.
func isReading(action string) bool {
	verb, _, _ := strings.Cut(action, "-")
	return slices.Contains([]string{"describe", "list", "get", "lookup", "wait", "decode"}, verb) || action == "start-session"
}

// Expecting sets the state that an access entry must have when the step is carried out.
func (s Step) Expecting(kind string, created time.Time) Step {
	if s.aws == nil {
		return s
	}
	a := s.aws.clone()
	a.Expected = Expected{Type: kind, Created: created}
	s.aws = &a
	return s
}

// Joiner returns a read-only joiner command. The words are constants and identifiers.
func Joiner(words ...Value) Step {
	s := Step{kind: Look, words: texts("joiner")}
	for _, v := range words {
		s.faults = append(s.faults, v.invalid()...)
		s.isBlank = s.isBlank || v.blank
		s.words = append(s.words, Word{Text: v.text})
	}
	return s
}

// Controller returns the step in which the user starts a controller for a cluster, wherever the controller ran before.
func Controller(cluster, region Value) Step {
	return Step{kind: ByHand, faults: append(cluster.invalid(), region.invalid()...), isBlank: cluster.blank || region.blank,
		words: texts("env", "CLUSTER_NAME="+cluster.text, "AWS_REGION="+region.text, "joiner", "controller")}
}

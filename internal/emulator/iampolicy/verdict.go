package iampolicy

import (
	"maps"
	"slices"
	"strings"
)

// Request is one action on one resource. A call that affects several resources is several requests.
type Request struct {
	Action   string // "ec2:TerminateInstances"
	Resource string // an ARN, or "*" for what has none
	Keys     Keys   // its condition keys; nil: none
}

// Keys are the condition keys of a request and their values: "aws:RequestTag/team" → "data". A key without values is
// absent; keys are the same in any case.
type Keys map[string][]string

// Verdict is what policies say of a request.
type Verdict struct {
	Allowed bool   // a statement allows it and none denies it
	Denied  bool   // by a Deny; without it, what is not allowed is merely not allowed by anything
	Sid     string // of the statement that decided; empty if none did, or it has none
}

// Judge says what the policies, taken together, say of a request: a Deny counts for more than any Allow, and what no
// statement allows is not allowed.
func Judge(policies []Policy, r Request) Verdict {
	verdict := Verdict{}
	for _, p := range policies {
		for _, s := range p.statements {
			if !s.deny && verdict.Allowed || !s.applies(r) {
				continue
			}
			if s.deny {
				return Verdict{Denied: true, Sid: s.sid}
			}
			verdict = Verdict{Allowed: true, Sid: s.sid}
		}
	}
	return verdict
}

// applies reports whether the statement is about the request.
func (s statement) applies(r Request) bool {
	action := func(p string) bool { return like(strings.ToLower(p), strings.ToLower(r.Action)) }
	resource := func(p string) bool { return arnLike(p, r.Resource) }
	return s.actions.match(action) && s.resources.match(resource) &&
		!slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(r.Keys) })
}

func (p patterns) match(matches func(string) bool) bool {
	return slices.ContainsFunc(p.texts, matches) != p.except
}

// find returns the values of a key, which is given in small letters.
func (k Keys) find(key string) ([]string, bool) {
	var found []string
	for name, values := range k {
		if strings.EqualFold(name, key) {
			found = append(found, values...)
		}
	}
	return found, len(found) > 0
}

// Tags adds what a resource carries, or is to carry: a key for each tag under the prefix "aws:RequestTag/" or
// "aws:ResourceTag/", and for the former the list of keys, aws:TagKeys.
func (k Keys) Tags(prefix string, tags map[string]string) {
	for name, value := range tags {
		k[prefix+name] = []string{value}
	}
	if prefix == "aws:RequestTag/" && len(tags) > 0 {
		k["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
}

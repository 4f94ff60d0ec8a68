package iampolicy

import (
	"maps"
	"slices"
	"strings"
)

// Request is one action on one resource. A call that affects several resources needs several requests.
type Request struct {
	Action   string // "ec2:TerminateInstances"
	Resource string // an ARN, or "*" for an action without a resource
	Keys     Keys   // condition keys of the request; nil: none
}

// Keys are the condition keys of a request and their values: "aws:RequestTag/team" → "data". A key without values is
// absent. Keys are case-insensitive.
type Keys map[string][]string

// Verdict is the result of evaluating policies for a request. If neither Allowed nor Denied is set, no statement
// applies.
type Verdict struct {
	Allowed bool   // a statement allows the request, and no statement denies it
	Denied  bool   // a statement with the effect Deny applies
	Sid     string // Sid of the statement that allows or denies; empty without such a statement, or if it has no Sid
}

// Judge evaluates the policies for a request. A Deny overrides every Allow. A request that no statement allows is not
// allowed.
func Judge(policies []Policy, r Request) Verdict {
	verdict := Verdict{}
	for _, p := range policies {
		for _, s := range p.statements {
			isSecondAllow := !s.deny && verdict.Allowed // the verdict keeps the Sid of the first Allow
			if isSecondAllow || !s.applies(r) {
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

func (s statement) applies(r Request) bool {
	action := func(p string) bool { return like(strings.ToLower(p), strings.ToLower(r.Action)) }
	resource := func(p string) bool { return arnLike(p, r.Resource) }
	return s.actions.match(action) && s.resources.match(resource) &&
		!slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(r.Keys) })
}

// match reports whether the element of a statement matches. textMatches reports whether one text of the element
// matches.
func (p patterns) match(textMatches func(string) bool) bool {
	return slices.ContainsFunc(p.texts, textMatches) != p.except
}

// find returns the values of a key; false if the key is absent.
func (k Keys) find(key string) ([]string, bool) {
	var found []string
	for name, values := range k {
		if strings.EqualFold(name, key) {
			found = append(found, values...)
		}
	}
	return found, len(found) > 0
}

// AddTags adds a condition key for each tag, with a prefix such as "aws:RequestTag/" or "aws:ResourceTag/". With
// "aws:RequestTag/" it also adds aws:TagKeys.
func (k Keys) AddTags(prefix string, tags map[string]string) {
	for name, value := range tags {
		k[prefix+name] = []string{value}
	}
	if prefix == "aws:RequestTag/" && len(tags) > 0 {
		k["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
}

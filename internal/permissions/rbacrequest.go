package permissions

import "slices"

// Request is one call to the API server.
type Request struct {
	Verb     string    // "get", "list", "create", …
	Group    string    // API group; empty for the core group
	Resource string    // with its subresource: "pods/eviction"
	Name     string    // empty for lists, and for generated names
	Where    RuleScope // scope of the request
}

// Allows reports whether the rule allows the request. A rule for the whole cluster applies in every namespace.
func (r Rule) Allows(q Request) bool {
	where := r.where()
	return (where == Cluster || where == q.Where) && r.Group == q.Group &&
		slices.Contains(r.Resources, q.Resource) && slices.Contains(r.Verbs, q.Verb) &&
		(len(r.Names) == 0 || slices.Contains(r.Names, q.Name))
}

// where returns the scope of the rule; Cluster if it is not set.
func (r Rule) where() RuleScope {
	if r.Where == "" {
		return Cluster
	}
	return r.Where
}

// RulesIn returns the rules with the scope where.
func RulesIn(where RuleScope) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return r.where() != where })
}

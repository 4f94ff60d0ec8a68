package permissions

import "slices"

// Request is one call to the API server.
type Request struct {
	Verb     string
	Group    string
	Resource string // with its subresource: "pods/eviction"
	Name     string // empty for lists, and for what the server is to name
	Where    Where
}

// Allows reports whether the rule allows the request. A rule for the whole cluster holds in every namespace.
func (r Rule) Allows(q Request) bool {
	where := r.where()
	return (where == Cluster || where == q.Where) && r.Group == q.Group &&
		slices.Contains(r.Resources, q.Resource) && slices.Contains(r.Verbs, q.Verb) &&
		(len(r.Names) == 0 || slices.Contains(r.Names, q.Name))
}

// where is where the rule holds; that most rules hold everywhere goes without saying.
func (r Rule) where() Where {
	if r.Where == "" {
		return Cluster
	}
	return r.Where
}

// At returns the rules that hold there, of all.
func At(where Where) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return r.where() != where })
}

package topology

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/keys"
)

// groupKey appends what makes two groups one. Every text is preceded by its
// length, so no two groups have the same key.
func groupKey(b []byte, g *Group) []byte {
	b = keys.Flag(append(b, byte(g.Form)), g.AnyNode, g.HonorTaints)
	b = keys.Text(keys.Int(b, g.Nodes), g.Key)
	b = keys.Int(keys.Int(b, len(g.Keys)), g.keys)
	if g.keys == 0 {
		b = keys.Text(b, g.Keys...)
	}
	b = keys.Int(b, g.set)
	for i := range g.terms {
		b = appendTerm(b, &g.terms[i], g.terms[i].Selector.Nothing)
	}
	return b
}

func appendTerm(b []byte, t *cluster.Term, withKey bool) []byte {
	b = keys.Flag(b, t.AllNamespaces, t.Selector.Nothing)
	if withKey {
		b = keys.Text(b, t.Key)
	}
	if !t.AllNamespaces {
		b = keys.Int(b, len(t.Namespaces))
		b = keys.Text(b, t.Namespaces...)
	}
	b = keys.Int(b, len(t.Selector.Labels))
	for _, key := range t.Selector.Labels.Keys() {
		b = t.Selector.Labels[key].AppendKey(keys.Text(b, key))
	}
	return b
}

// profileKey appends what makes two profiles one; nothing for the plain one.
func profileKey(b []byte, rules []Rule, in []int) []byte {
	if len(rules) == 0 && len(in) == 0 {
		return b
	}
	b = keys.Int(b, len(rules))
	for _, r := range rules {
		b = keys.Flag(b, r.Self)
		for _, n := range [...]int{r.Group, int(r.Form), r.MaxSkew, r.MinDomains, r.Weight} {
			b = keys.Int(b, n)
		}
	}
	for _, n := range in {
		b = keys.Int(b, n)
	}
	return b
}

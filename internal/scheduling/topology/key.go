package topology

import (
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
)

// groupKey appends a key that is equal only for equal groups: hashkey writes the length of a text before the text.
func groupKey(b []byte, g *Group) []byte {
	b = hashkey.Flag(append(b, byte(g.Kind)), g.AnyNode, g.HonorTaints)
	b = hashkey.Text(hashkey.Int(b, g.Signature), g.Key)
	b = hashkey.Int(hashkey.Int(b, len(g.Keys)), g.keyList)
	if g.keyList == 0 {
		b = hashkey.Text(b, g.Keys...)
	}
	b = hashkey.Int(b, g.memberSet)
	for i := range g.terms {
		b = appendTerm(b, &g.terms[i], g.terms[i].Selector.MatchesNothing)
	}
	return b
}

// appendTerm appends a key that is equal only for equal terms. withKey includes the topology key of the term, which
// is a claim for the groups of volumes (volumeGroup).
func appendTerm(b []byte, t *cluster.Term, withKey bool) []byte {
	b = hashkey.Flag(b, t.AllNamespaces, t.Selector.MatchesNothing)
	if withKey {
		b = hashkey.Text(b, t.Key)
	}
	if !t.AllNamespaces {
		b = hashkey.Int(b, len(t.Namespaces))
		b = hashkey.Text(b, t.Namespaces...)
	}
	b = hashkey.Int(b, len(t.Selector.Labels))
	for _, key := range t.Selector.Labels.Keys() {
		b = t.Selector.Labels[key].AppendKey(hashkey.Text(b, key))
	}
	return b
}

// profileKey appends a key that is equal only for equal profiles. It appends nothing for the plain profile.
func profileKey(b []byte, rules []Rule, in []int) []byte {
	if len(rules) == 0 && len(in) == 0 {
		return b
	}
	b = hashkey.Int(b, len(rules))
	for _, r := range rules {
		b = hashkey.Flag(b, r.Self)
		for _, n := range [...]int{r.Group, int(r.Kind), r.MaxSkew, r.MinDomains, r.Weight} {
			b = hashkey.Int(b, n)
		}
	}
	for _, n := range in {
		b = hashkey.Int(b, n)
	}
	return b
}

package topology

import (
	"encoding/binary"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// groupKey appends what makes two groups one. Every text is preceded by its
// length, so no two groups have the same key.
func groupKey(b []byte, g *Group) []byte {
	b = append(b, byte(g.Form), flag(g.AnyNode), flag(g.HonorTaints))
	b = appendText(binary.AppendVarint(b, int64(g.Nodes)), g.Key)
	b = appendText(binary.AppendVarint(b, int64(len(g.Keys))), g.Keys...)
	for i := range g.terms {
		b = appendTerm(b, &g.terms[i], g.terms[i].Selector.Nothing)
	}
	return b
}

func appendTerm(b []byte, t *cluster.Term, withKey bool) []byte {
	b = append(b, flag(t.AllNamespaces), flag(t.Selector.Nothing))
	if withKey {
		b = appendText(b, t.Key)
	}
	if !t.AllNamespaces {
		b = binary.AppendVarint(b, int64(len(t.Namespaces)))
		b = appendText(b, t.Namespaces...)
	}
	b = binary.AppendVarint(b, int64(len(t.Selector.Labels)))
	for _, key := range t.Selector.Labels.Keys() {
		b = appendValues(appendText(b, key), t.Selector.Labels[key])
	}
	return b
}

func appendValues(b []byte, v constraint.Values) []byte {
	b = binary.AppendVarint(b, int64(len(v.Listed)))
	b = appendText(b, v.Listed...)
	b = append(b, flag(v.Complement), flag(v.Absent), flag(v.Min != nil), flag(v.Max != nil))
	for _, bound := range []*int64{v.Min, v.Max} {
		if bound != nil {
			b = binary.AppendVarint(b, *bound)
		}
	}
	return b
}

// profileKey appends what makes two profiles one; nothing for the plain one.
func profileKey(b []byte, rules []Rule, in []int) []byte {
	if len(rules) == 0 && len(in) == 0 {
		return b
	}
	b = binary.AppendVarint(b, int64(len(rules)))
	for _, r := range rules {
		for _, n := range [...]int{r.Group, int(r.Form), int(flag(r.Self)), r.MaxSkew, r.MinDomains, r.Weight} {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	for _, n := range in {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

func appendText(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

package pending

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

func newSignature(p *cluster.Pod) Signature {
	s := Signature{Required: p.Required, Preferred: slices.Clone(p.Preferred), Tolerations: p.Tolerations}
	slices.SortStableFunc(s.Preferred, func(a, b cluster.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return s
}

// signatureKey appends what makes two signatures equal. Every text is
// preceded by its length, so no two signatures have the same key.
func signatureKey(b []byte, p *cluster.Pod) []byte {
	b = appendInt(b, len(p.Required))
	for _, r := range p.Required {
		b = appendRequirements(b, r)
	}
	b = appendInt(b, len(p.Preferred))
	for _, pref := range p.Preferred {
		b = appendRequirements(appendInt(b, pref.Weight), pref.Requirements)
	}
	b = appendInt(b, len(p.Tolerations))
	for _, t := range p.Tolerations {
		b = appendText(b, t.Key, t.Operator, t.Value, string(t.Effect))
	}
	return b
}

func appendRequirements(b []byte, r constraint.Requirements) []byte {
	b = appendInt(b, len(r))
	if len(r) == 0 {
		return b
	}
	for _, key := range r.Keys() {
		v := r[key]
		b = appendText(b, key)
		b = appendInt(b, len(v.Listed))
		b = appendText(b, v.Listed...)
		b = append(b, flag(v.Complement), flag(v.Absent), flag(v.Min != nil), flag(v.Max != nil))
		for _, bound := range []*int64{v.Min, v.Max} {
			if bound != nil {
				b = binary.AppendVarint(b, *bound)
			}
		}
	}
	return b
}

// classKey appends what makes two pods with one signature alike.
func classKey(b []byte, sig, profile int, p *cluster.Pod) []byte {
	b = appendInt(appendInt(b, sig), profile)
	b = appendInt(b, int(p.Priority))
	r := p.Requests
	for _, n := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		b = binary.AppendVarint(b, n)
	}
	b = appendInt(b, len(r.Extended))
	for _, e := range r.Extended {
		b = binary.AppendVarint(appendText(b, e.Name), e.Value)
	}
	b = appendInt(b, len(p.HostPorts))
	for _, h := range p.HostPorts {
		b = appendInt(appendText(b, h.IP, h.Protocol), int(h.Port))
	}
	return b
}

func appendInt(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

func appendText(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(appendInt(b, len(s)), s...)
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

package podgroup

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/keys"
)

func newSignature(p *cluster.Pod) Signature {
	s := Signature{Required: p.Required, Preferred: slices.Clone(p.Preferred), Tolerations: p.Tolerations}
	slices.SortStableFunc(s.Preferred, func(a, b cluster.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return s
}

// signatureKey appends what makes two signatures equal. Every text is
// preceded by its length, so no two signatures have the same key.
func signatureKey(b []byte, p *cluster.Pod) []byte {
	b = keys.Int(b, len(p.Required))
	for _, r := range p.Required {
		b = appendRequirements(b, r)
	}
	b = keys.Int(b, len(p.Preferred))
	for _, pref := range p.Preferred {
		b = appendRequirements(keys.Int(b, pref.Weight), pref.Requirements)
	}
	b = keys.Int(b, len(p.Tolerations))
	for _, t := range p.Tolerations {
		b = keys.Text(b, t.Key, t.Operator, t.Value, string(t.Effect))
	}
	return b
}

func appendRequirements(b []byte, r requirements.Requirements) []byte {
	b = keys.Int(b, len(r))
	if len(r) == 0 {
		return b
	}
	for _, key := range r.Keys() {
		b = r[key].AppendKey(keys.Text(b, key))
	}
	return b
}

// classKey appends what makes two pods with one signature alike.
func classKey(b []byte, sig, profile int, p *cluster.Pod) []byte {
	b = keys.Int(keys.Int(b, sig), profile)
	b = keys.Int(b, int(p.Priority))
	r := p.Requests
	for _, n := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		b = keys.Int(b, n)
	}
	b = keys.Int(b, len(r.Extended))
	for _, e := range r.Extended {
		b = keys.Int(keys.Text(b, e.Name), e.Value)
	}
	b = keys.Int(b, len(p.HostPorts))
	for _, h := range p.HostPorts {
		b = keys.Int(keys.Text(b, h.IP, h.Protocol), int(h.Port))
	}
	return b
}

package podgroup

import (
	"cmp"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
)

func newSignature(p *cluster.Pod) Signature {
	s := Signature{Required: p.Required, Preferred: slices.Clone(p.Preferred), Tolerations: p.Tolerations}
	slices.SortStableFunc(s.Preferred, func(a, b cluster.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return s
}

// signatureKey appends the key of the pod's signature. Every text is preceded by its length, so different signatures
// have different keys.
func signatureKey(b []byte, p *cluster.Pod) []byte {
	b = hashkey.Int(b, len(p.Required))
	for _, r := range p.Required {
		b = appendRequirements(b, r)
	}
	b = hashkey.Int(b, len(p.Preferred))
	for _, pref := range p.Preferred {
		b = appendRequirements(hashkey.Int(b, pref.Weight), pref.Requirements)
	}
	b = hashkey.Int(b, len(p.Tolerations))
	for _, t := range p.Tolerations {
		b = hashkey.Text(b, t.Key, t.Operator, t.Value, string(t.Effect))
	}
	return b
}

func appendRequirements(b []byte, r requirements.Requirements) []byte {
	b = hashkey.Int(b, len(r))
	if len(r) == 0 {
		return b
	}
	for _, key := range r.Keys() {
		b = r[key].AppendKey(hashkey.Text(b, key))
	}
	return b
}

func classKey(b []byte, sig, profile int, p *cluster.Pod) []byte {
	b = hashkey.Int(hashkey.Int(b, sig), profile)
	b = hashkey.Int(b, int(p.Priority))
	r := p.Requests
	for _, n := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		b = hashkey.Int(b, n)
	}
	b = hashkey.Int(b, len(r.Extended))
	for _, e := range r.Extended {
		b = hashkey.Int(hashkey.Text(b, e.Name), e.Value)
	}
	b = hashkey.Int(b, len(p.HostPorts))
	for _, h := range p.HostPorts {
		b = hashkey.Int(hashkey.Text(b, h.IP, h.Protocol), int(h.Port))
	}
	return b
}

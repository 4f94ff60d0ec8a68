package packing

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// class is a number of pods that ask for the same thing: any one can take the
// place of any other.
type class struct {
	sig      int // index into queue.signatures
	ask      vector
	amounts  capacity.Amounts
	ports    []cluster.HostPort
	priority int32
	pods     []*cluster.Pod // sorted by name; the first ones are placed first

	// stages are the accept sets to try one after the other: preferences are
	// given up softest first, heavier pools go first.
	stages []int
	worth  float64 // what one pod is reckoned to cost, in billionths of a dollar per hour
}

// signature is what pods demand of a node besides room: their classes share
// what is worked out from it.
type signature struct {
	required    []constraint.Requirements
	preferred   []cluster.Preference
	tolerations []constraint.Toleration
}

// queue is the pods that need a place, as classes.
type queue struct {
	classes    []class // by priority, then the larger first
	signatures []signature
	refused    []Refusal
	pods       int
}

// absurd is an amount that no machine will ever have, and that can still be
// multiplied by a number of pods.
const absurd = math.MaxInt64 >> 24

func newQueue(pods []cluster.Pod, res resources) *queue {
	q := &queue{pods: len(pods)}
	var key []byte
	sigs, classes := map[string]int{}, map[string]int{}
	for _, p := range sortedPods(pods) {
		if wrong := unplannable(p); wrong != "" {
			q.refused = append(q.refused, Refusal{
				Pod: p.ID(), Reasons: []Reason{{Code: Unplannable, Count: 1, Detail: wrong}},
			})
			continue
		}
		key = signatureKey(key[:0], p)
		sig, ok := sigs[string(key)]
		if !ok {
			sig = len(q.signatures)
			sigs[string(key)] = sig
			q.signatures = append(q.signatures, newSignature(p))
		}
		key = classKey(key[:0], sig, p)
		c, ok := classes[string(key)]
		if !ok {
			c = len(q.classes)
			classes[string(key)] = c
			q.classes = append(q.classes, class{
				sig: sig, ask: res.of(p.Requests), amounts: p.Requests, ports: p.HostPorts, priority: p.Priority,
			})
		}
		q.classes[c].pods = append(q.classes[c].pods, p)
	}
	slices.SortStableFunc(q.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), b.amounts.Compare(a.amounts))
	})
	return q
}

// sortedPods returns the pods by namespace, name and UID.
func sortedPods(pods []cluster.Pod) []*cluster.Pod {
	out := make([]*cluster.Pod, len(pods))
	for i := range pods {
		out[i] = &pods[i]
	}
	order := func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}
	if !slices.IsSortedFunc(out, order) {
		slices.SortFunc(out, order)
	}
	return out
}

// unplannable returns what is wrong with the pod, or "".
func unplannable(p *cluster.Pod) string {
	if p.Unplannable != "" {
		return p.Unplannable
	}
	for _, name := range p.Requests.Names() {
		switch n := p.Requests.Of(name); {
		case n < 0:
			return fmt.Sprintf("it asks for a negative amount of %s", name)
		case n > absurd:
			return fmt.Sprintf("it asks for %s of %s, more than any machine has", capacity.Format(name, n), name)
		}
	}
	return ""
}

func newSignature(p *cluster.Pod) signature {
	s := signature{required: p.Required, preferred: slices.Clone(p.Preferred), tolerations: p.Tolerations}
	slices.SortStableFunc(s.preferred, func(a, b cluster.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
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
func classKey(b []byte, sig int, p *cluster.Pod) []byte {
	b = appendInt(b, sig)
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

package conversion

import (
	"hash/maphash"
	"reflect"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// traits are the parts of a pod's value that are behind pointers and computed. They are most of its memory. Pods of one
// owner have equal traits, and share them.
type traits struct {
	owner        string
	extended     []resources.Extended
	required     []requirements.Requirements
	preferred    []cluster.Preference
	tolerations  []requirements.Toleration
	hostPorts    []cluster.HostPort
	spread       []cluster.Spread
	affinity     []cluster.Term
	antiAffinity []cluster.Term
}

// SharedTraits are traits with the number of pods that have them.
type SharedTraits struct {
	traits
	hash uint64
	uses int
}

// TraitSet stores equal traits once. The zero value is empty.
type TraitSet struct {
	seed   maphash.Seed
	byHash map[uint64][]*SharedTraits
}

// Share makes the pod use the stored traits that equal its own, and returns them. before are the traits that the pod
// had so far; nil if none.
func (s *TraitSet) Share(pod *cluster.Pod, before *SharedTraits) *SharedTraits {
	if s.byHash == nil {
		s.seed, s.byHash = maphash.MakeSeed(), map[uint64][]*SharedTraits{}
	}
	own := traits{
		owner: pod.Owner, extended: pod.Requests.Extended, required: pod.Required, preferred: pod.Preferred,
		tolerations: pod.Tolerations, hostPorts: pod.HostPorts, spread: pod.Spread,
		affinity: pod.Affinity, antiAffinity: pod.AntiAffinity,
	}
	one := s.find(own)
	one.uses++
	s.Drop(before)
	pod.Owner, pod.Requests.Extended, pod.Required, pod.Preferred = one.owner, one.extended, one.required, one.preferred
	pod.Tolerations, pod.HostPorts, pod.Spread = one.tolerations, one.hostPorts, one.spread
	pod.Affinity, pod.AntiAffinity = one.affinity, one.antiAffinity
	return one
}

// find returns the stored traits that equal own. If there are none, it stores own.
func (s *TraitSet) find(own traits) *SharedTraits {
	hash := s.hash(&own)
	for _, one := range s.byHash[hash] {
		if reflect.DeepEqual(&one.traits, &own) {
			return one
		}
	}
	one := &SharedTraits{traits: own, hash: hash}
	s.byHash[hash] = append(s.byHash[hash], one)
	return one
}

// Drop counts one pod less for the traits, which may be nil.
func (s *TraitSet) Drop(one *SharedTraits) {
	if one == nil {
		return
	}
	if one.uses--; one.uses > 0 {
		return
	}
	left := s.byHash[one.hash]
	for i := range left {
		if left[i] == one {
			left = append(left[:i:i], left[i+1:]...)
			break
		}
	}
	if s.byHash[one.hash] = left; len(left) == 0 {
		delete(s.byHash, one.hash)
	}
}

// hash covers all fields, so that different traits rarely have the same hash, even if a user tries. The seed is
// different in every process.
func (s *TraitSet) hash(d *traits) uint64 {
	sum := s.text(d.owner)
	mix := func(more ...uint64) {
		for _, one := range more {
			sum = scatter(sum*31 + one)
		}
	}
	for _, e := range d.extended {
		mix(s.text(e.Name), uint64(e.Value))
	}
	mix(uint64(len(d.required)))
	for _, r := range d.required {
		mix(s.requirements(r))
	}
	for i := range d.preferred {
		mix(uint64(d.preferred[i].Weight), s.requirements(d.preferred[i].Requirements))
	}
	for _, t := range d.tolerations {
		mix(s.text(t.Key), s.text(t.Operator), s.text(t.Value), s.text(string(t.Effect)))
	}
	for _, h := range d.hostPorts {
		mix(s.text(h.IP), s.text(h.Protocol), uint64(h.Port))
	}
	for i := range d.spread {
		one := &d.spread[i]
		mix(s.text(one.Key), uint64(one.MaxSkew), uint64(one.MinDomains), flags(one.Soft, one.AnyNode, one.HonorTaints),
			s.selector(&one.Selector))
	}
	for _, terms := range [][]cluster.Term{d.affinity, d.antiAffinity} {
		mix(uint64(len(terms)))
		for i := range terms {
			one := &terms[i]
			mix(s.text(one.Key), uint64(one.Weight), flags(one.AllNamespaces), s.selector(&one.Selector))
			for _, namespace := range one.Namespaces {
				mix(s.text(namespace))
			}
		}
	}
	return sum
}

// selector returns a hash of the selector.
func (s *TraitSet) selector(selector *cluster.Selector) uint64 {
	return s.requirements(selector.Labels) + flags(selector.Nothing)
}

// requirements returns a hash that does not depend on the order of the keys.
func (s *TraitSet) requirements(r requirements.Requirements) uint64 {
	sum := uint64(len(r))
	for key, values := range r {
		one := scatter(s.text(key) + flags(values.Complement, values.Absent, values.Min != nil, values.Max != nil))
		for _, bound := range [...]*int64{values.Min, values.Max} {
			if bound != nil {
				one = scatter(one*31 + uint64(*bound))
			}
		}
		for _, value := range values.Listed {
			one = scatter(one*31 + s.text(value))
		}
		sum += scatter(one)
	}
	return sum
}

// text returns a hash of the text.
func (s *TraitSet) text(text string) uint64 { return maphash.String(s.seed, text) }

// flags returns a different number for each combination of the flags.
func flags(set ...bool) uint64 {
	n := uint64(0)
	for i, yes := range set {
		if yes {
			n |= 1 << i
		}
	}
	return n
}

// scatter mixes the bits of n, so that a difference in one bit affects all bits.
func scatter(n uint64) uint64 {
	n ^= n >> 32
	n *= 0xd6e8feb86659fd93
	n ^= n >> 32
	return n
}

// Size returns the number of different hashes.
func (s *TraitSet) Size() int { return len(s.byHash) }

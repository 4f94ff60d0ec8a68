package conversion

import (
	"hash/maphash"
	"reflect"

	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// traits are the fields of a cluster.Pod that PodValue computes and whose content is outside the struct: texts and
// slices. They take most of a cluster.Pod's memory. Pods of one owner usually have equal traits, and share them.
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

// Share makes the pod use the stored traits that equal its own, and returns the stored traits. before are the stored
// traits that the pod used until now, which Share drops; nil if there are none.
func (s *TraitSet) Share(pod *cluster.Pod, before *SharedTraits) *SharedTraits {
	if s.byHash == nil {
		s.seed, s.byHash = maphash.MakeSeed(), map[uint64][]*SharedTraits{}
	}
	own := traits{
		owner: pod.Owner, extended: pod.Requests.Extended, required: pod.Required, preferred: pod.Preferred,
		tolerations: pod.Tolerations, hostPorts: pod.HostPorts, spread: pod.Spread,
		affinity: pod.Affinity, antiAffinity: pod.AntiAffinity,
	}
	shared := s.findOrStore(own)
	shared.uses++
	s.Drop(before)
	pod.Owner, pod.Requests.Extended, pod.Required, pod.Preferred = shared.owner, shared.extended, shared.required, shared.preferred
	pod.Tolerations, pod.HostPorts, pod.Spread = shared.tolerations, shared.hostPorts, shared.spread
	pod.Affinity, pod.AntiAffinity = shared.affinity, shared.antiAffinity
	return shared
}

func (s *TraitSet) findOrStore(own traits) *SharedTraits {
	hash := s.hash(&own)
	for _, stored := range s.byHash[hash] {
		if reflect.DeepEqual(&stored.traits, &own) {
			return stored
		}
	}
	added := &SharedTraits{traits: own, hash: hash}
	s.byHash[hash] = append(s.byHash[hash], added)
	return added
}

// Drop reduces the number of pods that use the traits by one, and removes traits that no pod uses. For nil it does
// nothing.
func (s *TraitSet) Drop(dropped *SharedTraits) {
	if dropped == nil {
		return
	}
	if dropped.uses--; dropped.uses > 0 {
		return
	}
	left := s.byHash[dropped.hash]
	for i := range left {
		if left[i] == dropped {
			left = append(left[:i:i], left[i+1:]...)
			break
		}
	}
	if s.byHash[dropped.hash] = left; len(left) == 0 {
		delete(s.byHash, dropped.hash)
	}
}

// hash returns a hash of all fields, so that different traits rarely have the same hash. Users cannot provoke equal
// hashes, because the seed is random.
func (s *TraitSet) hash(own *traits) uint64 {
	sum := s.textHash(own.owner)
	mix := func(numbers ...uint64) {
		for _, n := range numbers {
			sum = scatter(sum*31 + n)
		}
	}
	for _, e := range own.extended {
		mix(s.textHash(e.Name), uint64(e.Value))
	}
	mix(uint64(len(own.required)))
	for _, r := range own.required {
		mix(s.requirementsHash(r))
	}
	for i := range own.preferred {
		mix(uint64(own.preferred[i].Weight), s.requirementsHash(own.preferred[i].Requirements))
	}
	for _, t := range own.tolerations {
		mix(s.textHash(t.Key), s.textHash(t.Operator), s.textHash(t.Value), s.textHash(string(t.Effect)))
	}
	for _, h := range own.hostPorts {
		mix(s.textHash(h.IP), s.textHash(h.Protocol), uint64(h.Port))
	}
	for i := range own.spread {
		c := &own.spread[i]
		mix(s.textHash(c.Key), uint64(c.MaxSkew), uint64(c.MinDomains), flags(c.Soft, c.IgnoresNodeAffinity, c.HonorTaints),
			s.selectorHash(&c.Selector))
	}
	for _, terms := range [][]cluster.Term{own.affinity, own.antiAffinity} {
		mix(uint64(len(terms)))
		for i := range terms {
			t := &terms[i]
			mix(s.textHash(t.Key), uint64(t.Weight), flags(t.AllNamespaces), s.selectorHash(&t.Selector))
			for _, namespace := range t.Namespaces {
				mix(s.textHash(namespace))
			}
		}
	}
	return sum
}

func (s *TraitSet) selectorHash(selector *cluster.Selector) uint64 {
	return s.requirementsHash(selector.Labels) + flags(selector.MatchesNothing)
}

// requirementsHash returns a hash of the requirements that does not depend on the order of the keys.
func (s *TraitSet) requirementsHash(r requirements.Requirements) uint64 {
	sum := uint64(len(r))
	for key, values := range r {
		h := scatter(s.textHash(key) + flags(values.Complement, values.Absent, values.Min != nil, values.Max != nil))
		for _, bound := range [...]*int64{values.Min, values.Max} {
			if bound != nil {
				h = scatter(h*31 + uint64(*bound))
			}
		}
		for _, value := range values.Listed {
			h = scatter(h*31 + s.textHash(value))
		}
		sum += scatter(h)
	}
	return sum
}

func (s *TraitSet) textHash(text string) uint64 { return maphash.String(s.seed, text) }

// flags returns a different number for each combination of the flags.
func flags(values ...bool) uint64 {
	n := uint64(0)
	for i, isSet := range values {
		if isSet {
			n |= 1 << i
		}
	}
	return n
}

// scatter mixes the bits of n, so that a difference in one bit affects many bits. The multiplier is from degski's hash.
func scatter(n uint64) uint64 {
	n ^= n >> 32
	n *= 0xd6e8feb86659fd93
	n ^= n >> 32
	return n
}

// Size returns the number of different hashes, which is nearly the number of different traits.
func (s *TraitSet) Size() int { return len(s.byHash) }

package kube

import (
	"hash/maphash"
	"reflect"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// traits is what a pod's value points at besides the object that it was made
// from. Pods of one owner have the same, and it is most of their memory: they share it.
type traits struct {
	owner        string
	extended     []capacity.Extended
	required     []constraint.Requirements
	preferred    []cluster.Preference
	tolerations  []constraint.Toleration
	hostPorts    []cluster.HostPort
	spread       []cluster.Spread
	affinity     []cluster.Term
	antiAffinity []cluster.Term
}

// sharedTraits are traits with the number of pods that have them.
type sharedTraits struct {
	traits
	hash uint64
	uses int
}

// traitSet holds traits once. The zero value holds none.
type traitSet struct {
	seed   maphash.Seed
	byHash map[uint64][]*sharedTraits
}

// share lets the pod have the traits that others have too, if they are the same.
// Before are those that it had so far, nil if none.
func (s *traitSet) share(pod *cluster.Pod, before *sharedTraits) *sharedTraits {
	if s.byHash == nil {
		s.seed, s.byHash = maphash.MakeSeed(), map[uint64][]*sharedTraits{}
	}
	own := traits{
		owner: pod.Owner, extended: pod.Requests.Extended, required: pod.Required, preferred: pod.Preferred,
		tolerations: pod.Tolerations, hostPorts: pod.HostPorts, spread: pod.Spread,
		affinity: pod.Affinity, antiAffinity: pod.AntiAffinity,
	}
	one := s.find(own)
	one.uses++
	s.drop(before)
	pod.Owner, pod.Requests.Extended, pod.Required, pod.Preferred = one.owner, one.extended, one.required, one.preferred
	pod.Tolerations, pod.HostPorts, pod.Spread = one.tolerations, one.hostPorts, one.spread
	pod.Affinity, pod.AntiAffinity = one.affinity, one.antiAffinity
	return one
}

func (s *traitSet) find(own traits) *sharedTraits {
	hash := s.hash(&own)
	for _, one := range s.byHash[hash] {
		if reflect.DeepEqual(&one.traits, &own) {
			return one
		}
	}
	one := &sharedTraits{traits: own, hash: hash}
	s.byHash[hash] = append(s.byHash[hash], one)
	return one
}

// drop takes back that a pod has the traits, which may be nil.
func (s *traitSet) drop(one *sharedTraits) {
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

// hash is of enough to tell apart what pods really differ in.
func (s *traitSet) hash(d *traits) uint64 {
	sum := s.text(d.owner)
	mix := func(more uint64) { sum = sum*31 + more }
	for _, r := range d.required {
		mix(s.requirements(r))
	}
	for i := range d.preferred {
		mix(s.requirements(d.preferred[i].Requirements))
	}
	for _, t := range d.tolerations {
		mix(s.text(t.Key) ^ s.text(t.Value)<<1)
	}
	for i := range d.hostPorts {
		mix(uint64(d.hostPorts[i].Port))
	}
	for i := range d.spread {
		mix(s.text(d.spread[i].Key) ^ s.requirements(d.spread[i].Selector.Labels))
	}
	for _, terms := range [][]cluster.Term{d.affinity, d.antiAffinity} {
		for i := range terms {
			mix(s.text(terms[i].Key) ^ s.requirements(terms[i].Selector.Labels))
		}
	}
	return sum
}

// requirements is the same in whatever order the keys come.
func (s *traitSet) requirements(r constraint.Requirements) uint64 {
	sum := uint64(len(r))
	for key, values := range r {
		one := s.text(key)
		for _, value := range values.Listed {
			one = one*31 + s.text(value)
		}
		sum += one
	}
	return sum
}

func (s *traitSet) text(text string) uint64 { return maphash.String(s.seed, text) }

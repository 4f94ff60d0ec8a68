package packing

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/bitmap"
	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
	"github.com/joiner-sh/joiner/offers"
	"github.com/joiner-sh/joiner/topology"
)

// class is a number of units that ask for the same thing: any one can take the
// place of any other. A unit is a pod, or several that must be on one machine (bundle).
type class struct {
	sig      int // index into queue.signatures
	profile  int // index into queue.book.Profiles
	ask      capacity.Vector
	amounts  capacity.Amounts
	ports    []cluster.HostPort
	priority int32
	pods     []*cluster.Pod // sorted by name; the first ones are placed first
	unit     int            // pods per unit, 1 or more
	all      int            // how many units there were at first, before parts were made of it

	base    int        // the class that this is a part of; itself for a whole one
	cell    []int      // of a part: its domains, by key of the profile
	nodes   bitmap.Set // of a part: the nodes that are in its domains; nil: all
	members []member   // of a bundle: what a unit is made of
	forced  bool       // of a bundle: no plan could put its pods on more than one machine
	wished  bool       // of a bundle: its pods would rather be together, and need not

	hard  int // the accept set that no preference narrows, of what can be had now
	first int // the first of the stages that it had before parts were made of it

	// stages are the accept sets to try one after the other: preferences are
	// given up softest first, heavier pools go first.
	stages []int
	bulk   float64 // of what a unit asks for, to compare by
}

// member is a number of units of a class in each unit of a bundle.
type member struct{ class, n int }

// units returns how many units the class has.
func (c *class) units() int { return len(c.pods) / c.unit }

// queue is the pods that need a place, as classes.
type queue struct {
	classes    []class // by priority, then the larger first
	signatures []offers.Signature
	book       *topology.Book
	refused    []Refusal
	pods       int
}

// absurd is an amount that no machine will ever have (64 TiB, where the largest has 24), and that can still be
// multiplied by a number of pods.
const absurd = math.MaxInt64 >> 17

func newQueue(s cluster.Snapshot, dims capacity.Dimensions) *queue {
	q := &queue{pods: len(s.Pods)}
	var key []byte
	sigs, classes := map[string]int{}, map[string]int{}
	var wanted []topology.Wanted
	for _, p := range sortedPods(s.Pods) {
		if wrong := unplannable(p); wrong != "" {
			q.refused = append(q.refused, Refusal{
				Pod: p.ID(), Reasons: []Reason{{Code: Unplannable, Count: 1, Detail: wrong}},
			})
			continue
		}
		if n := len(wanted); n > 0 && p.SharesDemands(wanted[n-1].Pod) {
			wanted = append(wanted, topology.Wanted{Pod: p, Nodes: wanted[n-1].Nodes})
			continue
		}
		key = signatureKey(key[:0], p)
		sig, ok := sigs[string(key)]
		if !ok {
			sig = len(q.signatures)
			sigs[string(key)] = sig
			q.signatures = append(q.signatures, newSignature(p))
		}
		wanted = append(wanted, topology.Wanted{Pod: p, Nodes: sig})
	}
	q.book = topology.NewBook(wanted, residentsOf(s.Nodes))
	for i, p := range wanted {
		profile := q.book.Of[i]
		key = classKey(key[:0], p.Nodes, profile, p.Pod)
		c, ok := classes[string(key)]
		if !ok {
			c = len(q.classes)
			classes[string(key)] = c
			q.classes = append(q.classes, class{
				sig: p.Nodes, profile: profile, ask: dims.Of(p.Requests), amounts: p.Requests,
				ports: p.HostPorts, priority: p.Priority, unit: 1,
			})
		}
		q.classes[c].pods = append(q.classes[c].pods, p.Pod)
	}
	slices.SortStableFunc(q.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), b.amounts.Compare(a.amounts))
	})
	for c := range q.classes {
		q.classes[c].base, q.classes[c].all = c, q.classes[c].units()
	}
	return q
}

// demand returns what the pods ask of nodes.
func (q *queue) demand() offers.Demand {
	return offers.Demand{Signatures: q.signatures, Spreads: func(key string) bool {
		return slices.ContainsFunc(q.book.Groups, func(g topology.Group) bool { return g.Key == key })
	}}
}

// accept notes what the classes accept.
func (q *queue) accept(a *offers.Acceptance) {
	for i := range q.classes {
		c := &q.classes[i]
		c.hard, c.first = a.Hard[c.sig], -1
		c.stages = a.Stages(c.sig, c.ask, c.ports)
		if len(c.stages) > 0 {
			c.first = c.stages[0]
		}
	}
}

// buyable returns a function that tells whether a machine for some pod with the signature
// can be bought among the offers.
func (q *queue) buyable(a *offers.Acceptance) func(sig int, among bitmap.Set) bool {
	classes := make([][]int, len(q.signatures))
	for c := range q.classes {
		classes[q.classes[c].sig] = append(classes[q.classes[c].sig], c)
	}
	return func(sig int, among bitmap.Set) bool {
		among = a.Sets[a.Hard[sig]].Both(among)
		return slices.ContainsFunc(classes[sig], func(c int) bool { return a.AnyTakes(among, q.classes[c].ask, q.classes[c].ports) })
	}
}

// dimensionsOf returns the resources that some pod asks for: cpu, memory,
// ephemeral-storage and pods first, then the others by name.
func dimensionsOf(s cluster.Snapshot) capacity.Dimensions {
	var common capacity.Amounts // not 0 where somebody asks for something
	others := map[string]bool{}
	for i := range s.Pods {
		asks := &s.Pods[i].Requests
		common.CPU |= asks.CPU
		common.Memory |= asks.Memory
		common.EphemeralStorage |= asks.EphemeralStorage
		common.Pods |= asks.Pods
		for _, e := range asks.Extended {
			others[e.Name] = true
		}
	}
	return append(capacity.Dimensions(common.Names()), slices.Sorted(maps.Keys(others))...)
}

// residentsOf returns the kinds of pods on the nodes that keep others away, each once.
func residentsOf(nodes []cluster.Node) []cluster.Resident {
	order := make([]*cluster.Node, len(nodes))
	for i := range nodes {
		order[i] = &nodes[i]
	}
	slices.SortStableFunc(order, func(a, b *cluster.Node) int { return compareText(a.Name, b.Name) })
	seen := map[*cluster.Kind]bool{}
	var out []cluster.Resident
	for _, n := range order {
		for _, r := range n.Residents {
			if len(r.Avoids) > 0 && !seen[r.Kind] {
				seen[r.Kind] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// profile returns what pods of the class ask of the places of others.
func (q *queue) profile(c *class) *topology.Profile { return &q.book.Profiles[c.profile] }

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
	r := &p.Requests
	for _, n := range [...]int64{r.CPU, r.Memory, r.EphemeralStorage, r.Pods} {
		if n < 0 || n > absurd {
			return absurdity(r)
		}
	}
	for i := range r.Extended {
		if n := r.Extended[i].Value; n < 0 || n > absurd {
			return absurdity(r)
		}
	}
	return ""
}

// absurdity names the first amount that nobody could mean.
func absurdity(r *capacity.Amounts) string {
	for _, name := range r.Names() {
		switch n := r.Of(name); {
		case n < 0:
			return fmt.Sprintf("it asks for a negative amount of %s", name)
		case n > absurd:
			return fmt.Sprintf("it asks for %s of %s, more than any machine has", capacity.Format(name, n), name)
		}
	}
	return ""
}

func newSignature(p *cluster.Pod) offers.Signature {
	s := offers.Signature{Required: p.Required, Preferred: slices.Clone(p.Preferred), Tolerations: p.Tolerations}
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

package packing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/parallel"
)

// plan writes the work down, all but the refusals.
func (w *work) plan() Plan {
	p := Plan{Pods: w.q.Count(), Classes: w.whole, Steps: w.steps, LowerBound: w.leastPrice()}
	next := make([]int, len(w.q.classes)) // by class: how many pods have been handed out
	for _, at := range w.placed {
		c := &w.q.classes[at.class]
		for _, pod := range c.Pods[next[at.class]:][:at.n*c.unit] {
			p.Placements = append(p.Placements, Placement{Pod: pod.ID(), Node: w.rooms.Nodes[at.node].Name})
		}
		next[at.class] += at.n * c.unit
	}
	slices.SortStableFunc(p.Placements, func(a, b Placement) int { return cmp.Compare(a.Pod, b.Pod) })

	for _, o := range w.q.Omissions {
		p.Omissions = append(p.Omissions, Omission{Pod: o.Pod.ID(), Preferences: o.Preferences})
	}
	slices.SortStableFunc(p.Omissions, func(a, b Omission) int { return cmp.Compare(a.Pod, b.Pod) })

	machines := w.ordered()
	pods := w.deal(machines, next)
	names, labels := map[string]int{}, map[*offering.Variant]requirements.Labels{}
	p.Machines = make([]Machine, 0, w.bought())
	for i := range machines {
		v := w.st.VariantOf(machines[i].offer)
		if labels[v] == nil {
			labels[v] = v.AtLaunch()
		}
		m := w.describe(&machines[i], labels[v])
		for n := range machines[i].copies {
			names[m.Pool]++
			m.Name = m.Pool + "-" + strconv.Itoa(names[m.Pool])
			m.Pods = pods[i][n]
			p.Price += m.Price()
			p.Machines = append(p.Machines, m)
		}
	}
	return p
}

// bought returns how many machines are bought.
func (w *work) bought() int {
	n := 0
	for i := range w.machines {
		n += w.machines[i].copies
	}
	return n
}

// listed is a machine with what it may be bought as.
type listed struct {
	machine
	*listing
}

// listing is what a machine may be bought as. Machines with the same offers left share one.
type listing struct {
	choices      []int // offers, the cheapest first
	offerings    []Choice
	requirements []requirements.Requirement
	relaxed      []Relaxation
}

// list returns the listing of a machine that could be any of these offers.
func (w *work) list(all bitset.Set, m *machine, tight bool) *listing {
	out := &listing{choices: w.st.FewTypes(w.st.Choices(m.offer, all, tight))}
	out.offerings = make([]Choice, 0, len(out.choices))
	for _, i := range out.choices {
		offer := &w.st.Offers[i]
		out.offerings = append(out.offerings, Choice{
			InstanceType: w.st.TypeOf(i).Name, Zone: offer.Zone, CapacityType: offer.CapacityType, Price: offer.Price,
			Reservation: offer.Reservation.ID,
		})
	}
	out.relaxed = w.relaxations(out.choices)
	out.requirements = narrowed(w.st.PoolOf(m.offer), w.st.VariantOf(m.offer), out)
	return out
}

// listings returns the listing of each machine.
func (w *work) listings() []*listing {
	tight := w.tightPools()
	isTight := func(m *machine) bool { return tight[w.st.VariantOf(m.offer).Pool] }
	all, alike := make([]bitset.Set, len(w.machines)), make([]string, len(w.machines))
	parallel.Each(len(w.machines), func(i int) {
		m := &w.machines[i]
		all[i] = w.survivors(m)
		key := hashkey.Int(hashkey.Int([]byte(all[i].Key()), w.st.Models[w.st.Offers[m.offer].Model].Variant), -1)
		if isTight(m) {
			key = hashkey.Int(key, w.st.Offers[m.offer].Model)
		}
		alike[i] = string(key)
	})
	first := map[string]int{} // by key: the machine whose listing it is
	var own []int
	for i, key := range alike {
		if _, ok := first[key]; !ok {
			first[key] = i
			own = append(own, i)
		}
	}
	out := make([]*listing, len(w.machines))
	parallel.Each(len(own), func(n int) {
		m := &w.machines[own[n]]
		out[own[n]] = w.list(all[own[n]], m, isTight(m))
	})
	for i, key := range alike {
		out[i] = out[first[key]]
	}
	return out
}

// ordered returns the machines with their choices, in the order in which they are to be bought: those with devices last, as they would
// be filled with pods that need none while there is nothing else, and of equals the cheapest first.
func (w *work) ordered() []listed {
	parallel.Each(len(w.machines), func(i int) {
		slices.SortFunc(w.machines[i].takes, func(a, b take) int { return a.class - b.class })
	})
	out := make([]listed, len(w.machines))
	for i, s := range w.listings() {
		out[i] = listed{machine: w.machines[i], listing: s}
	}
	slices.SortStableFunc(out, func(a, b listed) int {
		return cmp.Or(
			cmp.Compare(w.devices(&a.machine), w.devices(&b.machine)),
			cmp.Compare(w.st.Offers[a.choices[0]].Price, w.st.Offers[b.choices[0]].Price),
			cmp.Compare(a.choices[0], b.choices[0]),
			slices.CompareFunc(a.takes, b.takes, func(x, y take) int {
				return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.n, y.n))
			}),
		)
	})
	return out
}

// devices is 1 for a machine with pods that ask for what only some nodes have, 0 for others.
func (w *work) devices(m *machine) int {
	for _, t := range m.takes {
		if len(w.q.classes[t.class].Amounts.Extended) > 0 {
			return 1
		}
	}
	return 0
}

// deal hands out the pods to the machines, as one deals cards: neighbours by
// name, which mostly belong to one workload, come to lie on different machines.
// next says how many of each class are gone already.
func (w *work) deal(machines []listed, next []int) [][][]string {
	hands := make([][]hand, len(w.q.classes)) // by class: one for each machine, in their order
	first := make([][]int, len(machines))     // by machine, by take: the hand of the first copy
	for i := range machines {
		for _, t := range machines[i].takes {
			first[i] = append(first[i], len(hands[t.class]))
			for range machines[i].copies {
				hands[t.class] = append(hands[t.class], hand{want: t.n})
			}
		}
	}
	parallel.Each(len(hands), func(c int) { w.dealClass(c, hands[c], next[c]) })
	out := make([][][]string, len(machines))
	parallel.Each(len(machines), func(i int) {
		m := &machines[i]
		out[i] = make([][]string, m.copies)
		var parts [][]string
		for n := range m.copies {
			parts = parts[:0]
			for k, t := range m.takes {
				parts = append(parts, hands[t.class][first[i][k]+n].pods)
			}
			out[i][n] = inOrder(parts)
		}
	})
	return out
}

// inOrder returns all texts of the parts, sorted. Each part is, mostly, and no two of them overlap.
func inOrder(parts [][]string) []string {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	slices.SortFunc(parts, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	out := make([]string, 0, total)
	for _, p := range parts {
		out = append(out, p...)
	}
	if !slices.IsSorted(out) {
		slices.Sort(out)
	}
	return out
}

// hand is the pods of one class on one machine.
type hand struct {
	want int
	pods []string
}

// dealClass deals the pods of the class from that one on.
func (w *work) dealClass(c int, hands []hand, next int) {
	unit, total := w.q.classes[c].unit, 0
	for i := range hands {
		total += hands[i].want * unit
	}
	pods, cells, open := idsOf(w.q.classes[c].Pods[next:next+total]), make([]string, total), make([]*hand, len(hands))
	for i := range hands {
		open[i] = &hands[i]
		n := hands[i].want * unit
		hands[i].pods, cells = cells[:0:n], cells[n:]
	}
	for len(open) > 0 {
		kept := open[:0]
		for _, h := range open {
			h.pods, pods = append(h.pods, pods[:unit]...), pods[unit:]
			if h.want--; h.want > 0 {
				kept = append(kept, h)
			}
		}
		open = kept
	}
}

// idsOf returns the IDs of the pods, cut from one text.
func idsOf(pods []*cluster.Pod) []string {
	var text strings.Builder
	size := 0
	for _, p := range pods {
		size += len(p.Namespace) + 1 + len(p.Name)
	}
	text.Grow(size)
	for _, p := range pods {
		text.WriteString(p.Namespace)
		text.WriteByte('/')
		text.WriteString(p.Name)
	}
	out, rest := make([]string, len(pods)), text.String()
	for i, p := range pods {
		n := len(p.Namespace) + 1 + len(p.Name)
		out[i], rest = rest[:n], rest[n:]
	}
	return out
}

// describe returns what all copies of the machine have in common; machines of one variant share the labels.
func (w *work) describe(o *listed, labels requirements.Labels) Machine {
	p := w.st.PoolOf(o.offer)
	return Machine{
		Pool: p.Name, NodeClass: p.NodeClass,
		Taints: p.Taints, StartupTaints: p.StartupTaints,
		Labels:    labels,
		Requests:  w.requests(o),
		Offerings: o.offerings, Requirements: o.requirements, Relaxed: o.relaxed,
	}
}

// requests are those of the pods and of the DaemonSets that come to the cheapest offering.
func (w *work) requests(o *listed) resources.Amounts {
	sum := w.st.ShapeOf(o.choices[0]).Daemons
	for _, t := range o.takes {
		sum = sum.Add(w.q.classes[t.class].Amounts.Times(int64(t.n)))
	}
	return sum
}

// narrowed returns the pool's requirements with the types, zones and ways of
// paying that are left, the capacity reservation, and the custom labels that were chosen.
// Of minValues it asks for no more than is left.
func narrowed(p *offering.Pool, v *offering.Variant, s *listing) []requirements.Requirement {
	var types, zones, ways []string
	for i := range s.offerings {
		c := &s.offerings[i]
		if i == 0 || c.InstanceType != s.offerings[i-1].InstanceType { // mostly all of one type cost about the same
			types = append(types, c.InstanceType)
		}
		if !slices.Contains(zones, c.Zone) {
			zones = append(zones, c.Zone)
		}
		if !slices.Contains(ways, c.CapacityType) {
			ways = append(ways, c.CapacityType)
		}
	}
	values := map[string][]string{catalog.LabelInstanceType: types, catalog.LabelZone: zones, catalog.LabelCapacityType: ways}
	for key, all := range values {
		slices.Sort(all)
		values[key] = slices.Compact(all)
	}
	reservation := s.offerings[0].Reservation
	if reservation != "" {
		values[catalog.LabelReservationID] = []string{reservation}
	}
	for key, value := range v.Chosen {
		values[key] = []string{value}
	}
	least := map[string]int{}
	var out []requirements.Requirement
	for _, r := range p.Requirements {
		if reservation != "" {
			r.MinValues = 0
		}
		for _, less := range s.relaxed {
			if less.Key == r.Key {
				r.MinValues = min(r.MinValues, less.Have)
			}
		}
		if _, ok := values[r.Key]; ok {
			least[r.Key] = max(least[r.Key], r.MinValues)
			continue
		}
		out = append(out, r)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, requirements.Requirement{Key: key, Operator: requirements.In, Values: values[key], MinValues: least[key]})
	}
	slices.SortStableFunc(out, func(a, b requirements.Requirement) int {
		return cmp.Or(
			cmp.Compare(a.Key, b.Key), cmp.Compare(string(a.Operator), string(b.Operator)), slices.Compare(a.Values, b.Values),
		)
	})
	return out
}

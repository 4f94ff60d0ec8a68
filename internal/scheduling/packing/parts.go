package packing

import (
	"cmp"
	"math"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/model/hashkey"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// split gives the pods of every class that keeps to the domains of a label, or
// that others keep to, their domains: a part of the class for each. What no
// domain may take stays with the class, which then has nothing to try.
func (w *work) split() {
	var all []int
	for c := range w.q.classes {
		all = append(all, c)
	}
	w.splitAll(all)
}

// splitAll splits these classes. Who would rather be near others waits until those have been split, and who must
// be near others until they have their places.
func (w *work) splitAll(classes []int) {
	var first, wishing []int
	for _, c := range classes {
		p := w.q.profile(&w.q.classes[c])
		switch {
		case len(p.Keys) == 0:
		case slices.ContainsFunc(p.Domain, func(r topology.Rule) bool { return r.Form == topology.Near && r.Weight > 0 && !r.Self }):
			wishing = append(wishing, c)
		default:
			first = append(first, c)
		}
	}
	rest := w.splitThose(first)
	if len(wishing) > 0 {
		w.countPinned()
		rest = w.splitThose(append(rest, wishing...))
	}
	for _, c := range rest {
		w.strand(c)
	}
	w.arrange()
}

// countPinned counts pods whom others only wish to be near, and who are therefore sent to no domain, where they can be
// in one only.
func (w *work) countPinned() {
	for c := range w.whole {
		class := &w.q.classes[c]
		if w.left[c] == 0 || len(class.stages) == 0 {
			continue
		}
		profile := w.q.profile(class)
		for _, g := range profile.In {
			group := &w.q.Book.Groups[g]
			if group.Form != topology.Near || slices.Contains(profile.Keys, group.Key) {
				continue
			}
			in, only := 0, 0
			for d, bought := range w.ground.Keys[group.Key].Offers {
				if w.accepts.Sets[class.hard].Meets(bought) {
					in, only = in+1, d
				}
			}
			if in == 1 {
				w.ground.Census.Resident(g, only, w.left[c])
			}
		}
	}
}

// splitThose splits the classes that can be, as often as that makes more of them possible, and returns the others.
func (w *work) splitThose(classes []int) []int {
	for len(classes) > 0 {
		var again []int
		for _, c := range classes {
			if !w.splitClass(c) {
				again = append(again, c)
			}
		}
		if len(again) == len(classes) {
			break
		}
		classes = again
	}
	return classes
}

// arrange puts the classes in order: by priority, then the larger first.
func (w *work) arrange() {
	for len(w.stage) < len(w.q.classes) {
		c := len(w.stage)
		w.stage, w.light = append(w.stage, 0), append(w.light, w.easedTo(w.q.classes[c].base))
	}
	w.order = w.order[:0]
	for c := range w.q.classes {
		w.order = append(w.order, c)
	}
	slices.SortStableFunc(w.order, func(a, b int) int {
		x, y := &w.q.classes[a], &w.q.classes[b]
		return cmp.Or(
			cmp.Compare(y.Priority, x.Priority), y.Amounts.Compare(x.Amounts), cmp.Compare(x.base, y.base), cmp.Compare(a, b),
		)
	})
}

// splitClass makes the parts of a class, for as many of its pods as have a
// domain. It reports false, having done nothing, if none has yet.
func (w *work) splitClass(c int) bool {
	class := w.q.classes[c]
	profile := w.q.profile(&class)
	places := w.places(c)
	counts := w.ground.Census.Assign(profile, class.units(), places)
	given := 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		part := class
		part.base, part.cell = c, places[i].Domains
		part.Pods = class.Pods[given : given+n]
		part.nodes = w.nodesFor(profile, part.cell)
		part.stages, _ = w.stagesIn(&class, part.cell)
		w.q.classes = append(w.q.classes, part)
		w.sent[len(w.q.classes)-1] = n
		w.left = append(w.left, n)
		given += n
	}
	if given == 0 && len(places) > 0 {
		return false
	}
	w.q.classes[c].Pods = class.Pods[given:]
	w.left[c] = class.units() - given
	w.strand(c)
	return true
}

// strand notes that what is left of the class may go nowhere.
func (w *work) strand(c int) {
	w.q.classes[c].stages, w.q.classes[c].nodes = nil, bitset.New(len(w.rooms.Nodes))
}

// places returns the combinations of domains where pods of the class could be.
func (w *work) places(c int) []topology.Place {
	class := &w.q.classes[c]
	profile := w.q.profile(class)
	var out []topology.Place
	for _, cell := range w.ground.Cells(profile) {
		at := topology.Place{Domains: cell, Free: w.roomFor(class, w.nodesFor(profile, cell))}
		at.Price = math.Inf(1)
		if stages, rank := w.stagesIn(class, cell); len(stages) > 0 {
			at.Most, at.Price, at.Rank = class.units(), w.rate(stages[0]), rank
		}
		at.Most = max(at.Most, at.Free)
		if most, ok := w.caps[capKey(c, cell)]; ok {
			at.Most, at.Free = min(at.Most, most), min(at.Free, most)
		}
		if at.Most > 0 {
			out = append(out, at)
		}
	}
	return out
}

// stagesIn returns the stages of the class as far as its offers are in the
// domains, and how many stages it has before the first of them.
func (w *work) stagesIn(class *class, cell []int) (out []int, rank int) {
	profile := w.q.profile(class)
	for i, stage := range class.stages {
		key := stageKey(stage, profile.Keys, cell)
		set, ok := w.narrowed[key]
		if !ok {
			set = w.accepts.Number(w.ground.OffersIn(profile, cell, w.accepts.Sets[stage]))
			w.narrowed[key] = set
		}
		set = w.withCompany(set, profile, cell)
		if !slices.Contains(out, set) && w.accepts.AnyTakes(w.accepts.Sets[set], &class.Class) {
			if len(out) == 0 {
				rank = i
			}
			out = append(out, set)
		}
	}
	return out, rank
}

// roomFor returns how many pods of the class have room on these nodes, about.
func (w *work) roomFor(class *class, nodes bitset.Set) int {
	n, units := 0, class.units()
	w.rooms.Hard[class.Sig].Both(nodes).Each(func(i int) {
		if n < units && !w.rooms.Full.Has(i) {
			n += class.Ask.Times(w.rooms.Room[i], units-n)
		}
	})
	return n
}

// rate is the least that a machine of the set costs for its size.
func (w *work) rate(set int) float64 {
	for len(w.rates) <= set {
		w.rates = append(w.rates, -1)
	}
	if w.rates[set] < 0 {
		least := math.Inf(1)
		w.accepts.Sets[set].Each(func(o int) {
			size := w.st.TypeOf(o).Allocatable
			least = min(least, float64(w.st.Offers[o].Price)/(float64(size.CPU)+float64(size.Memory)/(8<<20)+1))
		})
		w.rates[set] = least
	}
	return w.rates[set]
}

// capKey names a part in work.caps.
func capKey(class int, cell []int) string { return string(intsKey([]int{class}, cell)) }

// stageKey names an accept set within domains in work.narrowed.
func stageKey(set int, labels []string, cell []int) string {
	b := intsKey([]int{set}, cell)
	return string(hashkey.Text(b, labels...))
}

// intsKey returns the numbers as a key.
func intsKey(lists ...[]int) []byte {
	var b []byte
	for _, list := range lists {
		for _, n := range list {
			b = hashkey.Int(b, n)
		}
	}
	return b
}

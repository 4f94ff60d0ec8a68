package packing

import (
	"math"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// most returns how many more units of the class the rules about hosts let onto
// the machine.
func (f *filler) most(m *machine, class int) int {
	f.q.welcome(m)
	c := &f.q.classes[class]
	if c.members == nil {
		p := f.q.profile(c)
		if len(p.Host) == 0 && len(p.HostIn) == 0 {
			return math.MaxInt
		}
		return m.host.Room(f.q.Book, p, f.limits(class))
	}
	room := math.MaxInt
	for _, part := range c.members {
		limits := f.limits(class)
		limits.Together = true // they bring along whom they must be near
		room = min(room, m.host.Room(f.q.Book, f.q.profile(&f.q.classes[part.class]), limits)/part.n)
	}
	return room
}

// limits returns how the rules about hosts are judged for the class.
func (f *filler) limits(class int) topology.Limits {
	l := topology.Limits{Strict: true, Light: f.light[class]}
	if f.here {
		l.Fewest, l.Strict, l.Light = f.ground.FewestOf, f.strict, f.lightHere
		l.Somewhere = func(group int) bool { return f.rooms.Having(group).Any() }
	}
	switch {
	case f.level != nil:
		l.Fewest, l.Last = f.fewestOfAll, true
	case !f.here && f.q.guests != nil:
		l.Fewest = f.ground.FewestGuests
	}
	return l
}

// fewestOfAll is work.level as a rule sees it that asks for so many nodes.
func (w *work) fewestOfAll(group, minDomains int) int {
	if f := w.level[group]; f.Nodes >= minDomains {
		return f.Pods
	}
	return 0
}

// findLevel finds the node or machine that has the fewest pods, for the spreads over host names.
func (w *work) findLevel() {
	w.level = map[int]existing.Scarcity{}
	a := &arrivals{work: w}
	for g, f := range w.ground.Fewest {
		sees := a.sees(g)
		for i := range w.machines {
			m := &w.machines[i]
			turns := a.turn(i)
			if n := w.matched(m, g); sees.Meets(turns) && (f.Nodes == 0 || n < f.Pods) {
				f.Pods = n
			}
			other := turns.Clone()
			if other.AndNot(sees); turns.Any() && !other.Any() { // it counts whatever it turns out to be
				f.Nodes += m.copies
			}
		}
		w.level[g] = f
	}
}

// tally notes n units of the class on a host.
func (w *work) tally(t *topology.Tally, c *class, n int) {
	if c.members == nil {
		if p := w.q.profile(c); len(p.Host) > 0 || len(p.HostIn) > 0 {
			t.Add(p, n)
		}
		return
	}
	for _, m := range c.members {
		t.Add(w.q.profile(&w.q.classes[m.class]), n*m.n)
	}
}

// manyPods is how many pods, for each machine that those of a spread over hosts need at least, leave so much
// choice among machines that the spread makes no difference to what they cost.
const manyPods = 64

// capping says which spreads over hosts the bound of the demands reckons with, and whether all of those
// hold for every plan. Where a bound for all plans is asked for, these are the only ones. Else it is one for plans
// that are made here, no machine of which has more of the pods than the skew, and those count that can make a difference.
func (w *work) capping(demands []demand, sound bool) (counts func(group int) bool, all bool) {
	machines, pods := map[int]int{}, 0
	for _, d := range demands {
		pods += d.n
		if most, group := w.q.profile(&w.q.classes[d.class]).Cap(nil); most < math.MaxInt {
			machines[group] += (d.n + most - 1) / most
		}
	}
	capped := map[int]bool{}
	all = true
	for group, n := range machines {
		if w.q.Book.Groups[group].Form != topology.Spread {
			continue
		}
		capped[group] = w.ground.KeepsNone(group)
		if !sound && !capped[group] && n*manyPods > pods {
			capped[group], all = true, false
		}
	}
	return func(group int) bool { return capped[group] }, all
}

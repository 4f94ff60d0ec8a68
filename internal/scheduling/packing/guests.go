package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/bitset"
	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// meet narrows what the classes accept to the offers whose guests they can be with.
func (q *queue) meet(g *existing.Guests, a *offering.Acceptance) {
	if g == nil {
		return
	}
	q.guests = g
	for i := range q.classes {
		c := &q.classes[i]
		forbidden := g.Forbidden(q.Book, q.profile(c))
		if forbidden == nil {
			continue
		}
		without := func(set int) int {
			left := a.Sets[set].Clone()
			left.AndNot(forbidden)
			return a.Number(left)
		}
		c.hard = without(c.hard)
		var stages []int
		for _, stage := range c.stages {
			if n := without(stage); !slices.Contains(stages, n) && a.AnyTakes(a.Sets[n], &c.Class) {
				stages = append(stages, n)
			}
		}
		if c.stages, c.first = stages, -1; len(stages) > 0 {
			c.first = stages[0]
		}
	}
}

// welcome lets the machine have its guests, if it has not yet.
func (q *queue) welcome(m *machine) {
	if q.guests == nil || m.met || m.offer < 0 {
		return
	}
	m.met, m.host = true, q.guests.On(m.offer)
}

// matched returns how many pods the group counts on the machine.
func (w *work) matched(m *machine, group int) int {
	w.q.welcome(m)
	return m.host.Matched(group)
}

// hasCompany reports whether all whom the class must be near come to some machine that it accepts as guests: then it
// need not be tied to others.
func (w *work) hasCompany(c int) bool {
	if w.q.guests == nil {
		return false
	}
	groups, _ := w.needs(&w.q.classes[c])
	return slices.ContainsFunc(w.q.classes[c].stages, func(stage int) bool {
		some := false
		w.accepts.Sets[stage].Each(func(o int) { some = some || w.q.guests.Are(groups, o) })
		return some
	})
}

// nodesFor returns the nodes of the cell to which pods of the profile may come.
func (w *work) nodesFor(p *topology.Profile, cell []int) bitset.Set {
	if len(w.ground.Company(p, cell)) > 0 {
		return bitset.New(len(w.rooms.Nodes))
	}
	return w.ground.NodesIn(p, cell)
}

// withCompany narrows an accept set to the offers that bring the company which pods of the profile need in the cell.
func (w *work) withCompany(set int, p *topology.Profile, cell []int) int {
	for _, g := range w.ground.Company(p, cell) {
		set = w.accepts.Number(w.accepts.Sets[set].Both(w.q.guests.Matched(g)))
	}
	return set
}

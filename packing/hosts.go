package packing

import (
	"math"

	"github.com/joiner-sh/joiner/topology"
)

// most returns how many more units of the class the rules about hosts let onto
// the machine.
func (f *filler) most(m *machine, class int) int {
	c := &f.q.classes[class]
	if c.members == nil {
		p := f.q.profile(c)
		if len(p.Host) == 0 && len(p.HostIn) == 0 {
			return math.MaxInt
		}
		return m.host.Room(f.q.book, p, f.limits(class))
	}
	room := math.MaxInt
	for _, part := range c.members {
		limits := f.limits(class)
		limits.Together = true // they bring along whom they must be near
		room = min(room, m.host.Room(f.q.book, f.q.profile(&f.q.classes[part.class]), limits)/part.n)
	}
	return room
}

func (f *filler) limits(class int) topology.Limits {
	l := topology.Limits{Strict: !f.lax[class]}
	if f.here {
		l.Fewest, l.Strict = f.ground.fewestOf, f.strict
	}
	return l
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

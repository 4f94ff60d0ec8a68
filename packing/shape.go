package packing

import (
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// shape is what a machine of an offer leaves for pods once the pods of the
// DaemonSets have come. Offers of one model differ in shape only if some
// DaemonSet runs in one zone, or one way of paying, and not in another.
type shape struct {
	room    vector
	daemons capacity.Amounts // what the DaemonSets take
	ports   []cluster.HostPort
	broken  bool // the DaemonSets alone do not fit
}

// shape works out the shape of every offer, exactly: which DaemonSets would
// run there decides.
func (st *stock) shape(daemons []cluster.Daemon) {
	running := make([]bitset, len(daemons)) // by daemon: the offers it runs on
	sorted := sortedDaemons(daemons)
	for d, daemon := range sorted {
		running[d] = st.labels.satisfyingOne(daemon.Required)
		running[d].and(st.tolerated(daemon.Tolerations))
	}
	have := newBitset(len(daemons))
	for i := range st.models {
		m := &st.models[i]
		first := len(st.shapes)
		var kinds []bitset // by shape of this model: the daemons it has
		for o := m.from; o < m.to; o++ {
			clear(have)
			for d := range running {
				if running[d].has(o) {
					have.set(d)
				}
			}
			k := slices.IndexFunc(kinds, func(s bitset) bool { return slices.Equal(s, have) })
			if k < 0 {
				k = len(kinds)
				kinds = append(kinds, have.clone())
				st.shapes = append(st.shapes, st.shapeOf(m, sorted, have))
			}
			st.offers[o].shape = first + k
		}
		m.alike = len(kinds) == 1
	}
}

func (st *stock) shapeOf(m *model, daemons []*cluster.Daemon, have bitset) shape {
	var s shape
	have.each(func(d int) {
		// A pod that asks for a device which the type lacks stays pending; it takes no room.
		for _, e := range daemons[d].Requests.Extended {
			if e.Value > m.typ.Allocatable.Of(e.Name) {
				return
			}
		}
		s.daemons = s.daemons.Add(daemons[d].Requests)
		s.ports = append(s.ports, daemons[d].HostPorts...)
	})
	left := m.typ.Allocatable.Sub(s.daemons)
	s.room = st.res.of(left)
	for i, name := range st.res {
		if strings.HasPrefix(name, attachable) {
			s.room[i] = plenty
			if name == volumesOfEBS && m.typ.Volumes > 0 {
				s.room[i] = m.typ.Volumes
			}
		}
	}
	s.broken = !left.Floor().Equal(left)
	return s
}

func sortedDaemons(daemons []cluster.Daemon) []*cluster.Daemon {
	out := make([]*cluster.Daemon, len(daemons))
	for i := range daemons {
		out[i] = &daemons[i]
	}
	slices.SortStableFunc(out, func(a, b *cluster.Daemon) int {
		if a.Namespace != b.Namespace {
			return compareText(a.Namespace, b.Namespace)
		}
		return compareText(a.Name, b.Name)
	})
	return out
}

// tolerated returns the offers of the pools whose taints are tolerated. Startup
// taints keep nobody away: they are gone before pods run.
func (st *stock) tolerated(tolerations []constraint.Toleration) bitset {
	out := newBitset(len(st.offers))
	for _, p := range st.pools {
		if _, bad := constraint.Untolerated(p.Taints, tolerations); !bad {
			out.setRange(p.from, p.to)
		}
	}
	return out
}

// unavoided returns the offers of the pools that have no soft taint
// (PreferNoSchedule) which is not tolerated.
func (st *stock) unavoided(tolerations []constraint.Toleration) bitset {
	out := newBitset(len(st.offers))
	for _, p := range st.pools {
		avoided := func(t constraint.Taint) bool {
			return t.Effect == constraint.PreferNoSchedule && !constraint.Tolerated(t, tolerations)
		}
		if !slices.ContainsFunc(p.Taints, avoided) {
			out.setRange(p.from, p.to)
		}
	}
	return out
}

// room returns what a machine of the offer leaves for pods.
func (st *stock) room(o int) vector { return st.shapes[st.offers[o].shape].room }

// hosts reports whether a machine of the offer would take one pod of the class.
func (st *stock) hosts(o int, c *class) bool {
	s := &st.shapes[st.offers[o].shape]
	return !s.broken && c.ask.fits(s.room) && !conflicts(c.ports, s.ports)
}

func conflicts(a, b []cluster.HostPort) bool {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Conflicts) {
			return true
		}
	}
	return false
}

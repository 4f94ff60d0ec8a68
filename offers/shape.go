package offers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/bitmap"
	"github.com/joiner-sh/joiner/capacity"
	"github.com/joiner-sh/joiner/cluster"
	"github.com/joiner-sh/joiner/constraint"
)

// Shape is what a machine of an offer leaves for pods once the pods of the
// DaemonSets have come. Offers of one model differ in shape only if some
// DaemonSet runs in one zone, or one way of paying, and not in another.
type Shape struct {
	Room    capacity.Vector
	Daemons capacity.Amounts   // what the DaemonSets take
	Ports   []cluster.HostPort // likewise
	Broken  bool               // the DaemonSets alone do not fit

	Kinds []*cluster.Kind // what their pods are to the places of others, as far as it is known
}

// takes reports whether there is room for so much, and none of the host ports is taken.
func (s *Shape) takes(ask capacity.Vector, ports []cluster.HostPort) bool {
	if s.Broken || !ask.Fits(s.Room) {
		return false
	}
	for _, p := range ports {
		if slices.ContainsFunc(s.Ports, p.Conflicts) {
			return false
		}
	}
	return true
}

// volumesOfEBS is the resource that stands for volumes which the EBS driver attaches.
const volumesOfEBS = capacity.AttachableVolumes + "ebs.csi.aws.com"

// shape works out the shape of every offer, exactly: which DaemonSets would
// run there decides.
func (st *Stock) shape(daemons []cluster.Daemon) {
	running := make([]bitmap.Set, len(daemons)) // by daemon: the offers it runs on
	sorted := sortedDaemons(daemons)
	for d, daemon := range sorted {
		running[d] = st.Labels.SatisfyingOne(daemon.Required)
		running[d].And(st.Tolerated(daemon.Tolerations))
	}
	have := bitmap.New(len(daemons))
	for i := range st.Models {
		m := &st.Models[i]
		first := len(st.Shapes)
		var kinds []bitmap.Set // by shape of this model: the daemons it has
		for o := m.from; o < m.to; o++ {
			clear(have)
			for d := range running {
				if running[d].Has(o) {
					have.Add(d)
				}
			}
			k := slices.IndexFunc(kinds, func(s bitmap.Set) bool { return slices.Equal(s, have) })
			if k < 0 {
				k = len(kinds)
				kinds = append(kinds, have.Clone())
				st.Shapes = append(st.Shapes, st.shapeOf(m, sorted, have))
			}
			st.Offers[o].shape = first + k
		}
		m.alike = len(kinds) == 1
		for _, s := range st.Shapes[first:] {
			for i := range min(len(s.Room), len(m.most)) {
				m.most[i] = max(m.most[i], s.Room[i])
			}
		}
	}
}

func (st *Stock) shapeOf(m *Model, daemons []*cluster.Daemon, have bitmap.Set) Shape {
	var s Shape
	have.Each(func(d int) {
		// A pod that asks for a device which the type lacks stays pending; it takes no room.
		for _, e := range daemons[d].Requests.Extended {
			if e.Value > m.typ.Allocatable.Of(e.Name) {
				return
			}
		}
		s.Daemons = s.Daemons.Add(daemons[d].Requests)
		s.Ports = append(s.Ports, daemons[d].HostPorts...)
		if daemons[d].Kind != nil {
			s.Kinds = append(s.Kinds, daemons[d].Kind)
		}
	})
	left := m.typ.Allocatable.Sub(s.Daemons)
	s.Room = st.Dims.Of(left)
	for i, name := range st.Dims {
		if strings.HasPrefix(name, capacity.AttachableVolumes) {
			s.Room[i] = capacity.Plenty
			if name == volumesOfEBS && m.typ.Volumes > 0 {
				s.Room[i] = m.typ.Volumes
			}
		}
	}
	s.Broken = left.IsNegative()
	return s
}

func sortedDaemons(daemons []cluster.Daemon) []*cluster.Daemon {
	out := make([]*cluster.Daemon, len(daemons))
	for i := range daemons {
		out[i] = &daemons[i]
	}
	slices.SortStableFunc(out, func(a, b *cluster.Daemon) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Tolerated returns the offers of the pools whose taints are tolerated. Startup
// taints keep nobody away: they are gone before pods run.
func (st *Stock) Tolerated(tolerations []constraint.Toleration) bitmap.Set {
	out := bitmap.New(len(st.Offers))
	for _, p := range st.Pools {
		if _, bad := constraint.Untolerated(p.Taints, tolerations); !bad {
			out.AddRange(p.from, p.to)
		}
	}
	return out
}

// unavoided returns the offers of the pools that have no soft taint
// (PreferNoSchedule) which is not tolerated.
func (st *Stock) unavoided(tolerations []constraint.Toleration) bitmap.Set {
	out := bitmap.New(len(st.Offers))
	for _, p := range st.Pools {
		avoided := func(t constraint.Taint) bool {
			return t.Effect == constraint.PreferNoSchedule && !constraint.Tolerated(t, tolerations)
		}
		if !slices.ContainsFunc(p.Taints, avoided) {
			out.AddRange(p.from, p.to)
		}
	}
	return out
}

package packing

import (
	"slices"

	"github.com/joiner-sh/joiner/internal/model/resources"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
	"github.com/joiner-sh/joiner/internal/scheduling/podgroup"
	"github.com/joiner-sh/joiner/internal/scheduling/topology"
)

// machine is a number of alike machines to buy, each with the same pods.
type machine struct {
	offer  int // the one it was filled for
	copies int
	takes  []take
	free   resources.Vector // room that is left on each
	ports  []int            // the lists of host ports that are taken, by number in pending.Queue.Ports
	host   topology.Tally
	met    bool    // the pods of its DaemonSets are in host
	worth  float64 // of its pods, in billionths of a dollar per hour
	price  float64 // of the cheapest offer that could host them, likewise
}

// take is a number of pods of a class on one machine.
type take struct {
	class, n int
	set      int // the accept set under which the class took the offer
}

// laden returns a machine of the offer with these pods, and what they leave of it.
func (w *work) laden(offer int, takes []take) machine {
	shape := w.st.ShapeOf(offer)
	m := machine{offer: offer, takes: takes, free: shape.Room.Clone()}
	m.ports = append(taken(shape), m.podPorts(w.q)...)
	w.q.welcome(&m)
	for _, t := range takes {
		c := &w.q.classes[t.class]
		m.free.Take(c.Ask, t.n)
		w.tally(&m.host, c, t.n)
	}
	return m
}

// valueOf returns what the pods on the machine are worth.
func (w *work) valueOf(m *machine) float64 {
	worth := 0.0
	for _, t := range m.takes {
		worth += float64(t.n) * w.worth[t.class]
	}
	return worth
}

// used returns what the pods on the machine ask for together.
func (m *machine) used(w *work) resources.Vector {
	used := make(resources.Vector, len(w.st.Dims))
	for _, t := range m.takes {
		used.Take(w.q.classes[t.class].Ask, -t.n)
	}
	return used
}

// taken returns the lists of host ports that DaemonSets take on a machine of the shape.
func taken(s *offering.Shape) []int {
	if s.List == podgroup.NoPorts {
		return nil
	}
	return []int{s.List}
}

// clashes reports whether the class has a host port that is in one of the lists.
func (q *queue) clashes(c *class, lists []int) bool {
	return slices.ContainsFunc(c.Lists, func(list int) bool { return q.Ports.ClashAny(list, lists) })
}

// podPorts returns the lists of host ports of the pods on the machine, those of DaemonSets left out.
func (m *machine) podPorts(q *queue) (ports []int) {
	for _, t := range m.takes {
		ports = append(ports, q.classes[t.class].Lists...)
	}
	return ports
}

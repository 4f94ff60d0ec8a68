package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// reserve adds a capacity reservation of the small type in a zone, with left unused instances.
func (w *world) reserve(id, in string, left int) {
	types := w.Market["default"].Types
	for i := range types {
		if types[i].Name == "small" {
			types[i] = types[i].WithOfferings(append(types[i].Offerings, catalog.Offering{
				Zone: in, CapacityType: catalog.Reserved, Available: true,
				Reservation: catalog.Reservation{ID: id, Type: catalog.ReservationDefault, Left: left},
			}))
		}
	}
}

// hold adds a planned node with these pods on an instance of the reservation.
func (w *world) hold(id, in string, pods ...string) *packing.PlannedNode {
	m := w.launch("", pods...)
	m.Offerings = []packing.Choice{{InstanceType: "small", Zone: in, CapacityType: catalog.Reserved, Reservation: id}}
	m.Requirements = []requirements.Requirement{{Key: catalog.LabelReservationID, Operator: requirements.In, Values: []string{id}}}
	return m
}

func (w *world) pods(names ...string) {
	for _, name := range names {
		w.pod(name)
	}
}

// promise adds a NodeClaim for an instance of the reservation that is not launched yet.
func (w *world) promise(id string) *cluster.Node {
	n := w.node("claim-1", "a")
	n.Joined, n.Initialized = false, false
	n.Labels[catalog.LabelReservationID] = id
	return n
}

func TestReservations(t *testing.T) {
	t.Parallel()
	run(t, map[string]verdict{
		"as many as are unused": right(func(w *world) {
			w.reserve("cr-1", "a", 2)
			w.pods("web-1", "web-2")
			w.hold("cr-1", "a", "web-1")
			w.hold("cr-1", "a", "web-2")
		}),
		"one too many": wrong("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pods("web-1", "web-2")
			w.hold("cr-1", "a", "web-1")
			w.hold("cr-1", "a", "web-2")
		}),
		"over two pools": wrong("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.Pools = append(w.Pools, cluster.Pool{Name: "other", NodeClass: "default"})
			w.pods("web-1", "web-2")
			w.hold("cr-1", "a", "web-1")
			w.hold("cr-1", "a", "web-2").Pool = "other"
		}),
		"two reservations": right(func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.reserve("cr-2", "a", 1)
			w.pods("web-1", "web-2")
			w.hold("cr-1", "a", "web-1")
			w.hold("cr-2", "a", "web-2")
		}),
		"instance used by a NodeClaim that is not launched yet": wrong("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.promise("cr-1")
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1")
		}),
		"NodeClaim with an instance": right(func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.promise("cr-1").ProviderID = "aws:///a/i-1"
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1")
		}),
		"another zone": wrong("there is no offering small b reserved cr-1", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pods("web-1")
			w.hold("cr-1", "b", "web-1")
		}),
		"another offering besides the reserved one": wrong("keeps 2 offerings; rules out its own offering small a spot", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1")
			w.keep(0, choice("small", "a", catalog.Spot))
		}),
		"not required": wrong("does not require capacity reservation cr-1", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1").Requirements = nil
		}),
		"refused, but one instance is unused": wrong("a planned node of pool general as small a reserved cr-1 would take it", func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pod("web-1", selecting(catalog.LabelCapacityType, catalog.Reserved))
			w.refuse(packing.ReservationFull, "web-1")
		}),
		"refused, no instance is unused": right(func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1")
			w.pod("web-2", selecting(catalog.LabelCapacityType, catalog.Reserved))
			w.refuse(packing.ReservationFull, "web-2")
		}),
		"minValues do not apply": right(func(w *world) {
			w.reserve("cr-1", "a", 1)
			w.Pools[0].Requirements = in(zone, 2, "a", "b")
			w.pods("web-1")
			w.hold("cr-1", "a", "web-1")
		}),
	})
}

// TestRelaxed checks that minValues are relaxed only where this is allowed and necessary, and that the planned node lists them.
func TestRelaxed(t *testing.T) {
	t.Parallel()
	relax := func(m *packing.PlannedNode, have int) {
		m.Relaxed = []packing.Relaxation{{Key: zone, Asked: 3, Have: have}}
		m.Requirements = in(zone, have, "a", "b", "c")
	}
	pool := func(w *world) {
		w.Pools[0].Requirements, w.Pools[0].Relaxable = in(zone, 3, "a", "b", "c"), true
	}
	run(t, map[string]verdict{
		"kept": right(func(w *world) { pool(w); w.pods("web-1"); w.launch("a b c", "web-1") }),
		"relaxed for a pod": right(func(w *world) {
			pool(w)
			w.pod("web-1", selecting(zone, "a", "b"))
			relax(w.launch("a b", "web-1"), 2)
		}),
		"relaxed for no reason": wrong("each of its pods alone would keep 3", func(w *world) {
			pool(w)
			w.pods("web-1")
			relax(w.launch("a b", "web-1"), 2)
		}),
		"relaxed, and kept": wrong("although it keeps 3 of 3 values", func(w *world) {
			pool(w)
			w.pods("web-1")
			relax(w.launch("a b c", "web-1"), 3)
		}),
		"relaxed but not listed": wrong("keeps 2 of 3 values of topology.kubernetes.io/zone, but does not list the label as relaxed",
			func(w *world) {
				pool(w)
				w.pod("web-1", selecting(zone, "a", "b"))
				w.launch("a b", "web-1")
			}),
		"requires more values than it has": wrong("requires 3 values", func(w *world) {
			pool(w)
			w.pod("web-1", selecting(zone, "a", "b"))
			m := w.launch("a b", "web-1")
			relax(m, 2)
			m.Requirements[0].MinValues = 3
		}),
		"relaxed although not allowed": wrong("keeps 2 values of topology.kubernetes.io/zone, the pool requires 3", func(w *world) {
			pool(w)
			w.Pools[0].Relaxable = false
			w.pod("web-1", selecting(zone, "a", "b"))
			relax(w.launch("a b", "web-1"), 2)
		}),
	})
}

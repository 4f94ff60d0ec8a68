package verify_test

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// addReservation adds a capacity reservation of the small type in a zone, with left unused instances.
func (w *world) addReservation(id, inZone string, left int) {
	types := w.Market["default"].Types
	for i := range types {
		if types[i].Name == "small" {
			types[i] = types[i].WithOfferings(append(types[i].Offerings, catalog.Offering{
				Zone: inZone, CapacityType: catalog.Reserved, Available: true,
				Reservation: catalog.Reservation{ID: id, Type: catalog.ReservationDefault, Left: left},
			}))
		}
	}
}

func (w *world) launchReserved(id, inZone string, pods ...string) *packing.PlannedNode {
	pn := w.launch("", pods...)
	pn.Offerings = []packing.Choice{{InstanceType: "small", Zone: inZone, CapacityType: catalog.Reserved, Reservation: id}}
	pn.Requirements = []requirements.Requirement{{Key: catalog.LabelReservationID, Operator: requirements.In, Values: []string{id}}}
	return pn
}

func (w *world) pods(names ...string) {
	for _, name := range names {
		w.pod(name)
	}
}

// addReservedClaim adds a NodeClaim whose instance of the reservation is not launched yet.
func (w *world) addReservedClaim(id string) *cluster.Node {
	n := w.node("claim-1", "a")
	n.Joined, n.Initialized = false, false
	n.Labels[catalog.LabelReservationID] = id
	return n
}

// TestReservations checks the rules for planned nodes on instances of capacity reservations.
func TestReservations(t *testing.T) {
	t.Parallel()
	run(t, map[string]testCase{
		"as many as are unused": valid(func(w *world) {
			w.addReservation("cr-1", "a", 2)
			w.pods("web-1", "web-2")
			w.launchReserved("cr-1", "a", "web-1")
			w.launchReserved("cr-1", "a", "web-2")
		}),
		"one too many": invalid("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pods("web-1", "web-2")
			w.launchReserved("cr-1", "a", "web-1")
			w.launchReserved("cr-1", "a", "web-2")
		}),
		"over two pools": invalid("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.Pools = append(w.Pools, cluster.Pool{Name: "other", NodeClass: "default"})
			w.pods("web-1", "web-2")
			w.launchReserved("cr-1", "a", "web-1")
			w.launchReserved("cr-1", "a", "web-2").Pool = "other"
		}),
		"two reservations": valid(func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.addReservation("cr-2", "a", 1)
			w.pods("web-1", "web-2")
			w.launchReserved("cr-1", "a", "web-1")
			w.launchReserved("cr-2", "a", "web-2")
		}),
		"instance used by a NodeClaim that is not launched yet": invalid("cr-1 has 1 instances left, the plan needs 2", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.addReservedClaim("cr-1")
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1")
		}),
		"NodeClaim with an instance": valid(func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.addReservedClaim("cr-1").ProviderID = "aws:///a/i-1"
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1")
		}),
		"another zone": invalid("there is no offering small b reserved cr-1", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pods("web-1")
			w.launchReserved("cr-1", "b", "web-1")
		}),
		"another offering besides the reserved one": invalid("keeps 2 offerings; rules out its own offering small a spot", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1")
			w.addOffering(0, choice("small", "a", catalog.Spot))
		}),
		"not required": invalid("does not require capacity reservation cr-1", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1").Requirements = nil
		}),
		"refused, but one instance is unused": invalid("a planned node of pool general (offering small a reserved cr-1) would take it", func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pod("web-1", requiring(catalog.LabelCapacityType, catalog.Reserved))
			w.refuse(packing.ReservationFull, "web-1")
		}),
		"refused, no instance is unused": valid(func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1")
			w.pod("web-2", requiring(catalog.LabelCapacityType, catalog.Reserved))
			w.refuse(packing.ReservationFull, "web-2")
		}),
		"minValues do not apply": valid(func(w *world) {
			w.addReservation("cr-1", "a", 1)
			w.Pools[0].Requirements = requireIn(zone, 2, "a", "b")
			w.pods("web-1")
			w.launchReserved("cr-1", "a", "web-1")
		}),
	})
}

// TestRelaxed checks that minValues are relaxed only where this is allowed and necessary, and that the planned node
// lists the relaxed ones.
func TestRelaxed(t *testing.T) {
	t.Parallel()
	relax := func(pn *packing.PlannedNode, have int) {
		pn.Relaxed = []packing.Relaxation{{Key: zone, Asked: 3, Have: have}}
		pn.Requirements = requireIn(zone, have, "a", "b", "c")
	}
	threeZones := func(w *world) {
		w.Pools[0].Requirements, w.Pools[0].RelaxesMinValues = requireIn(zone, 3, "a", "b", "c"), true
	}
	run(t, map[string]testCase{
		"not relaxed": valid(func(w *world) { threeZones(w); w.pods("web-1"); w.launch("a b c", "web-1") }),
		"relaxed for a pod": valid(func(w *world) {
			threeZones(w)
			w.pod("web-1", requiring(zone, "a", "b"))
			relax(w.launch("a b", "web-1"), 2)
		}),
		"relaxed, but the pod accepts all zones": invalid("each of its pods alone would keep 3", func(w *world) {
			threeZones(w)
			w.pods("web-1")
			relax(w.launch("a b", "web-1"), 2)
		}),
		"listed as relaxed, but all values kept": invalid("although it keeps 3 of 3 values", func(w *world) {
			threeZones(w)
			w.pods("web-1")
			relax(w.launch("a b c", "web-1"), 3)
		}),
		"relaxed but not listed": invalid("keeps 2 of 3 values of topology.kubernetes.io/zone, but does not list the label as relaxed",
			func(w *world) {
				threeZones(w)
				w.pod("web-1", requiring(zone, "a", "b"))
				w.launch("a b", "web-1")
			}),
		"requires more values than it has": invalid("requires 3 values", func(w *world) {
			threeZones(w)
			w.pod("web-1", requiring(zone, "a", "b"))
			pn := w.launch("a b", "web-1")
			relax(pn, 2)
			pn.Requirements[0].MinValues = 3
		}),
		"relaxed although not allowed": invalid("keeps 2 values of topology.kubernetes.io/zone, the pool requires 3", func(w *world) {
			threeZones(w)
			w.Pools[0].RelaxesMinValues = false
			w.pod("web-1", requiring(zone, "a", "b"))
			relax(w.launch("a b", "web-1"), 2)
		}),
	})
}

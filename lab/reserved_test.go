package lab_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpenterv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/lab"
)

// TestReservedCapacity launches an instance into a capacity reservation. Then another user takes the reservation's
// remaining capacity. EC2 reports this only at the next launch, and the next node must be on demand.
func TestReservedCapacity(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	ensureController(t, l)
	name := newTestNamespace(t, l)
	var reservation *world.CapacityReservation
	var err error
	l.Emulator.Do(func(_ *world.World, now time.Time) {
		reservation, err = l.Estate.Region.CapacityReservations.Create(now, world.CapacityReservation{
			Type: "m5.large", Zone: l.Estate.PrivateSubnets[0].Zone, Total: 2, Criteria: "targeted", Tags: map[string]string{"test": name}})
	})
	if err != nil {
		t.Fatal(err)
	}
	manifests := onePerNode(l, name, 1)
	// manifests[0] is the EC2NodeClass, manifests[1] the NodePool.
	manifests[0] = class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]\n  capacityReservationSelectorTerms: [{tags: {test: "+name+"}}]")
	manifests[1] = strings.Replace(manifests[1], "values: [on-demand]", "values: [on-demand, reserved]", 1)
	apply(t, l, manifests...)
	awaitRunning(t, l, name, 1, time.Minute)
	checkReservations(t, l, name, map[string]int{reservation.ID: 1})
	for _, node := range nodesOf(t, l, instancesOf(l, name)) {
		capacityType, id := node.Labels[karpenterv1.LabelCapacityType], node.Labels[awsv1.LabelCapacityReservationID]
		if capacityType != "reserved" || id != reservation.ID {
			t.Errorf("the Node has capacity type %s and reservation %q; want reserved and %s", capacityType, id, reservation.ID)
		}
	}

	l.Emulator.Do(func(*world.World, time.Time) { reservation.Total = 1 }) // the first instance uses all of it
	scale(t, l, name, "one-per-node", 2)
	awaitRunning(t, l, name, 2, time.Minute)
	checkReservations(t, l, name, map[string]int{reservation.ID: 1, "": 1})
	cleanUp(t, l, name)
}

// checkReservations checks how many instances were ever launched for the pool, by the ID of their capacity
// reservation. The empty ID stands for instances without one.
func checkReservations(t *testing.T, l *lab.Lab, pool string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, i := range instancesOf(l, pool) {
		got[i.CapacityReservationID]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances by reservation (-want +got):\n%s", diff)
	}
}

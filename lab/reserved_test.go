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

// TestReservedCapacity launches into a capacity reservation on the real cluster. Then another user takes its remaining
// capacity. EC2 reports that only at the next launch, so that the next node is on demand.
func TestReservedCapacity(t *testing.T) {
	l := beside(t, lab.Options{})
	controller(t, l)
	name := namespaced(t, l)
	var made *world.CapacityReservation
	var err error
	l.Emulator.Do(func(_ *world.World, now time.Time) {
		made, err = l.Estate.Region.CapacityReservations.Create(now, world.CapacityReservation{
			Type: "m5.large", Zone: l.Estate.PrivateSubnets[0].Zone, Total: 2, Criteria: "targeted", Tags: map[string]string{"test": name}})
	})
	if err != nil {
		t.Fatal(err)
	}
	manifests := onePerNode(l, name, 1)
	manifests[0] = class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]\n  capacityReservationSelectorTerms: [{tags: {test: "+name+"}}]")
	manifests[1] = strings.Replace(manifests[1], "values: [on-demand]", "values: [on-demand, reserved]", 1)
	apply(t, l, manifests...)
	allRun(t, l, name, 1, time.Minute)
	reservedOf(t, l, name, map[string]int{made.ID: 1})
	for _, node := range nodesOf(t, l, instancesOf(l, name)) {
		if way, id := node.Labels[karpenterv1.LabelCapacityType], node.Labels[awsv1.LabelCapacityReservationID]; way != "reserved" ||
			id != made.ID {
			t.Errorf("the Node is %s, of reservation %q; want reserved, of %s", way, id, made.ID)
		}
	}

	l.Emulator.Do(func(*world.World, time.Time) { made.Total = 1 })
	scale(t, l, name, "one-per-node", 2)
	allRun(t, l, name, 2, time.Minute)
	reservedOf(t, l, name, map[string]int{made.ID: 1, "": 1})
	nothingLeft(t, l, name)
}

// reservedOf checks the number of instances that were ever launched for the pool, by capacity reservation.
func reservedOf(t *testing.T, l *lab.Lab, pool string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for _, i := range instancesOf(l, pool) {
		got[i.CapacityReservationID]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances by reservation (-want +got):\n%s", diff)
	}
}

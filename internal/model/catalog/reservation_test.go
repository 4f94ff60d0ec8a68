package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReserved(t *testing.T) {
	t.Parallel()
	typ := Type{Name: "t.x", Offerings: []Offering{
		{Zone: "a", CapacityType: Spot, Price: Dollar}, {Zone: "a", CapacityType: OnDemand, Price: 12 * Dollar},
	}}
	zones := []Zone{{Name: "a", ID: "az1"}, {Name: "b", ID: "az2"}}
	of := func(id, typ, zone string, left int) ReservedCapacity {
		return ReservedCapacity{Reservation: Reservation{ID: id, Left: left}, InstanceType: typ, Zone: zone}
	}
	block := of("cr-3", "t.x", "b", 4)
	block.Type, block.Interruptible, block.Expiring = ReservationBlock, true, true
	all := []ReservedCapacity{
		of("cr-2", "t.x", "b", 0), block, of("cr-1", "t.x", "a", 3),
		of("cr-4", "t.y", "a", 1), of("cr-5", "t.x", "c", 1), of("", "t.x", "a", 1), // another type, another zone, no ID
	}
	got := typ.WithReserved(zones, all).Offerings
	if n := len(got); n != 5 || !slices.Equal(got[n-2:], typ.Offerings) {
		t.Fatalf("%d offerings, want three reserved ones, then the two that the type had: %+v", n, got)
	}
	got = got[:3]
	const price = 1200 // a ten-millionth of the on-demand price
	want := []Offering{
		{Zone: "a", ZoneID: "az1", CapacityType: Reserved, Price: price, Available: true,
			Reservation: Reservation{ID: "cr-1", Type: ReservationDefault, Left: 3}},
		{Zone: "b", ZoneID: "az2", CapacityType: Reserved, Price: price, Reservation: Reservation{ID: "cr-2", Type: ReservationDefault}},
		{Zone: "b", ZoneID: "az2", CapacityType: Reserved, Price: price,
			Reservation: Reservation{ID: "cr-3", Type: ReservationBlock, Interruptible: true, Left: 4}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(typ.WithReserved(nil, all).Offerings); n != 6 {
		t.Errorf("%d offerings without zones, want 6: also that of zone c", n)
	}
	labels := got[2].Labels()
	for key, value := range map[string]string{
		LabelCapacityType: Reserved, LabelReservationID: "cr-3", LabelReservationType: ReservationBlock, LabelReservationInterruptible: "true",
	} {
		if labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, labels[key], value)
		}
	}
	if _, ok := (Offering{Zone: "a", CapacityType: Spot}).Labels()[LabelReservationInterruptible]; ok {
		t.Errorf("a spot offering has the label %s", LabelReservationInterruptible)
	}
}

// TestReservationRows: reservations are encoded and decoded, and invalid ones are rejected.
func TestReservationRows(t *testing.T) {
	t.Parallel()
	row := func(offering string) string {
		return "[" + strings.Replace(smallRow, `{"zone":"z","capacityType":"spot","pricePerHour":0.01,"available":true}`, offering, 1) + "]"
	}
	c, err := Decode([]byte(row(`{"zone":"z","capacityType":"reserved","pricePerHour":1e-8,"available":true,` +
		`"capacityReservation":{"id":"cr-1","interruptible":true,"instancesLeft":3}}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := Reservation{ID: "cr-1", Type: ReservationDefault, Interruptible: true, Left: 3}
	if got := c.Types[0].Offerings[0]; got.Reservation != want || got.Price != 10 {
		t.Errorf("read %+v, want reservation cr-1 with 3 instances left, price 10", got)
	}
	text, err := Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
	for reservation, want := range map[string]string{
		`"capacityType":"spot","capacityReservation":{"id":"cr-1","instancesLeft":1}`:                  "cannot be of capacity reservation cr-1",
		`"capacityType":"reserved","capacityReservation":{"id":"","instancesLeft":1}`:                  "has no id",
		`"capacityType":"reserved","capacityReservation":{"id":"cr-1","instancesLeft":-1}`:             "has -1 instances left",
		`"capacityType":"reserved","capacityReservation":{"id":"cr-1","type":"odd","instancesLeft":1}`: `is "odd", want default or capacity-block`,
	} {
		_, err := Decode([]byte(row(`{"zone":"z","pricePerHour":0.01,"available":true,` + reservation + `}`)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", reservation, err, want)
		}
	}
}

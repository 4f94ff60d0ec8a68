package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// row is an instance type in the output of Encode. It has the fields of output.Type, which `joiner catalog -o json`
// prints. The field names must not change.
type row struct {
	InstanceType string              `json:"instanceType"`
	Labels       requirements.Labels `json:"labels"`
	Capacity     map[string]string   `json:"capacity"`
	Allocatable  map[string]string   `json:"allocatable"`
	Volumes      int64               `json:"volumes,omitempty"` // attachable EBS volumes, without those that a node boots with; 0: no limit
	Offerings    []offeringRow       `json:"offerings"`
}

type offeringRow struct {
	Zone         string      `json:"zone"`
	ZoneID       string      `json:"zoneId,omitempty"`
	CapacityType string      `json:"capacityType"`
	PricePerHour json.Number `json:"pricePerHour"` // US dollars
	Available    bool        `json:"available"`

	Reservation *reservationRow `json:"capacityReservation,omitempty"` // only for reserved offerings
}

type reservationRow struct {
	ID            string `json:"id"`
	Type          string `json:"type,omitempty"` // default or capacity-block; empty means default
	Interruptible bool   `json:"interruptible,omitempty"`
	InstancesLeft int    `json:"instancesLeft"`
}

// Encode returns the types of a catalog as JSON, one row per type, ending with a newline. Equal catalogs give equal
// bytes. Decode reverses Encode, except for the fields that are not encoded: Type.Overlaid, Offering.Repriced, and
// Pools, PlacementGroup and PodVolume of the Catalog.
func Encode(c Catalog) ([]byte, error) {
	rows := make([]row, 0, len(c.Types))
	for _, t := range c.Types {
		r := row{
			InstanceType: t.Name,
			Labels:       t.Labels,
			Capacity:     t.Capacity.Map(),
			Allocatable:  t.Allocatable.Map(),
			Volumes:      t.Volumes,
			Offerings:    []offeringRow{},
		}
		for _, o := range t.Offerings {
			r.Offerings = append(r.Offerings, offeringRow{
				Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType,
				PricePerHour: json.Number(o.Price.String()), Available: o.Available, Reservation: rowOf(o.Reservation),
			})
		}
		rows = append(rows, r)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rows); err != nil {
		return nil, fmt.Errorf("write catalog: %w", err)
	}
	return b.Bytes(), nil
}

// Decode parses the output of Encode, or a file written by hand: rows and offerings may be in any order. The region of
// the catalog comes from the label topology.kubernetes.io/region of the types, which must be the same in all rows. The
// error names the invalid row and the cause.
func Decode(data []byte) (Catalog, error) {
	var rows []row
	if err := json.Unmarshal(data, &rows); err != nil {
		return Catalog{}, fmt.Errorf("read catalog: want a JSON list of instance types as `joiner catalog -o json` prints it: %w", err)
	}
	var c Catalog
	for i, r := range rows {
		t, err := r.typ()
		if err != nil {
			return Catalog{}, fmt.Errorf("read catalog: row %d (%s): %w", i+1, cmp.Or(r.InstanceType, "no name"), err)
		}
		region := t.Labels[LabelRegion]
		if i > 0 && region != c.Region {
			return Catalog{},
				fmt.Errorf("read catalog: row %d (%s): region is %q, but the rows before have %q; all rows must have the same region", i+1,
					r.InstanceType, region, c.Region)
		}
		c.Region = region
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(a, b Type) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(c.Types); i++ {
		if name := c.Types[i].Name; c.Types[i-1].Name == name {
			return Catalog{}, fmt.Errorf("read catalog: %s is listed twice", name)
		}
	}
	return c, nil
}

func (r row) typ() (Type, error) {
	if r.InstanceType == "" {
		return Type{}, fmt.Errorf("instanceType is missing")
	}
	if got := r.Labels[LabelInstanceType]; got != r.InstanceType {
		return Type{}, fmt.Errorf("label %s is %q, want %q", LabelInstanceType, got, r.InstanceType)
	}
	total, err := amounts(r.Capacity)
	if err != nil {
		return Type{}, fmt.Errorf("capacity: %w", err)
	}
	allocatable, err := amounts(r.Allocatable)
	if err != nil {
		return Type{}, fmt.Errorf("allocatable: %w", err)
	}
	if total.CPU <= 0 || total.Memory <= 0 {
		return Type{}, fmt.Errorf("capacity: cpu and memory must be more than 0")
	}
	if r.Volumes < 0 {
		return Type{}, fmt.Errorf("volumes is %d, want 0 or more", r.Volumes)
	}
	t := Type{Name: r.InstanceType, Labels: r.Labels, Capacity: total, Allocatable: allocatable, Volumes: r.Volumes}
	for i, o := range r.Offerings {
		offering, err := o.offering()
		if err != nil {
			return Type{}, fmt.Errorf("offering %d: %w", i+1, err)
		}
		t.Offerings = append(t.Offerings, offering)
	}
	slices.SortFunc(t.Offerings, Offering.Compare)
	return t, nil
}

func (o offeringRow) offering() (Offering, error) {
	if o.Zone == "" {
		return Offering{}, fmt.Errorf("zone is missing")
	}
	if !slices.Contains([]string{OnDemand, Spot, Reserved}, o.CapacityType) {
		return Offering{}, fmt.Errorf("capacityType is %q, want %s, %s or %s", o.CapacityType, OnDemand, Spot, Reserved)
	}
	price, err := readPrice(o.PricePerHour)
	if err != nil {
		return Offering{}, err
	}
	out := Offering{Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType, Price: price, Available: o.Available}
	if r := o.Reservation; r != nil {
		out.Reservation = Reservation{
			ID: r.ID, Type: cmp.Or(r.Type, ReservationDefault), Interruptible: r.Interruptible, Left: r.InstancesLeft,
		}
	}
	return out, out.Reservation.Check(out.CapacityType)
}

func rowOf(r Reservation) *reservationRow {
	if r.ID == "" {
		return nil
	}
	return &reservationRow{ID: r.ID, Type: r.Type, Interruptible: r.Interruptible, InstancesLeft: r.Left}
}

// readPrice parses a price in dollars. Other programs may write a number with an exponent, which ParsePrice
// rejects. readPrice rounds such a number to the nearest Price.
func readPrice(n json.Number) (Price, error) {
	if p, err := ParsePrice(n.String()); err == nil {
		return p, nil
	}
	f, err := n.Float64()
	if err != nil || f < 0 {
		return 0, fmt.Errorf("pricePerHour is %q, want dollars", n.String())
	}
	return ParsePrice(strconv.FormatFloat(f, 'f', priceDigits, 64))
}

func amounts(quantities map[string]string) (resources.Amounts, error) {
	var a resources.Amounts
	for _, name := range slices.Sorted(maps.Keys(quantities)) { // sorted, so that the reported error is always the same
		n, err := resources.Parse(name, quantities[name])
		if err != nil {
			return a, err
		}
		a = a.With(name, n)
	}
	return a, nil
}

package output

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Type is a catalog.Type as JSON; a catalog is a list of Types. Its fields are a stable interface.
type Type struct {
	InstanceType string            `json:"instanceType"`      // "m5.large"
	Labels       map[string]string `json:"labels"`            // labels of its nodes
	Capacity     map[string]string `json:"capacity"`          // capacity of a node
	Allocatable  map[string]string `json:"allocatable"`       // part of the capacity that pods may request
	Volumes      int64             `json:"volumes,omitempty"` // number of volumes that can be attached for pods; 0: no limit
	Offerings    []TypeOffering    `json:"offerings"`         // cheapest first
}

// TypeOffering is an offering of the type: a zone, a capacity type and a price.
type TypeOffering struct {
	Zone         string  `json:"zone"`             // "us-east-1a"
	ZoneID       string  `json:"zoneID,omitempty"` // "use1-az1"
	CapacityType string  `json:"capacityType"`     // on-demand, spot or reserved
	PricePerHour float64 `json:"pricePerHour"`     // US dollars
	// Available is false after an insufficient-capacity error of EC2. A missing field means true.
	Available *bool `json:"available"`
	// CapacityReservation is the capacity reservation of a reserved offering.
	CapacityReservation *Reservation `json:"capacityReservation,omitempty"`
}

// Reservation is the capacity reservation of an offering.
type Reservation struct {
	ID            string `json:"id"`                      // "cr-0123"
	Type          string `json:"type,omitempty"`          // default or capacity-block; empty: default
	Interruptible bool   `json:"interruptible,omitempty"` // EC2 may reclaim its instances
	InstancesLeft int    `json:"instancesLeft"`           // available instances, shared by all offerings with this ID
}

// CatalogOf returns the catalog as written to JSON.
func CatalogOf(c catalog.Catalog) []Type {
	out := make([]Type, 0, len(c.Types))
	for _, t := range c.Types {
		row := Type{
			InstanceType: t.Name, Labels: t.Labels, Capacity: t.Capacity.Map(), Allocatable: t.Allocatable.Map(),
			Volumes: t.Volumes, Offerings: []TypeOffering{},
		}
		for _, o := range t.Offerings {
			row.Offerings = append(row.Offerings, TypeOffering{
				Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType,
				PricePerHour: o.Price.Dollars(), Available: &o.Available, CapacityReservation: reservationOf(o.Reservation),
			})
		}
		out = append(out, row)
	}
	return out
}

// CatalogFrom is the inverse of CatalogOf, for a catalog of the region. If only one of capacity and allocatable is set,
// it is used for both. The error names the type and its invalid field.
func CatalogFrom(region string, types []Type) (catalog.Catalog, error) {
	c := catalog.Catalog{Region: region}
	seen := map[string]bool{}
	for i, t := range types {
		if t.InstanceType == "" {
			return c, fmt.Errorf("entry %d has no instanceType", i+1)
		}
		if seen[t.InstanceType] {
			return c, fmt.Errorf("type %s is listed twice", t.InstanceType)
		}
		seen[t.InstanceType] = true
		converted, err := t.read()
		if err != nil {
			return c, fmt.Errorf("type %s: %w", t.InstanceType, err)
		}
		c.Types = append(c.Types, converted)
	}
	slices.SortFunc(c.Types, func(a, b catalog.Type) int { return cmp.Compare(a.Name, b.Name) })
	return c, nil
}

// read converts the type to a catalog.Type. The error names the invalid field.
func (t Type) read() (catalog.Type, error) {
	out := catalog.Type{Name: t.InstanceType, Labels: maps.Clone(t.Labels), Volumes: t.Volumes}
	if t.Volumes < 0 {
		return out, fmt.Errorf("volumes: %d is negative", t.Volumes)
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if _, ok := out.Labels[catalog.LabelInstanceType]; !ok {
		out.Labels[catalog.LabelInstanceType] = t.InstanceType
	}
	var err error
	if out.Capacity, err = amounts(t.Capacity); err != nil {
		return out, fmt.Errorf("capacity: %w", err)
	}
	if out.Allocatable, err = amounts(t.Allocatable); err != nil {
		return out, fmt.Errorf("allocatable: %w", err)
	}
	if out.Allocatable.IsZero() {
		out.Allocatable = out.Capacity
	}
	if out.Capacity.IsZero() {
		out.Capacity = out.Allocatable
	}
	for _, o := range t.Offerings {
		offering, err := o.read()
		if err != nil {
			return out, err
		}
		out.Offerings = append(out.Offerings, offering)
	}
	return out.WithOfferings(out.Offerings), nil // sorts them
}

// read converts the offering to a catalog.Offering. The error says what is invalid.
func (o TypeOffering) read() (catalog.Offering, error) {
	price := o.PricePerHour * float64(catalog.Dollar)
	if o.Zone == "" || o.CapacityType == "" || !(price >= 0 && price < math.MaxInt64/2) {
		return catalog.Offering{}, fmt.Errorf("an offering needs zone, capacityType and a pricePerHour that is not negative")
	}
	out := catalog.Offering{
		Zone: o.Zone, ZoneID: o.ZoneID, CapacityType: o.CapacityType,
		Price: catalog.Price(math.Round(price)), Available: o.Available == nil || *o.Available,
	}
	if r := o.CapacityReservation; r != nil {
		out.Reservation = catalog.Reservation{
			ID: r.ID, Type: cmp.Or(r.Type, catalog.ReservationDefault), Interruptible: r.Interruptible, Left: r.InstancesLeft,
		}
	}
	if err := out.Reservation.Check(o.CapacityType); err != nil {
		return out, fmt.Errorf("an offering in %s: %w", o.Zone, err)
	}
	return out, nil
}

// reservationOf converts a reservation; nil for the zero value.
func reservationOf(r catalog.Reservation) *Reservation {
	if r.ID == "" {
		return nil
	}
	return &Reservation{ID: r.ID, Type: r.Type, Interruptible: r.Interruptible, InstancesLeft: r.Left}
}

func amounts(quantities map[string]string) (resources.Amounts, error) {
	var out resources.Amounts
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		n, err := resources.Parse(name, quantities[name])
		if err != nil {
			return out, err
		}
		out = out.With(name, n)
	}
	return out, nil
}

// TypesTable returns the table of a catalog.
func TypesTable(c catalog.Catalog) Table {
	t := Table{
		Header: []string{"TYPE", "ARCH", "CPU", "MEMORY", "FOR PODS: CPU", "MEMORY", "PODS", "DEVICES", "ZONES", "ON-DEMAND $/H", "SPOT $/H"},
		Right:  []int{2, 3, 4, 5, 6, 8, 9, 10},
	}
	for _, typ := range c.Types {
		var devices []string
		for _, e := range typ.Capacity.Extended {
			if !strings.HasPrefix(e.Name, "vpc.amazonaws.com/") { // network interfaces and addresses
				devices = append(devices, fmt.Sprintf("%d %s", e.Value, e.Name))
			}
		}
		zones := map[string]bool{}
		for _, o := range typ.Offerings {
			zones[o.Zone] = true
		}
		t.Rows = append(t.Rows, []string{
			typ.Name, typ.Labels[catalog.LabelArch],
			resources.Format(resources.CPU, typ.Capacity.CPU), gibibytes(typ.Capacity.Memory),
			resources.Format(resources.CPU, typ.Allocatable.CPU), gibibytes(typ.Allocatable.Memory),
			number(int(typ.Allocatable.Pods)), strings.Join(devices, ", "), number(len(zones)),
			cheapest(typ, catalog.OnDemand), cheapest(typ, catalog.Spot),
		})
	}
	return t
}

// cheapest returns the lowest price of the type with the capacity type; "-" if it has none.
func cheapest(t catalog.Type, capacityType string) string {
	for _, o := range t.Offerings { // sorted by price
		if o.CapacityType == capacityType {
			return o.Price.String()
		}
	}
	return "-"
}

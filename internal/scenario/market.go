package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/model/catalog"
	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// readOfferings reads "TYPE ZONES CAPACITY-TYPES PRICE [attributes]" and adds an offering for each combination of a
// zone and a capacity type. Only the first line of a type sets its labels and amounts.
func (p *parser) readOfferings(words []string) error {
	if len(words) < 4 {
		return errors.New("want TYPE ZONES CAPACITY-TYPES PRICE and amounts")
	}
	typeName := words[0]
	dollars, err := strconv.ParseFloat(words[3], 64)
	if err != nil {
		return fmt.Errorf("price of %s: %w", typeName, err)
	}
	price := catalog.Price(math.Round(dollars * float64(catalog.Dollar)))
	c := p.out.Market[p.class]
	i, known := slices.BinarySearchFunc(c.Types, typeName, func(t catalog.Type, name string) int { return cmp.Compare(t.Name, name) })
	if !known {
		c.Types = slices.Insert(c.Types, i, catalog.Type{Name: typeName})
	}
	a := attributes{arch: "amd64", labels: requirements.Labels{}}
	for _, w := range words[4:] {
		if err := a.read(w); err != nil {
			return fmt.Errorf("type %s: %s: %w", typeName, w, err)
		}
	}
	t := &c.Types[i]
	zones := strings.Split(words[1], ",")
	firstZone, _, _ := strings.Cut(zones[0], "/")
	region := regionOf(firstZone)
	if !known {
		c.Region = cmp.Or(c.Region, region)
		a.applyTo(t, region)
	}
	for _, zone := range zones {
		name, id, _ := strings.Cut(zone, "/")
		for _, capacityType := range strings.Split(words[2], ",") {
			if name == "" || capacityType == "" {
				return fmt.Errorf("type %s: a zone or a capacity type is empty: %s %s", typeName, words[1], words[2])
			}
			t.Offerings = append(t.Offerings, catalog.Offering{
				Zone: name, ZoneID: id, CapacityType: capacityType, Price: price, Available: !a.isShort, Reservation: a.reservation,
			})
			if err := a.reservation.Check(capacityType); err != nil {
				return fmt.Errorf("type %s: %w", typeName, err)
			}
		}
	}
	*t = t.WithOfferings(t.Offerings) // sorts them
	p.out.Market[p.class] = c
	return nil
}

// regionOf returns the zone without its letter: us-east-1 for us-east-1a.
func regionOf(zone string) string { return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz") }

// attributes are the words after the price of an offering.
type attributes struct {
	isShort  bool // EC2 has no capacity for the offerings
	arch     string
	labels   requirements.Labels // labels that differ from usualLabels; an empty value removes the label
	volumes  int64               // EBS volumes that a node can attach; 0: no limit
	amounts  resources.Amounts   // allocatable
	capacity resources.Amounts   // only resources whose capacity differs from the allocatable amount

	reservation catalog.Reservation
}

func (a *attributes) read(word string) error {
	if word == "short" {
		a.isShort = true
		return nil
	}
	key, value, ok := strings.Cut(word, "=")
	if !ok {
		return errors.New("want short or key=value")
	}
	if label, ok := strings.CutPrefix(key, "label:"); ok {
		a.labels[label] = value
		return nil
	}
	if resource, ok := strings.CutPrefix(key, "capacity:"); ok {
		return setAmount(&a.capacity, resource, value)
	}
	switch key {
	case "arch":
		a.arch = value
		return nil
	case "reservation":
		return a.readReservation(value)
	case "left":
		return setInt(&a.reservation.Left, value)
	}
	if resourceOf(key) == volumesOfEBS {
		n, err := resources.Parse(volumesOfEBS, value)
		a.volumes = n
		return err
	}
	return setAmount(&a.amounts, key, value)
}

// readReservation reads a capacity reservation: "ID", "ID/capacity-block" or "ID/default/interruptible".
func (a *attributes) readReservation(text string) error {
	id, rest, _ := strings.Cut(text, "/")
	kind, flag, isInterruptible := strings.Cut(rest, "/")
	if isInterruptible && flag != "interruptible" {
		return errors.New("want ID, ID/TYPE or ID/TYPE/interruptible")
	}
	a.reservation.ID, a.reservation.Type, a.reservation.Interruptible = id, cmp.Or(kind, catalog.ReservationDefault), isInterruptible
	return nil
}

// reservationText returns " reservation=… left=…", with the leading blank.
func reservationText(r catalog.Reservation) string {
	text := " reservation=" + r.ID
	switch {
	case r.Interruptible:
		text += "/" + r.Type + "/interruptible"
	case r.Type != catalog.ReservationDefault:
		text += "/" + r.Type
	}
	return text + " left=" + strconv.Itoa(r.Left)
}

// podsOfType is the number of pods that a node of a type can run, unless the scenario specifies "pods": the kubelet's
// default.
const podsOfType = 110

func (a *attributes) applyTo(t *catalog.Type, region string) {
	if a.amounts.Pods == 0 {
		a.amounts.Pods = podsOfType
	}
	t.Allocatable, t.Capacity = a.amounts, a.amounts
	for _, name := range a.capacity.Names() {
		t.Capacity = t.Capacity.With(name, a.capacity.Of(name))
	}
	t.Volumes = a.volumes
	t.Labels = usualLabels(*t, a.arch, region)
	for key, value := range a.labels {
		if value == "" {
			delete(t.Labels, key)
			continue
		}
		t.Labels[key] = value
	}
}

// usualLabels returns the labels that follow from the type's name and capacity, and from its architecture and region.
func usualLabels(t catalog.Type, arch, region string) requirements.Labels {
	family, size, _ := strings.Cut(t.Name, ".") // family m7g has category m and generation 7
	category := family[:len(family)-len(strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz"))]
	rest := family[len(category):]
	generation := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	return requirements.Labels{
		catalog.LabelInstanceType: t.Name, catalog.LabelArch: arch, catalog.LabelOS: "linux", catalog.LabelRegion: region,
		catalog.LabelFamily: family, catalog.LabelSize: size,
		catalog.LabelCategory: category, catalog.LabelGeneration: generation,
		catalog.LabelCPU:    strconv.FormatInt(t.Capacity.CPU/1000, 10),
		catalog.LabelMemory: strconv.FormatInt(t.Capacity.Memory>>20, 10),
	}
}

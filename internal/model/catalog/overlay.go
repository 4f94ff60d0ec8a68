package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Overlay is a NodeOverlay: another price for some offerings, or additional resources of some types.
type Overlay struct {
	Name   string // of the NodeOverlay
	Weight int    // the higher weight takes precedence; with equal weights, the name that is later in the alphabet

	// Requirements select the offerings to which the overlay applies, by the labels of the type and the offering and by
	// the requirements of the pool. A label that neither these labels nor the pool's requirements have satisfies only
	// NotIn and DoesNotExist.
	Requirements requirements.Requirements

	Price    *Repricing        // nil: prices are not changed
	Capacity resources.Amounts // amounts that replace those of the type; empty: none
}

// Ground has the types of one pool, to which overlays apply.
type Ground struct {
	Pool  string                    // name of the NodePool
	Says  requirements.Requirements // the labels and requirements of the pool
	Types []Type                    // never changed
}

// Laid is the result of Lay.
type Laid struct {
	Types map[string][]Type // by pool, only for pools that an overlay changes
	// Conflicts has the names of the overlays that are not applied, each with that of the overlay that it contradicts.
	Conflicts map[string]string
}

// Lay applies overlays to the types of pools, in the order of Overlay.Weight. The first overlay with a price for an
// offering sets that price. The first overlay with an amount of a resource that selects at least one of a type's
// offerings sets that amount of the type. Two overlays of equal weight with different values for the same price or
// amount contradict each other: the second is not applied at all.
func Lay(grounds []Ground, overlays []Overlay) Laid {
	overlays = slices.SortedFunc(slices.Values(overlays), func(a, b Overlay) int {
		return cmp.Or(-cmp.Compare(a.Weight, b.Weight), -cmp.Compare(a.Name, b.Name))
	})
	out := Laid{Types: map[string][]Type{}, Conflicts: map[string]string{}}
	l := layers{grounds: grounds, said: map[target]saying{}}
	for i := range overlays {
		if other := l.add(&overlays[i]); other != "" {
			out.Conflicts[overlays[i].Name] = other
		}
	}
	for g := range grounds {
		if types := l.types(g); types != nil {
			out.Types[grounds[g].Pool] = types
		}
	}
	return out
}

// layers holds the values that overlays have set so far.
type layers struct {
	grounds []Ground
	said    map[target]saying // by the price or amount that was set
}

// target is a price or an amount that an overlay may change.
type target struct {
	ground, typ int    // indices of the Ground, and of the type in it
	offering    int    // index of the offering whose price is changed; -1 for an amount
	resource    string // name of the resource whose amount is changed
}

// saying holds the values that overlays set for a target.
type saying struct {
	value      int64  // value of the first overlay, which is applied: a Price or an amount
	last       int64  // value of the last overlay
	lastWeight int    // weight of the last overlay
	lastName   string // name of the last overlay
}

// add records the values of the overlay. If it contradicts an overlay of the same weight, add records nothing and
// returns the name of that overlay.
func (l *layers) add(o *Overlay) (contradicted string) {
	fresh := map[target]int64{}
	for g := range l.grounds {
		ground := &l.grounds[g]
		for t := range ground.Types {
			if typ := &ground.Types[t]; o.takesType(typ, ground) {
				o.say(typ, target{ground: g, typ: t}, fresh)
			}
		}
	}
	for at, value := range fresh {
		before, ok := l.said[at]
		// Return the least name, so that the result does not depend on the order of a map.
		if ok && before.lastWeight == o.Weight && before.last != value && (contradicted == "" || before.lastName < contradicted) {
			contradicted = before.lastName
		}
	}
	if contradicted != "" {
		return contradicted
	}
	for at, value := range fresh {
		now := saying{value: value, last: value, lastWeight: o.Weight, lastName: o.Name}
		if before, ok := l.said[at]; ok {
			now.value = before.value
		}
		l.said[at] = now
	}
	return ""
}

// say adds to into the values that the overlay sets for the type at the target at, unless it selects none of the type's
// offerings. takesType must be true for the type.
func (o *Overlay) say(t *Type, at target, into map[target]int64) {
	isSelected := false
	for i := range t.Offerings {
		if !o.takesOffering(&t.Offerings[i]) {
			continue
		}
		isSelected = true
		if o.Price != nil {
			at.offering = i
			into[at] = int64(o.Price.Of(t.Offerings[i].Price))
		}
	}
	if !isSelected {
		return
	}
	at.offering = -1
	for _, name := range o.Capacity.Names() {
		at.resource = name
		into[at] = o.Capacity.Of(name)
	}
}

// takesType reports whether the type's labels satisfy the overlay's requirements, except those on labels of offerings.
// For a label that the type does not have, the pool's requirements must allow a value that satisfies the overlay's.
func (o *Overlay) takesType(t *Type, g *Ground) bool {
	for key, accepted := range o.Requirements {
		if slices.Contains(offeringLabels(), key) {
			continue
		}
		value, hasLabel := t.Labels[key]
		said, isSaid := g.Says[key]
		switch {
		case hasLabel && !accepted.Accepts(value),
			!hasLabel && isSaid && !accepted.Intersects(said),
			!hasLabel && !isSaid && !accepted.Absent:
			return false
		}
	}
	return true
}

// takesOffering reports whether the offering satisfies the overlay's requirements on labels of offerings.
func (o *Overlay) takesOffering(offering *Offering) bool {
	for _, key := range offeringLabels() {
		accepted, ok := o.Requirements[key]
		if !ok {
			continue
		}
		value, hasLabel := offering.label(key)
		if hasLabel && !accepted.Accepts(value) || !hasLabel && !accepted.Absent {
			return false
		}
	}
	return true
}

// types returns the types of a ground with all values applied; nil if no value was set.
func (l *layers) types(ground int) []Type {
	var out []Type
	touched := map[int]bool{}
	for at, s := range l.said {
		if at.ground != ground {
			continue
		}
		if out == nil {
			out = slices.Clone(l.grounds[ground].Types)
		}
		t := &out[at.typ]
		if !touched[at.typ] {
			touched[at.typ] = true
			t.Offerings = slices.Clone(t.Offerings)
		}
		if at.offering >= 0 {
			t.Offerings[at.offering].Price, t.Offerings[at.offering].Repriced = Price(s.value), true
			continue
		}
		t.Overlaid = true
		t.Capacity, t.Allocatable = t.Capacity.With(at.resource, s.value), t.Allocatable.With(at.resource, s.value)
	}
	for _, i := range slices.Sorted(maps.Keys(touched)) {
		out[i] = out[i].WithOfferings(out[i].Offerings)
	}
	return out
}

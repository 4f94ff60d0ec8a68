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
	Name   string // name of the NodeOverlay
	Weight int    // a higher weight takes precedence, and among equal weights the name that is later in the alphabet

	// Requirements select the offerings to which the overlay applies: by the labels of the type and of the offering,
	// and by the requirements of the pool. A key that is in none of them satisfies only NotIn and DoesNotExist.
	Requirements requirements.Requirements

	Price    *Repricing        // nil: prices are not changed
	Capacity resources.Amounts // amounts that replace those of the type; empty: none
}

// PoolTypes has the types of one pool, to which overlays apply.
type PoolTypes struct {
	Pool         string                    // name of the NodePool
	Requirements requirements.Requirements // the labels and requirements of the pool
	Types        []Type                    // never changed
}

// AppliedOverlays is the result of ApplyOverlays.
type AppliedOverlays struct {
	Types map[string][]Type // by pool, only pools that an overlay changes: all types of the pool
	// Conflicts has, by name of an overlay that is not applied, the name of the overlay that it contradicts.
	Conflicts map[string]string
}

// ApplyOverlays applies overlays to the types of pools, in the order of precedence of Overlay.Weight. The first overlay
// with a price for an offering sets that price. The first overlay that has an amount of a resource and selects an
// offering of a type sets that amount of the type. Two overlays of equal weight contradict each other if they have
// different values for the same price or amount. Then the second in that order is not applied at all.
func ApplyOverlays(pools []PoolTypes, overlays []Overlay) AppliedOverlays {
	overlays = slices.SortedFunc(slices.Values(overlays), func(a, b Overlay) int {
		return cmp.Or(-cmp.Compare(a.Weight, b.Weight), -cmp.Compare(a.Name, b.Name))
	})
	out := AppliedOverlays{Types: map[string][]Type{}, Conflicts: map[string]string{}}
	l := layers{pools: pools, set: map[target]overlaidValue{}}
	for i := range overlays {
		if other := l.add(&overlays[i]); other != "" {
			out.Conflicts[overlays[i].Name] = other
		}
	}
	for p := range pools {
		if types := l.types(p); types != nil {
			out.Types[pools[p].Pool] = types
		}
	}
	return out
}

// layers holds the values that overlays have set so far.
type layers struct {
	pools []PoolTypes
	set   map[target]overlaidValue // values that overlays set, by the price or amount that they replace
}

// target is a price or an amount that an overlay may change.
type target struct {
	pool, typ int    // index in layers.pools; index in PoolTypes.Types
	offering  int    // index of the offering whose price is changed; -1 for an amount
	resource  string // name of the resource whose amount is changed; empty for a price
}

// overlaidValue holds the values that overlays set for a target.
type overlaidValue struct {
	value      int64  // value of the first overlay, which is applied: a Price or an amount
	last       int64  // value of the last overlay
	lastWeight int    // weight of the last overlay
	lastName   string // name of the last overlay
}

// add records the values of o. If o contradicts an overlay of the same weight, add records nothing and returns the name
// of that overlay.
func (l *layers) add(o *Overlay) (contradicted string) {
	values := map[target]int64{}
	for p := range l.pools {
		pool := &l.pools[p]
		for t := range pool.Types {
			if typ := &pool.Types[t]; o.selectsType(typ, pool) {
				o.addValues(values, typ, target{pool: p, typ: t})
			}
		}
	}
	for at, value := range values {
		before, ok := l.set[at]
		// Return the first name in the alphabet, so that the result does not depend on the order of a map.
		if ok && before.lastWeight == o.Weight && before.last != value && (contradicted == "" || before.lastName < contradicted) {
			contradicted = before.lastName
		}
	}
	if contradicted != "" {
		return contradicted
	}
	for at, value := range values {
		after := overlaidValue{value: value, last: value, lastWeight: o.Weight, lastName: o.Name}
		if before, ok := l.set[at]; ok {
			after.value = before.value
		}
		l.set[at] = after
	}
	return ""
}

// addValues adds to values what the overlay sets for the type t: prices of the offerings that the overlay selects, and
// amounts of the type if it selects any offering. at has the indices of the type. selectsType must be true for the
// type.
func (o *Overlay) addValues(values map[target]int64, t *Type, at target) {
	isAnySelected := false
	for i := range t.Offerings {
		if !o.selectsOffering(&t.Offerings[i]) {
			continue
		}
		isAnySelected = true
		if o.Price != nil {
			at.offering = i
			values[at] = int64(o.Price.Apply(t.Offerings[i].Price))
		}
	}
	if !isAnySelected {
		return
	}
	at.offering = -1
	for _, name := range o.Capacity.Names() {
		at.resource = name
		values[at] = o.Capacity.Of(name)
	}
}

// selectsType reports whether the type satisfies the overlay's requirements, except those on labels of offerings. If
// the type does not have a label, the pool's requirements must accept a value, or absence, that the overlay also
// accepts.
func (o *Overlay) selectsType(t *Type, pool *PoolTypes) bool {
	for key, accepted := range o.Requirements {
		if slices.Contains(offeringLabels(), key) {
			continue
		}
		value, hasLabel := t.Labels[key]
		ofPool, isConstrained := pool.Requirements[key]
		switch {
		case hasLabel && !accepted.Accepts(value),
			!hasLabel && isConstrained && !accepted.Intersects(ofPool),
			!hasLabel && !isConstrained && !accepted.Absent:
			return false
		}
	}
	return true
}

// selectsOffering reports whether the offering satisfies the overlay's requirements on labels of offerings.
func (o *Overlay) selectsOffering(offering *Offering) bool {
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

// types returns the types of the pool with this index, with all values applied; nil if no value was set.
func (l *layers) types(pool int) []Type {
	var out []Type
	changed := map[int]bool{}
	for at, v := range l.set {
		if at.pool != pool {
			continue
		}
		if out == nil {
			out = slices.Clone(l.pools[pool].Types)
		}
		t := &out[at.typ]
		if !changed[at.typ] {
			changed[at.typ] = true
			t.Offerings = slices.Clone(t.Offerings)
		}
		if at.offering >= 0 {
			t.Offerings[at.offering].Price, t.Offerings[at.offering].Repriced = Price(v.value), true
			continue
		}
		t.Overlaid = true
		t.Capacity, t.Allocatable = t.Capacity.With(at.resource, v.value), t.Allocatable.With(at.resource, v.value)
	}
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		out[i] = out[i].WithOfferings(out[i].Offerings)
	}
	return out
}

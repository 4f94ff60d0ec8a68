package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/model/requirements"
	"github.com/joiner-sh/joiner/internal/model/resources"
)

// Overlay is what a user knows better than the cloud: another price for some
// offerings, resources that nodes of some types have besides.
type Overlay struct {
	Name   string // of the NodeOverlay
	Weight int    // the heavier goes first; of one weight, the name that is later in the alphabet

	// Requirements select the offerings to which the overlay applies, by the labels
	// of type and offering and the requirements of the pool. A label that none of
	// them defines meets only NotIn and DoesNotExist.
	Requirements requirements.Requirements

	Price    *Repricing        // nil: prices stay as they are
	Capacity resources.Amounts // resources by name, in place of what the type has of them; empty: none
}

// Ground has the types of one pool, to which overlays apply.
type Ground struct {
	Pool  string                    // name of the NodePool
	Says  requirements.Requirements // the labels and requirements of the pool
	Types []Type                    // never altered
}

// Laid is the outcome of Lay.
type Laid struct {
	Types map[string][]Type // by pool: those of the pools that some overlay touches
	// Conflicts names, for each overlay that is not applied anywhere, the one that it contradicts.
	Conflicts map[string]string
}

// Lay lays overlays over the types of pools. The first overlay that gives an
// offering a price counts, and the first that says how much of a resource a type
// has; for the latter it is enough that one of the type's offerings is meant. Two
// overlays of one weight that say different things of the same contradict each
// other: the one that comes second is left out altogether.
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

// layers are what overlays have said so far.
type layers struct {
	grounds []Ground
	said    map[target]saying
}

// target is a price or an amount that an overlay may change.
type target struct {
	ground, typ int
	offering    int    // its price; -1: not a price
	resource    string // its amount
}

// saying is what overlays say of a target.
type saying struct {
	value  int64  // what the first of them says, which counts: a Price or an amount
	last   int64  // what the last of them says
	weight int    // of the last
	by     string // name of the last
}

// add notes what the overlay says, unless it contradicts one of the same weight, whose name it returns then.
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
		// The least name, so that the answer does not depend on the order of a map.
		if ok && before.weight == o.Weight && before.last != value && (contradicted == "" || before.by < contradicted) {
			contradicted = before.by
		}
	}
	if contradicted != "" {
		return contradicted
	}
	for at, value := range fresh {
		now := saying{value: value, last: value, weight: o.Weight, by: o.Name}
		if before, ok := l.said[at]; ok {
			now.value = before.value
		}
		l.said[at] = now
	}
	return ""
}

// say writes down what the overlay makes of a type that it may hold for.
func (o *Overlay) say(t *Type, at target, into map[target]int64) {
	isMeant := false
	for i := range t.Offerings {
		if !o.takesOffering(&t.Offerings[i]) {
			continue
		}
		isMeant = true
		if o.Price != nil {
			at.offering = i
			into[at] = int64(o.Price.Of(t.Offerings[i].Price))
		}
	}
	if !isMeant {
		return
	}
	at.offering = -1
	for _, name := range o.Capacity.Names() {
		at.resource = name
		into[at] = o.Capacity.Of(name)
	}
}

// takesType reports whether the type and the pool have what the overlay requires, but for what offerings define.
func (o *Overlay) takesType(t *Type, g *Ground) bool {
	for key, accepted := range o.Requirements {
		if slices.Contains(offeringLabels(), key) {
			continue
		}
		value, has := t.Labels[key]
		said, isSaid := g.Says[key]
		switch {
		case has && !accepted.Accepts(value),
			!has && isSaid && !accepted.Intersects(said),
			!has && !isSaid && !accepted.Absent:
			return false
		}
	}
	return true
}

func (o *Overlay) takesOffering(offering *Offering) bool {
	for _, key := range offeringLabels() {
		accepted, ok := o.Requirements[key]
		if !ok {
			continue
		}
		value, has := offering.label(key)
		if has && !accepted.Accepts(value) || !has && !accepted.Absent {
			return false
		}
	}
	return true
}

// types returns the types of a ground with all that was said of them; nil if nothing was.
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

package lowerbound

import (
	"math"
	"slices"
	"strconv"
)

// With many classes, some are similar, and the best shares for a few representative classes are nearly the best for
// all. The proof of the dual prices uses all classes, so the bound is valid but slightly lower.

const (
	fewOptions       = 8000 // up to this number of options over all classes, an ascent is fast enough without coarse
	stepsPerDoubling = 2    // amounts in the same step count as similar; an amount is this many steps below its double
)

// buildCoarse sets a.coarse: an ascent in which classes with about the same requests on the same kinds are one class.
// It changes the same shares as a. buildCoarse sets nothing if a has few options, or if the representative classes are
// more than half of all classes.
func (a *ascent) buildCoarse() {
	options := 0
	for _, o := range a.options {
		options += len(o)
	}
	if options <= fewOptions {
		return
	}
	r := *a
	part := *a.part
	r.part, part.classes = &part, nil
	seen := map[string]int{}
	var weights []float64 // by class of r: number of pods
	var key []byte
	r.options, r.slotUses = nil, nil
	for c := range a.classes {
		class := &a.classes[c]
		key = a.similarityKey(key[:0], c)
		at, ok := seen[string(key)]
		if !ok {
			at = len(part.classes)
			seen[string(key)] = at
			representative := *class
			representative.ask = make([]float64, len(class.ask))
			part.classes, weights = append(part.classes, representative), append(weights, 0)
			r.options, r.slotUses = append(r.options, a.withoutOwnSlots(c)), append(r.slotUses, a.slotUses[c])
		}
		a.coarseOf = append(a.coarseOf, at)
		weights[at] += float64(class.count)
		for i, n := range class.ask {
			part.classes[at].ask[i] += n * float64(class.count)
		}
	}
	if 2*len(part.classes) > len(a.classes) {
		return
	}
	for i := range part.classes {
		for n := range part.classes[i].ask {
			part.classes[i].ask[n] /= weights[i]
		}
	}
	r.usedSlots = r.findUsedSlots()
	r.packAsks()
	a.coarse = &r
}

// similarityKey appends a key that is equal for classes that one class represents.
func (a *ascent) similarityKey(key []byte, c int) []byte {
	class := &a.classes[c]
	key = strconv.AppendInt(key, int64(class.set), 36)
	key = strconv.AppendInt(append(key, ' '), int64(len(a.options[c])), 36)
	for _, n := range class.ask {
		key = append(key, ' ')
		if n > 0 {
			key = strconv.AppendInt(key, int64(math.Floor(stepsPerDoubling*math.Log2(n))), 36)
		}
	}
	if class.shared < 0 {
		return strconv.AppendInt(append(key, '/'), int64(class.cap), 36)
	}
	for _, g := range class.groups {
		key = strconv.AppendInt(append(key, '/'), int64(g), 36)
	}
	return key
}

// withoutOwnSlots returns the options of a class without slots for groups that have only this class, because such slots
// are rarely scarce.
func (a *ascent) withoutOwnSlots(c int) []option {
	class := &a.classes[c]
	if class.shared >= 0 || len(class.groups) == 0 {
		return a.options[c]
	}
	out := slices.Clone(a.options[c])
	for i := range out {
		out[i].from += int32(len(class.groups)) // slots for groups come first
	}
	return out
}

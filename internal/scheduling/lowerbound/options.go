package lowerbound

import (
	"math"
	"slices"
)

// findOptions finds the kinds that hold each class, and the slots that a pod of the class takes there. It adds these
// slots to the kinds. Only kinds with inRelaxation are in an option.
func (a *ascent) findOptions() {
	a.options, a.slotUses = make([][]option, len(a.classes)), make([][]slotUse, len(a.classes))
	resources := len(a.classes[0].ask)
	byGroup := make([][]int32, len(a.problem.Caps)) // by group, by kind: index of its slots for the group, plus one; 0: none yet
	// Like byGroup, but for the slots for large pods: by kind, by resource, by slot.count minus one.
	large := make([]int32, len(a.kinds)*resources*maxLargeSlots)
	maxOptions := 0
	for c := range a.classes {
		maxOptions += len(a.holders[c])
	}
	cells := make([]option, maxOptions)      // memory for the options of all classes
	rooms := make([][]float64, len(a.kinds)) // nil for kinds that are not in the relaxation
	for i := range a.kinds {
		if k := &a.kinds[i]; k.inRelaxation {
			rooms[i] = k.room
		}
	}
	var uses []slotUse // of the current class
	for c := range a.classes {
		uses = uses[:0]
		a.options[c], cells = cells[:0:len(a.holders[c])], cells[len(a.holders[c]):]
		for _, i := range a.holders[c] {
			room := rooms[i]
			if room == nil {
				continue
			}
			o := option{kind: int32(i), from: int32(len(uses))}
			for _, g := range a.classes[c].groups {
				if byGroup[g] == nil {
					byGroup[g] = make([]int32, len(a.kinds))
				}
				uses = append(uses, a.useSlots(i, &byGroup[g][i], a.problem.Caps[g], 1))
			}
			for r, ask := range a.classes[c].ask {
				if (maxLargeSlots+1)*ask <= room[r] {
					continue // the class takes no slots for large pods
				}
				for n := 1; n <= maxLargeSlots; n++ {
					if used := math.Ceil(float64(n+1)*ask/room[r]) - 1; used > 0 {
						uses = append(uses, a.useSlots(i, &large[(i*resources+r)*maxLargeSlots+n-1], n, int32(used)))
					}
				}
			}
			o.to = int32(len(uses))
			a.options[c] = append(a.options[c], o)
		}
		if len(uses) > 0 {
			a.slotUses[c] = slices.Clone(uses)
		}
	}
}

func (a *ascent) findUsedSlots() [][]int32 {
	seen, out := make([][]bool, len(a.kinds)), make([][]int32, len(a.kinds))
	for i := range a.kinds {
		seen[i] = make([]bool, len(a.slots[i]))
	}
	for c := range a.options {
		for _, o := range a.options[c] {
			for _, t := range a.slotUses[c][o.from:o.to] {
				seen[o.kind][t.slot] = true
			}
		}
	}
	for i := range seen {
		for s, isTaken := range seen[i] {
			if isTaken {
				out[i] = append(out[i], int32(s))
			}
		}
	}
	return out
}

// useSlots returns the use of n slots of a kind. at is the index of the slots in a.slots[kind], plus one. If *at is 0,
// useSlots adds count slots to the kind and sets *at.
func (a *ascent) useSlots(kind int, at *int32, count int, n int32) slotUse {
	if *at == 0 {
		a.slots[kind] = append(a.slots[kind], slot{count: int32(count), pace: pace{speed: 1}})
		*at = int32(len(a.slots[kind]))
	}
	return slotUse{slot: *at - 1, n: n}
}

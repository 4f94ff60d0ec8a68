package lowerbound

import (
	"math"
	"slices"
)

// findOptions finds the kinds that hold each class, and gives them their slots.
func (a *ascent) findOptions() {
	a.options, a.takes = make([][]option, len(a.classes)), make([][]taken, len(a.classes))
	resources := len(a.classes[0].ask)
	byGroup := make([][]int32, len(a.problem.Caps)) // by kind: the slot, plus one
	large := make([]int32, len(a.kinds)*resources*largest)
	all := 0
	for c := range a.classes {
		all += len(a.holders[c])
	}
	cells := make([]option, all)
	rooms := make([][]float64, len(a.kinds)) // nil for kinds that are not in the relaxation
	for i := range a.kinds {
		if k := &a.kinds[i]; k.lead {
			rooms[i] = k.room
		}
	}
	var takes []taken
	for c := range a.classes {
		takes = takes[:0]
		a.options[c], cells = cells[:0:len(a.holders[c])], cells[len(a.holders[c]):]
		for _, i := range a.holders[c] {
			room := rooms[i]
			if room == nil {
				continue
			}
			o := option{kind: int32(i), from: int32(len(takes))}
			for _, g := range a.classes[c].groups {
				if byGroup[g] == nil {
					byGroup[g] = make([]int32, len(a.kinds))
				}
				takes = append(takes, a.take(i, &byGroup[g][i], a.problem.Caps[g], 1))
			}
			for r, ask := range a.classes[c].ask {
				if (largest+1)*ask <= room[r] {
					continue // the class takes no slots
				}
				for n := 1; n <= largest; n++ {
					if taken := math.Ceil(float64(n+1)*ask/room[r]) - 1; taken > 0 {
						takes = append(takes, a.take(i, &large[(i*resources+r)*largest+n-1], n, int32(taken)))
					}
				}
			}
			o.to = int32(len(takes))
			a.options[c] = append(a.options[c], o)
		}
		if len(takes) > 0 {
			a.takes[c] = slices.Clone(takes)
		}
	}
}

// taken returns, by kind, the slots that a pod of some class takes, ascending.
func (a *ascent) taken() [][]int32 {
	seen, out := make([][]bool, len(a.kinds)), make([][]int32, len(a.kinds))
	for i := range a.kinds {
		seen[i] = make([]bool, len(a.slots[i]))
	}
	for c := range a.options {
		for _, o := range a.options[c] {
			for _, t := range a.takes[c][o.from:o.to] {
				seen[o.kind][t.slot] = true
			}
		}
	}
	for i := range seen {
		for s, yes := range seen[i] {
			if yes {
				out[i] = append(out[i], int32(s))
			}
		}
	}
	return out
}

// take returns a taken for n of the slots. It adds the slots to the kind if they do not exist yet.
func (a *ascent) take(kind int, slots *int32, count int, n int32) taken {
	if *slots == 0 {
		a.slots[kind] = append(a.slots[kind], slot{count: int32(count), pace: pace{speed: 1}})
		*slots = int32(len(a.slots[kind]))
	}
	return taken{slot: *slots - 1, n: n}
}

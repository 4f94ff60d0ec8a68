package packing

import (
	"maps"
	"slices"

	"github.com/joiner-sh/joiner/internal/scheduling/existing"
	"github.com/joiner-sh/joiner/internal/scheduling/offering"
)

// mostAttempts bounds how often a plan is made anew because some domain could
// not have the pods that were sent there.
const mostAttempts = 4

// isShort reports whether some domain has fewer pods than were sent there.
func (w *work) isShort() bool {
	for c := range w.q.classes {
		if w.q.classes[c].cell != nil && w.left[c] > 0 {
			return true
		}
	}
	return false
}

// got returns, for each part of a class that has any, how many units have a place.
func (w *work) got() map[string]int {
	out := map[string]int{}
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if n := w.all(c) - w.left[c]; p.cell != nil && n > 0 {
			out[capKey(p.base, p.cell)] = n
		}
	}
	return out
}

// sends returns, for each part of a class, how many units are sent there.
func (w *work) sends() map[string]int {
	out := map[string]int{}
	for c, n := range w.sent {
		p := &w.q.classes[c]
		out[capKey(p.base, p.cell)] = n
	}
	return out
}

// all returns how many units the class has, those in bundles too.
func (w *work) all(c int) int {
	if w.q.classes[c].cell == nil {
		return w.q.classes[c].units()
	}
	return w.sent[c]
}

// again begins the plan anew, with what this attempt has found out: no domain
// is sent more than it could have.
func (w *work) again(r *existing.Rooms, g *existing.Ground, q *queue) *work {
	next := newWork(w.st, q, w.accepts, r, g, w.effort)
	next.steps = w.steps
	next.caps, next.eased = maps.Clone(w.caps), maps.Clone(w.eased)
	got := w.got()
	for c := range w.q.classes {
		if p := &w.q.classes[c]; p.cell != nil && w.left[c] > 0 {
			if w.limited() && w.wishes(p) && !w.eased[p.base] {
				next.eased[p.base] = true // a limit is spent on wishes: pods come first
				continue
			}
			key := capKey(p.base, p.cell)
			next.caps[key] = got[key]
		}
	}
	next.split()
	return next
}

// limited reports whether some pool has limits.
func (w *work) limited() bool {
	return slices.ContainsFunc(w.budgets, func(b offering.Budget) bool { return !b.Unlimited() })
}

// agrees reports whether what has a place is what other would send.
func (w *work) agrees(other *work) bool {
	return maps.Equal(w.got(), other.sends())
}

// withdraw takes pods out of the plan that other would not send to their domain:
// they would be there only if others, who found no place, were too.
func (w *work) withdraw(other *work) {
	sent := other.sends()
	for c := range w.q.classes {
		p := &w.q.classes[c]
		if p.cell == nil {
			continue
		}
		if n := w.all(c) - w.left[c] - sent[capKey(p.base, p.cell)]; n > 0 {
			w.remove(c, n)
		}
	}
}

// remove takes n units of the class off machines, and then off nodes.
func (w *work) remove(c, n int) {
	for i := len(w.machines) - 1; i >= 0 && n > 0; i-- {
		n = w.removeFrom(i, c, n)
	}
	w.machines = slices.DeleteFunc(w.machines, func(m machine) bool { return m.copies == 0 || len(m.takes) == 0 })
	for i := len(w.placed) - 1; i >= 0 && n > 0; i-- {
		if at := &w.placed[i]; at.class == c {
			off := min(at.n, n)
			at.n -= off
			n -= off
			w.left[c] += off
		}
	}
}

// removeFrom takes units of the class off the copies of one machine, and returns how many are still to go.
func (w *work) removeFrom(i, c, n int) int {
	t := slices.IndexFunc(w.machines[i].takes, func(t take) bool { return t.class == c })
	if t < 0 {
		return n
	}
	each := w.machines[i].takes[t].n
	for _, off := range [2]int{each, n % each} {
		copies := min(n/max(off, 1), w.machines[i].copies)
		if off == 0 || copies == 0 {
			continue
		}
		less := w.machines[i].clone()
		less.copies = copies
		if less.takes[t].n -= off; less.takes[t].n == 0 {
			less.takes = slices.Delete(less.takes, t, t+1)
		}
		w.machines[i].copies -= copies
		w.machines = append(w.machines, less)
		w.left[c] += copies * off
		n -= copies * off
	}
	return n
}

// withdrawFrom takes n pods of the class off a place, or off any; with those in bundles goes the whole bundle. It leaves machines
// without copies or pods, and nobody on nodes, behind.
func (w *work) withdrawFrom(c, at, n int) {
	for _, s := range slices.Backward(w.stands()) {
		if n <= 0 {
			return
		}
		if s.class != c || at != anywhere && s.at != at {
			continue
		}
		nodes := len(w.rooms.Nodes)
		switch {
		case s.outer != s.class:
			w.takeOff(s)
			n -= s.n
		case s.at >= nodes:
			n = w.removeFrom(s.at-nodes, c, n)
		default:
			n = w.removeFromNode(s.at, c, n)
		}
	}
}

// removeFromNode takes units of the class off a node, and returns how many are still to go.
func (w *work) removeFromNode(node, c, n int) int {
	for i := range w.placed {
		if at := &w.placed[i]; at.node == node && at.class == c {
			off := min(at.n, n)
			at.n -= off
			n -= off
			w.left[c] += off
		}
	}
	return n
}

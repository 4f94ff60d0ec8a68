package drain

import (
	"cmp"
	"slices"
	"time"
)

// Step is what to do with the pods of a node that is leaving.
type Step struct {
	// Evict are the pods whose turn it is, by the eviction API, which respects PodDisruptionBudgets: the largest first.
	Evict []Pod
	// Force are the pods that are out of time, to be deleted whatever protects them.
	Force []Forced

	// Held: it is the turn of others first (InTurn).
	Held bool

	// Waiting is how many pods must still leave, those of Evict and Force included. 0: the node is empty.
	Waiting int
	// Protected are the pods that are waited for and may not be evicted because of their annotation.
	Protected []Pod
	// Misread are the pods whose annotation says nothing that can be understood, so that it protects nothing.
	Misread []Pod
}

// Forced is a pod to delete, and how long it gets to end.
type Forced struct {
	Pod   Pod
	Grace time.Duration // at least a second
}

// Next says which pods leave next. A tier is asked to leave only when all of the tiers before it have left. With a
// deadline (zero for none), a pod of any tier is forced in time for its own grace period to fit before it. Pods that are as large as
// each other, and all lists but Evict, are sorted by namespace and name.
//
// Large pods leave before small ones because kube-scheduler puts whoever comes on the emptiest node: small ones that came first would
// fill all nodes evenly, and leave large ones no room anywhere.
func Next(pods []Pod, deadline, now time.Time) Step {
	var step Step
	turn := -1
	var leaving []Pod
	for _, p := range pods {
		if !p.MustLeave(now) {
			continue
		}
		leaving = append(leaving, p)
		if tier := p.tier(); turn < 0 || tier < turn {
			turn = tier
		}
	}
	slices.SortFunc(leaving, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	step.Waiting = len(leaving)
	for _, p := range leaving {
		if p.misread() {
			step.Misread = append(step.Misread, p)
		}
		switch {
		case mustForce(p, deadline, now):
			step.Force = append(step.Force, Forced{p, max(deadline.Sub(now), time.Second)})
		case !p.Deleted.IsZero() || p.tier() != turn:
		case p.Protected(now):
			step.Protected = append(step.Protected, p)
		default:
			step.Evict = append(step.Evict, p)
		}
	}
	slices.SortStableFunc(step.Evict, func(a, b Pod) int { return cmp.Compare(b.Bulk, a.Bulk) })
	return step
}

// mustForce reports whether waiting any longer would take the pod past the deadline. A pod that is on its way out
// already is hurried only if it would end after it.
func mustForce(p Pod, deadline, now time.Time) bool {
	if deadline.IsZero() {
		return false
	}
	if !p.Deleted.IsZero() {
		return p.Deleted.After(deadline)
	}
	return now.After(deadline.Add(-p.Grace))
}

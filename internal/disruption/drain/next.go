package drain

import (
	"cmp"
	"slices"
	"time"
)

// Step is the next step of draining a node.
type Step struct {
	// Evict are the pods to evict now: constrained pods first, and otherwise large pods before small ones. They are
	// evicted with the eviction API, which respects PodDisruptionBudgets.
	Evict []Pod
	// Force are the pods whose grace period no longer fits before the deadline. They are deleted without regard to
	// their protection.
	Force []Forced

	// Held is true if InTurn has limited Evict to the pod whose turn it is, or emptied it. The other pods wait for
	// their turns, although they could be evicted now.
	Held bool

	// Waiting is the number of pods that must still leave, including those of Evict and Force. 0: the node is drained.
	Waiting int
	// Protected are the remaining pods whose annotation forbids their eviction.
	Protected []Pod
	// InvalidProtection are the pods whose annotation has an invalid value. Such a value protects nothing.
	InvalidProtection []Pod
}

// Forced is a pod to delete, and its grace period.
type Forced struct {
	Pod   Pod
	Grace time.Duration // at least one second
}

// Next returns which pods to evict next. A tier (Pod.tier) is evicted only after all tiers before it have left. With a
// deadline (zero for none), a pod of any tier is deleted early enough for its grace period to end before the deadline.
// Evict is sorted by constraints, size, namespace and name; the other lists are sorted by namespace and name.
//
// Constrained pods are evicted first, because few nodes are possible for them, and other pods would take the room
// there. Package consolidation assumes this order when it searches for moves. Large pods are evicted before small ones,
// because kube-scheduler prefers the emptiest node. Small pods that came first would fill all nodes evenly and leave no
// room for large pods.
func Next(pods []Pod, deadline, now time.Time) Step {
	var step Step
	firstTier := -1 // the first tier that has a pod
	var leaving []Pod
	for _, p := range pods {
		if !p.MustLeave(now) {
			continue
		}
		leaving = append(leaving, p)
		if tier := p.tier(); firstTier < 0 || tier < firstTier {
			firstTier = tier
		}
	}
	slices.SortFunc(leaving, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	step.Waiting = len(leaving)
	for _, p := range leaving {
		if p.hasInvalidProtection() {
			step.InvalidProtection = append(step.InvalidProtection, p)
		}
		switch {
		case mustForce(p, deadline, now):
			step.Force = append(step.Force, Forced{p, max(deadline.Sub(now), time.Second)})
		case !p.Deleted.IsZero() || p.tier() != firstTier: // terminating already, or must wait for an earlier tier
		case p.Protected(now):
			step.Protected = append(step.Protected, p)
		default:
			step.Evict = append(step.Evict, p)
		}
	}
	slices.SortStableFunc(step.Evict, func(a, b Pod) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Bulk, a.Bulk))
	})
	return step
}

func rank(p Pod) int {
	if p.Constrained {
		return 0
	}
	return 1
}

// mustForce reports whether the pod must be deleted now to end before the deadline. A terminating pod is deleted again
// only if it would otherwise end after the deadline.
func mustForce(p Pod, deadline, now time.Time) bool {
	if deadline.IsZero() {
		return false
	}
	if !p.Deleted.IsZero() {
		return p.Deleted.After(deadline)
	}
	return now.After(deadline.Add(-p.Grace))
}

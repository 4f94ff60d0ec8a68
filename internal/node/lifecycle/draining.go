package lifecycle

import (
	"strconv"
	"time"
)

// draining returns the next step to remove a node, in this order: set the deadline, drain the Node, terminate the
// instance, release the Node, release the NodeClaim. The instance always ends before the objects that refer to it.
func draining(seen Seen, now time.Time) Step {
	c, n := seen.Claim, seen.Node
	step := Step{Phase: Draining}
	if c.Exists && c.Grace != nil && c.Deadline.IsZero() {
		return step.to(SetDeadline)
	}
	if n.Count > 0 && (c.Registered || n.Finalizer) {
		return emptying(seen, now)
	}
	// No pods run on this instance: it has not joined, or its Node is deleted already.
	if next, done := ending(seen, now); !done {
		return next
	}
	switch {
	case n.Count > 0 && n.Deleted.IsZero():
		return step.to(DeleteNode)
	case n.Count > 0:
		return step.wait(WaitNodeGone, now.Add(Poll))
	case c.Finalizer:
		return step.to(Release)
	}
	return Step{Phase: Gone, Action: Wait, Reason: WaitNothing}
}

// emptying returns the next step to remove a Node that may still have pods: delete the Node, drain it, terminate the
// instance, release the Node.
func emptying(seen Seen, now time.Time) Step {
	n := seen.Node
	step := Step{Phase: Draining}
	if n.Deleted.IsZero() {
		return step.to(DeleteNode)
	}
	if seen.Machine.State != MachineAbsent && seen.Machine.State != MachineEnding {
		if next, done := drained(seen, now); !done {
			return next
		}
	}
	if next, done := ending(seen, now); !done {
		return next
	}
	if !n.Finalizer { // another controller's finalizer keeps the Node
		return step.wait(WaitNodeGone, now.Add(Poll))
	}
	return step.to(ReleaseNode)
}

// drained returns true if a Node whose instance still runs is drained: cordoned, without pods, deleted at least Settle
// ago, and without attached volumes unless the deadline has passed. Otherwise it returns the next step and false.
func drained(seen Seen, now time.Time) (Step, bool) {
	n := seen.Node
	step := Step{Phase: Draining}
	overdue := isPast(seen.Claim.Deadline, now)
	switch settled := n.Deleted.Add(Settle); {
	case !n.Cordoned:
		return step.to(Cordon), false
	case n.Pods > 0:
		step.Until = now.Add(Poll)
		return step.to(Evict).about(strconv.Itoa(n.Pods)), false
	case !isPast(settled, now):
		return step.wait(WaitSettle, settled), false
	case n.Volumes > 0 && !overdue:
		return step.wait(WaitVolumes, earliest(now.Add(Poll), seen.Claim.Deadline)).about(strconv.Itoa(n.Volumes)), false
	}
	return step, true
}

// ending returns the next step to terminate the instance, and false. It returns true once the instance is terminated,
// or if it belongs to another owner. An instance without owner tags is not terminated either, but the NodeClaim stays
// until that instance is gone, because no other object refers to the instance.
func ending(seen Seen, now time.Time) (Step, bool) {
	step := Step{Phase: Draining}
	m := seen.Machine
	switch {
	case m.State == MachineUnknown:
		return step.wait(WaitMachineAnswer, now.Add(Poll)), false
	case m.State == MachineAbsent, m.Foreign:
		return step, true
	case m.State == MachineEnding:
		return step.wait(WaitMachineEnd, now.Add(Poll)), false
	case m.Unmarked:
		return step.wait(WaitUnmarked, now.Add(UnmarkedPoll)), false
	}
	step.Until = now.Add(Poll)
	return step.to(Terminate), false
}

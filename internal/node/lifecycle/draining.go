package lifecycle

import (
	"strconv"
	"time"
)

// drainingStep returns the next step to remove a node, in this order: set the deadline, drain the Node, terminate the
// instance, remove the finalizers of the Node and the NodeClaim. These finalizers keep both objects until the instance
// is terminated.
func drainingStep(seen Observation, now time.Time) Step {
	c, n := seen.Claim, seen.Node
	step := Step{Phase: Draining}
	if c.Exists && c.Grace != nil && c.Deadline.IsZero() {
		return step.to(SetDeadline)
	}
	if n.Count > 0 && (c.Registered || n.Finalizer) {
		return removeNodeStep(seen, now)
	}
	// No pods run on this instance: its Node is not registered yet, or gone already.
	if next, terminated := terminationStep(seen, now); !terminated {
		return next
	}
	switch {
	case n.Count > 0 && n.Deleted.IsZero():
		return step.to(DeleteNode)
	case n.Count > 0:
		return step.wait(WaitNodeGone, now.Add(Poll))
	case c.Finalizer:
		return step.to(RemoveFinalizer)
	}
	return Step{Phase: Gone, Action: Wait, Reason: WaitNothing}
}

// removeNodeStep returns the next step to remove a Node that may still have pods: delete the Node, drain it, terminate
// the instance, remove the Node's finalizer.
func removeNodeStep(seen Observation, now time.Time) Step {
	n := seen.Node
	step := Step{Phase: Draining}
	if n.Deleted.IsZero() {
		return step.to(DeleteNode)
	}
	mayRun := seen.Instance.State != InstanceAbsent && seen.Instance.State != InstanceEnding
	if mayRun {
		if next, drained := drainNodeStep(seen, now); !drained {
			return next
		}
	}
	if next, terminated := terminationStep(seen, now); !terminated {
		return next
	}
	if !n.Finalizer { // another controller's finalizer keeps the Node
		return step.wait(WaitNodeGone, now.Add(Poll))
	}
	return step.to(RemoveNodeFinalizer)
}

// drainNodeStep returns the next step to drain a Node whose instance still runs, and false. It returns true once the
// Node is drained: cordoned, without pods, and deleted at least DrainSettleTime ago. It must also have no attached
// volumes, unless the deadline has passed.
func drainNodeStep(seen Observation, now time.Time) (Step, bool) {
	n := seen.Node
	step := Step{Phase: Draining}
	overdue := isPast(seen.Claim.Deadline, now)
	switch settled := n.Deleted.Add(DrainSettleTime); {
	case !n.Cordoned:
		return step.to(Cordon), false
	case n.Pods > 0:
		step.Until = now.Add(Poll)
		return step.to(Evict).withDetail(strconv.Itoa(n.Pods)), false
	case !isPast(settled, now):
		return step.wait(WaitSettle, settled), false
	case n.Volumes > 0 && !overdue:
		return step.wait(WaitVolumes, earliest(now.Add(Poll), seen.Claim.Deadline)).withDetail(strconv.Itoa(n.Volumes)), false
	}
	return step, true
}

// terminationStep returns the next step to terminate the instance, and false. It returns true once the instance is
// terminated, or if it belongs to another owner. An instance without owner tags is not terminated either. Its NodeClaim
// stays until the instance is gone, because no other object refers to the instance.
func terminationStep(seen Observation, now time.Time) (Step, bool) {
	step := Step{Phase: Draining}
	i := seen.Instance
	switch {
	case i.State == InstanceUnknown:
		return step.wait(WaitInstanceAnswer, now.Add(Poll)), false
	case i.State == InstanceAbsent, i.Foreign:
		return step, true
	case i.State == InstanceEnding:
		return step.wait(WaitInstanceEnd, now.Add(Poll)), false
	case i.Untagged:
		return step.wait(WaitUntagged, now.Add(UntaggedPoll)), false
	}
	step.Until = now.Add(Poll)
	return step.to(Terminate), false
}

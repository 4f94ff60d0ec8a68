package lifecycle

import (
	"strconv"
	"time"
)

// Next returns the phase of a node and its next action. It returns exactly one step for any observation. Every action
// is idempotent.
func Next(seen Observation, now time.Time) Step {
	switch phase := phaseOf(seen); phase {
	case Created:
		return createdStep(seen, now)
	case Launched:
		return launchedStep(seen, now)
	case Registered:
		return registeredStep(seen, now)
	case Ready:
		return readyStep(seen, now)
	case Draining:
		return drainingStep(seen, now)
	default:
		return Step{Phase: phase, Action: Wait, Reason: WaitNothing}
	}
}

// phaseOf returns the phase. It depends only on the claim, and without a claim only on the Node: a Node that is being
// deleted is drained.
func phaseOf(seen Observation) Phase {
	c := seen.Claim
	switch {
	case !c.Exists && (seen.Node.Count == 0 || seen.Node.Deleted.IsZero()):
		return Gone
	case !c.Exists || !c.Deleted.IsZero():
		return Draining
	case !c.Launched:
		return Created
	case !c.Registered:
		return Launched
	case !c.Initialized:
		return Registered
	}
	return Ready
}

// createdStep returns the step for a claim without an instance.
func createdStep(seen Observation, now time.Time) Step {
	c := seen.Claim
	step := Step{Phase: Created}
	if !c.Finalizer {
		return step.to(AddFinalizer)
	}
	// The instance of this claim exists although the claim records no launch: EC2's response to an earlier launch was
	// lost.
	if seen.Instance.State == InstanceRunning && !seen.Instance.Foreign {
		return step.to(Record)
	}
	if reason := deletionReason(c, now); reason != "" {
		return step.delete(reason)
	}
	giveUp := earliest(c.launchBy(), expiry(c))
	if c.NodeClass == NodeClassUnknown {
		return step.wait(WaitNodeClass, giveUp)
	}
	if c.NotBefore.After(now) {
		return step.wait(WaitNextAttempt, earliest(c.NotBefore, giveUp))
	}
	return step.to(Launch)
}

// deletionReason returns why a claim without an instance is deleted; empty if it stays.
func deletionReason(c Claim, now time.Time) string {
	switch {
	case c.Shortage:
		return ReasonShortage
	case c.NodeClass == NodeClassNotReady, c.NodeClass == NodeClassMissing:
		return ReasonNodeClassNotReady
	case isPast(c.launchBy(), now) && !c.mayLaunchLate(now):
		return ReasonLaunchTimeout
	case c.Expired(now):
		return ReasonExpired
	}
	return ""
}

// launchBy returns when a claim without an instance is deleted, unless mayLaunchLate allows one more launch.
func (c Claim) launchBy() time.Time { return latest(c.Created, c.FirstResponse).Add(LaunchTimeout) }

// mayLaunchLate reports whether the claim gets one more launch after launchBy. The launch must be allowed now, and must
// have been allowed before launchBy: then only launches of other claims delayed it. A launch without NotBefore was
// always allowed, so a new claim is launched even if the local clock is five minutes ahead of the API server's.
func (c Claim) mayLaunchLate(now time.Time) bool {
	return c.NodeClass == NodeClassReady && !c.NotBefore.After(now) && c.NotBefore.Before(c.launchBy())
}

// launchedStep returns the step for a launched instance whose Node is not registered.
func launchedStep(seen Observation, now time.Time) Step {
	step, decided := commonStep(seen, now, Launched)
	if decided {
		return step
	}
	if seen.Node.Count == 1 {
		// The Node is registered even after RegistrationTimeout: a Node that exists becomes ready earlier than a new
		// one.
		return step.to(Register)
	}
	giveUp := latest(seen.Claim.Created, seen.Claim.LaunchedAt).Add(RegistrationTimeout)
	if isPast(giveUp, now) {
		return step.delete(ReasonRegistrationTimeout)
	}
	mayHaveJoined := seen.Node.Count > 0 || seen.Node.Unconfirmed != ""
	if isPast(seen.Claim.OutdatedAt, now) && !mayHaveJoined {
		return step.delete(ReasonOutdated)
	}
	giveUp = earliest(giveUp, expiry(seen.Claim))
	if !isPast(seen.Claim.OutdatedAt, now) {
		giveUp = earliest(giveUp, seen.Claim.OutdatedAt)
	}
	switch n := seen.Node; {
	case n.Count > 1:
		return step.wait(WaitOneNode, giveUp).withDetail(strconv.Itoa(n.Count))
	case n.Unconfirmed != "":
		return step.wait(WaitConfirmation, earliest(giveUp, now.Add(ConfirmPoll))).withDetail(n.Unconfirmed)
	case n.Mismatch != "":
		return step.wait(WaitIdentity, earliest(giveUp, now.Add(MismatchPoll))).withDetail(n.Mismatch)
	}
	return step.wait(WaitNode, giveUp)
}

// registeredStep returns the step for a registered Node that is not initialized.
func registeredStep(seen Observation, now time.Time) Step {
	step, decided := commonStep(seen, now, Registered)
	if decided {
		return step
	}
	n, until := seen.Node, earliest(expiry(seen.Claim), seen.Node.nextHealthCheck(now))
	switch {
	case n.Count == 0:
		return step.wait(WaitNode, earliest(earliest(until, lostAt(n)), n.confirmAt(now)))
	case n.Count > 1:
		return step.wait(WaitOneNode, until).withDetail(strconv.Itoa(n.Count))
	case !n.Ready:
		return step.wait(WaitReady, until)
	case n.canBind(now):
		return step.to(BindPods)
	case n.ShouldCordon && n.HasNominationTaint:
		return step.to(CordonForPods)
	case n.HasNominationTaint && n.canOpen(now):
		return step.to(RemoveNominationTaint)
	case n.isOpenable():
		return step.wait(WaitOpening, n.nextOpeningStep())
	case n.HasNominationTaint:
		return step.wait(WaitEphemeral, earliest(until, n.openingLimit())).withDetail(n.Ephemeral)
	case n.Startup != "":
		return step.wait(WaitStartupTaint, until).withDetail(n.Startup)
	case n.Ephemeral != "":
		return step.wait(WaitEphemeral, until).withDetail(n.Ephemeral)
	case n.Lacks != "":
		return step.wait(WaitResource, until).withDetail(n.Lacks)
	}
	return step.to(Initialize)
}

func readyStep(seen Observation, now time.Time) Step {
	step, decided := commonStep(seen, now, Ready)
	if decided {
		return step
	}
	if n := seen.Node; n.Count == 0 {
		return step.wait(WaitNode, earliest(earliest(expiry(seen.Claim), lostAt(n)), n.confirmAt(now)))
	}
	until := earliest(expiry(seen.Claim), seen.Node.nextHealthCheck(now))
	return step.wait(WaitExpiry, earliest(until, now.Add(CapacityCheckInterval)))
}

// commonStep returns the step that is the same in all phases with an instance, and true. It returns false if the
// function of the phase must decide the step.
func commonStep(seen Observation, now time.Time, phase Phase) (Step, bool) {
	step := Step{Phase: phase}
	isEnded := seen.Instance.State == InstanceAbsent || seen.Instance.State == InstanceEnding
	switch {
	case !seen.Claim.Finalizer:
		return step.to(AddFinalizer), true
	case seen.Claim.Unlabelled:
		return step.to(AddLabels), true
	case seen.Node.Count > 0 && !seen.Node.Deleted.IsZero():
		return step.delete(ReasonNodeDeleted), true
	case seen.Claim.Registered && isPast(lostAt(seen.Node), now):
		// No pod can run on an instance without a Node, and no other step would terminate it.
		return step.delete(ReasonNodeDeleted), true
	case isEnded && !seen.Node.Ready:
		// EC2 is eventually consistent: while the Node is ready, EC2's answer that the instance is terminated may be
		// wrong.
		return step.delete(ReasonInstanceGone), true
	case seen.Claim.Registered && seen.Node.mustBeReplaced(now):
		return step.delete(ReasonUnhealthy).withDetail(seen.Node.Ailment.Condition), true
	case seen.Claim.Expired(now):
		return expiredStep(seen, now, phase), true
	}
	action := urgentAction(seen)
	return step.to(action), action != ""
}

// urgentAction returns the action that restores missing metadata of a Node, or deletes stray Nodes; empty if neither is
// needed.
func urgentAction(seen Observation) Action {
	switch n := seen.Node; {
	case n.Count == 1 && n.Recreated:
		return Register
	case n.Count == 1 && !n.Finalizer && seen.Claim.Registered:
		return AddNodeFinalizer
	case n.Strays > 0 && seen.Claim.Registered:
		return DropStrays
	}
	return ""
}

// canBind reports whether pods may be bound to the closed Node now.
func (n Node) canBind(now time.Time) bool {
	return n.isOpenable() && isPast(n.BindAt, now)
}

// isOpenable reports whether the closed Node has no other taint that keeps pods off it.
func (n Node) isOpenable() bool { return n.HasNominationTaint && n.Startup == "" && n.Ephemeral == "" }

// openingLimit returns when the Node opens although pods or taints are left, unless IsBinding.
func (n Node) openingLimit() time.Time {
	if n.IsCordonedForPods {
		return n.ReadySince.Add(MaxNominationWait + MaxCordon)
	}
	return n.ReadySince.Add(MaxNominationWait)
}

// canOpen reports whether the taint for nominations may be removed from the ready Node now. It is the last taint to be
// removed: kube-scheduler clears a nomination if it tries the pod while the node has another taint. The wait for other
// taints and for the Node's turn (OpenAt) ends at openingLimit, but not the wait for bound pods (IsBinding).
func (n Node) canOpen(now time.Time) bool {
	if n.IsBinding {
		return false
	}
	return n.isOpenable() && !now.Before(n.OpenAt) || isPast(n.openingLimit(), now)
}

// nextOpeningStep returns the next time to bind pods to the closed Node, or to open it.
func (n Node) nextOpeningStep() time.Time {
	if n.IsBinding {
		return n.OpenAt
	}
	return earliest(earliest(n.BindAt, n.OpenAt), n.openingLimit())
}

// lostAt returns when a missing Node counts as lost; zero if no Node is missing.
func lostAt(n Node) time.Time {
	if n.MissingSince.IsZero() {
		return time.Time{}
	}
	return n.MissingSince.Add(LostTimeout)
}

// confirmAt returns when to compare an unconfirmed Node with its instance again; zero if there is no unconfirmed Node.
func (n Node) confirmAt(now time.Time) time.Time {
	if n.Unconfirmed == "" {
		return time.Time{}
	}
	return now.Add(ConfirmPoll)
}

// isPast reports whether the time t has been reached; false for a zero t.
func isPast(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earliest returns the earlier of two times. A zero time is later than any other time.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s Step) to(action Action) Step {
	s.Action = action
	return s
}

func (s Step) delete(reason string) Step {
	s.Action, s.Reason = Delete, reason
	return s
}

func (s Step) wait(reason string, until time.Time) Step {
	s.Action, s.Reason, s.Until = Wait, reason, until
	return s
}

func (s Step) withDetail(detail string) Step {
	s.Detail = detail
	return s
}

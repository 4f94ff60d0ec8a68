package lifecycle

import "time"

// Expired reports whether the claim has reached its ExpireAfter age, at which it is replaced.
func (c Claim) Expired(now time.Time) bool { return isPast(expiry(c), now) }

// expiry returns when the claim expires; zero: never.
func expiry(c Claim) time.Time {
	if c.ExpireAfter == nil {
		return time.Time{}
	}
	return c.Created.Add(*c.ExpireAfter)
}

// expiredStep returns the next step for a claim that has expired. When budgets allow it, Joiner taints the node and
// plans other nodes for its pods. The claim is deleted when those nodes are ready. Each of the two waits, for budgets
// and for nodes, ends replacementWait after Replacement.Since: then the claim is deleted too. The annotation
// do-not-disrupt does not protect the pods. The claim of a node that is not ready, or whose termination grace period is
// 0, is deleted immediately.
func expiredStep(seen Observation, now time.Time, phase Phase) Step {
	step := Step{Phase: phase}
	c, n := seen.Claim, seen.Node
	maxWait, r := replacementWait(c), c.Replacement
	isServing := phase == Ready && n.Count == 1 && n.Ready
	giveUp := time.Time{}
	if !r.Since.IsZero() {
		giveUp = r.Since.Add(maxWait)
	}
	switch {
	case !isServing, maxWait <= 0, r.State == ReplacementNone, r.State == ReplacementReady, isPast(giveUp, now):
		return step.delete(ReasonExpired)
	case r.State == ReplacementQueued:
		return step.wait(WaitTurn, earliest(now.Add(Poll), giveUp))
	case r.Since.IsZero(), !n.HasDisruptedTaint && !r.NeedsNoPlan: // the request or the taint is not written yet
		return step.to(Replace)
	}
	return step.wait(WaitReplacement, earliest(now.Add(Poll), giveUp))
}

// replacementWait returns the longest time that an expired node waits for its replacement. A termination grace period
// includes this wait (see LastMoment), so the wait takes at most half of the period.
func replacementWait(c Claim) time.Duration {
	if c.Grace == nil {
		return MaxReplacementWait
	}
	return min(MaxReplacementWait, *c.Grace/2)
}

// LastMoment returns when the pods of a deleted claim are deleted by force; zero without a termination grace period.
// The period begins at the earlier of two times: the deletion of the claim, and the request of its replacement. At
// least half of the period remains after the deletion.
func (c Claim) LastMoment() time.Time {
	if c.Grace == nil || c.Deleted.IsZero() {
		return time.Time{}
	}
	start := c.Deleted
	if since := c.Replacement.Since; c.Replacement.State == ReplacementRequested && !since.IsZero() && since.Before(start) {
		start = since
	}
	return latest(start.Add(*c.Grace), c.Deleted.Add(*c.Grace/2))
}

package lifecycle

import "time"

// Expired reports whether the claim has reached the age to be replaced at.
func (c Claim) Expired(now time.Time) bool { return isPast(expiry(c), now) }

// expiry is when the claim is to be replaced, zero for never.
func expiry(c Claim) time.Time {
	if c.ExpireAfter == nil {
		return time.Time{}
	}
	return c.Created.Add(*c.ExpireAfter)
}

// expired deletes a claim that has reached its age. Where budgets allow it, its pods get other nodes first: the node gets no new
// pods, its own are planned, and it is deleted when their nodes are ready. It waits at most ReplaceWithin, and do-not-disrupt
// does not protect its pods. A node that is not ready, or has no time left, is deleted immediately.
func expired(seen Seen, now time.Time, phase Phase) Step {
	step := Step{Phase: phase}
	c, n := seen.Claim, seen.Node
	most, r := patience(c), seen.Claim.Replacement
	isServing := phase == Ready && n.Count == 1 && n.Ready
	giveUp := time.Time{}
	if !r.Since.IsZero() {
		giveUp = r.Since.Add(most)
	}
	switch {
	case !isServing, most <= 0, r.State == ReplacementNone, r.State == ReplacementReady, isPast(giveUp, now):
		return step.delete(ReasonExpired)
	case r.State == ReplacementQueued:
		return step.wait(WaitTurn, earliest(now.Add(Poll), giveUp))
	case r.Since.IsZero(), !n.Closed && !r.Apart:
		return step.to(Replace)
	}
	return step.wait(WaitReplacement, earliest(now.Add(Poll), giveUp))
}

// patience is how long an expired node waits at most. What it waits for its replacement is taken off the termination grace
// period, so that the node is gone in time: at least half of it is left to its pods.
func patience(c Claim) time.Duration {
	if c.Grace == nil {
		return ReplaceWithin
	}
	return min(ReplaceWithin, *c.Grace/2)
}

// LastMoment is when the pods of a deleted claim are deleted by force; zero without a termination grace period. The
// period begins when the claim is deleted, or when its replacement was asked for if that was before; at least half of
// it is left to the pods, however long the deletion took to come.
func (c Claim) LastMoment() time.Time {
	if c.Grace == nil || c.Deleted.IsZero() {
		return time.Time{}
	}
	begun := c.Deleted
	if since := c.Replacement.Since; c.Replacement.State == ReplacementAsked && !since.IsZero() && since.Before(begun) {
		begun = since
	}
	least := c.Deleted.Add(*c.Grace / 2)
	if last := begun.Add(*c.Grace); last.After(least) {
		return last
	}
	return least
}

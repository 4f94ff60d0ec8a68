package poolhealth

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// KnownCause describes a known cause that keeps an instance of a pool from joining.
type KnownCause struct {
	Check      string    // ID of the check that found the cause
	Cause      string    // the cause in one sentence
	Preflight  bool      // the check needs no instance to find the cause, or to find that the cause is gone
	LaunchedAt time.Time // when the instance was launched
	EndsAt     time.Time // when the instance is terminated if it does not join
}

// causeBackoff is the state of a pool whose instances do not join for a known cause. Launches stop for a while. Then one
// instance is launched as a canary. Further instances are launched when the canary has joined.
type causeBackoff struct {
	KnownCause
	times    int       // consecutive instances that did not join; those launched before the wait ended count as one
	until    time.Time // no instance is launched before this time
	canaryAt time.Time // when the canary was launched; zero: not launched yet
}

// CanaryTime is how long a canary blocks further launches if its result never becomes known.
const CanaryTime = 15 * time.Minute

// RecordCause records at now why an instance of the pool does not join. The pool waits until that instance is
// terminated, and then for a pause that grows with each consecutive instance that does not join. RecordCause returns
// until when the pool waits, and whether the cause is new. It ignores a cause that the check finds only with an
// instance, if the pool was changed after the launch of that instance.
func (h *LaunchBackoff) RecordCause(now time.Time, pool string, c KnownCause) (until time.Time, isNews bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !c.Preflight && h.isOutdated(c.LaunchedAt, pool) {
		return time.Time{}, false
	}
	t, known := h.causes[pool]
	isNews = !known || t.Check != c.Check
	if !known || c.LaunchedAt.After(t.until) { // else it was launched before the wait ended: see times
		t.times++
		t.canaryAt = time.Time{}
		t.until = c.EndsAt.Add(JoinPause(t.times))
	}
	t.KnownCause = c
	if h.causes == nil {
		h.causes = map[string]causeBackoff{}
	}
	h.causes[pool] = t
	return t.until, isNews
}

// JoinPause returns how long no instance is launched after this many consecutive instances have not joined.
func JoinPause(times int) time.Duration {
	return min(maxJoinPause, firstJoinPause<<min(max(times-1, 0), 10)) // 10: the shift must not overflow
}

// NoteLaunch records that an instance is launched for the pool at now. If the pool had to wait, and its pause is over,
// the instance is the canary.
func (h *LaunchBackoff) NoteLaunch(now time.Time, pool string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, ok := h.causes[pool]; ok && !now.Before(t.until) {
		t.canaryAt = now
		h.causes[pool] = t
	}
}

// heldByCause returns until when a known cause stops the launches of the pool, and the cause. The time is zero if the
// pool may launch.
func (h *LaunchBackoff) heldByCause(now time.Time, pool string) (time.Time, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.causes[pool]
	if !ok {
		return time.Time{}, ""
	}
	cause := "instances did not join the cluster " + loop.Count(t.times, "time") + " in a row: " + t.Cause
	switch {
	case now.Before(t.until):
		return t.until, cause
	case !t.canaryAt.IsZero() && now.Before(t.canaryAt.Add(CanaryTime)):
		return t.canaryAt.Add(CanaryTime), cause + canaryText
	}
	return time.Time{}, ""
}

// IsCanaryDue reports whether exactly one instance may be launched for the pool, as a canary.
func (h *LaunchBackoff) IsCanaryDue(now time.Time, pool string) bool {
	until, _ := h.heldByCause(now, pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.causes[pool]
	return ok && until.IsZero()
}

// Launchable returns the planned nodes that may be launched: only one for each pool whose canary is due, and all for the
// other pools. It records the canaries as launched. The pods of omitted nodes stay pending, and are planned again when
// the canary has joined.
func (h *LaunchBackoff) Launchable(now time.Time, planned []packing.PlannedNode) []packing.PlannedNode {
	var out []packing.PlannedNode
	hasCanary := map[string]bool{} // by pool
	for _, n := range planned {
		if h.IsCanaryDue(now, n.Pool) {
			if hasCanary[n.Pool] {
				continue
			}
			hasCanary[n.Pool] = true
		}
		out = append(out, n)
	}
	for pool := range hasCanary {
		h.NoteLaunch(now, pool)
	}
	return out
}

// PreflightCauses returns, by pool, the check that found why the pool's instances do not join. It omits checks that need
// an instance to find out that the cause is fixed.
func (h *LaunchBackoff) PreflightCauses() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for pool, t := range h.causes {
		if t.Preflight {
			out[pool] = t.Check
		}
	}
	return out
}

// HasPreflightCause reports whether PreflightCauses returns any pool.
func (h *LaunchBackoff) HasPreflightCause() bool { return len(h.PreflightCauses()) > 0 }

// CauseCheck returns the ID of the check that found why the pool's instances do not join; empty if no cause is known.
func (h *LaunchBackoff) CauseCheck(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.causes[pool].Check
}

// UnsolvedCause returns why instances of the pool did not join, whether or not the pool waits now. The text is empty once
// an instance has joined, or the cause is fixed.
func (h *LaunchBackoff) UnsolvedCause(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.causes[pool]
	if !ok {
		return ""
	}
	return "instances did not join the cluster " + loop.Count(t.times, "time") + " in a row: " + t.Cause + unsolvedEnd
}

// canaryText follows the cause in messages while the canary has not joined. holdPattern skips it.
const canaryText = "; one instance was launched to see whether the cause remains"

// unsolvedEnd ends the condition message of a pool that does not wait.
const unsolvedEnd = "; the next instance shows whether the cause remains"

// HoldMessage returns the condition message of a pool that waits. holdPattern parses it.
func HoldMessage(cause string, until time.Time) string {
	return cause + "; the next try is at " + until.UTC().Format(time.RFC3339)
}

// holdPattern parses the condition messages of pools that a previous process wrote, also those of older versions. Its
// groups are the number of instances, the cause, and the time of the next try.
var holdPattern = regexp.MustCompile(`(?s)^\w+ did not join the cluster (\d+) times? in a row: (.*?)` +
	`(?:; one \w+ was \w+ to see whether (?:the cause remains|it still is so))?(?:; the next try is at (\S+)|; the next instance shows whether (?:the cause remains|that is still so))$`)

// Recall reads, once, the conditions that a previous process wrote on the pools: why the pools wait, and when the pools
// last changed. Until Recall has succeeded, the caller must not launch or judge instances.
func (h *LaunchBackoff) Recall(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recalled || h.Cache == nil {
		return nil
	}
	var pools karpv1.NodePoolList
	if err := h.Cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodepools: %w", err)
	}
	for i := range pools.Items {
		h.Restore(&pools.Items[i])
	}
	h.recalled = true
	return nil
}

// Restore reads the backoff of the NodePool from its conditions, after a restart of the controller. The caller must
// hold the lock.
func (h *LaunchBackoff) Restore(pool *karpv1.NodePool) {
	c, ok := pool.StatusConditions().Find(karpv1.ConditionNodeRegistrationHealthy)
	if ok && c.Status == metav1.ConditionUnknown && c.Reason == karpv1.ReasonAwaitingReconciliation {
		h.noteChange(c.LastTransitionTime.Time, pool.Name)
	}
	isOfCause := ok && c.Status == metav1.ConditionFalse && c.ObservedGeneration == pool.Generation && IsOfCheck(c)
	if !isOfCause {
		return
	}
	parts := holdPattern.FindStringSubmatch(c.Message)
	if parts == nil {
		return
	}
	times, err := strconv.Atoi(parts[1])
	var until time.Time // zero: the pool did not wait
	if err == nil && parts[3] != "" {
		until, err = time.Parse(time.RFC3339, parts[3])
	}
	if err != nil {
		return
	}
	if h.causes == nil {
		h.causes = map[string]causeBackoff{}
	}
	if _, known := h.causes[pool.Name]; !known {
		// The condition does not store Preflight; true allows Diagnoser to end the backoff.
		h.causes[pool.Name] = causeBackoff{KnownCause: KnownCause{Check: checkOfReason(c.Reason), Cause: parts[2], Preflight: true},
			times: times, until: until}
	}
}

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

// Explained describes the known cause that keeps an instance of a pool from joining.
type Explained struct {
	Check  string    // ID of the check that found the cause
	Cause  string    // the cause in one sentence
	Ahead  bool      // the check finds the cause, and its end, without an instance
	Bought time.Time // when the instance was launched
	Over   time.Time // when the instance is terminated if it does not join
}

// canary is the state of a pool whose instances do not join for a known cause. Launches stop for a while. Then one
// instance is launched as a canary. Further instances are launched when the canary has joined.
type canary struct {
	Explained
	times    int       // consecutive instances that did not join; several that were late together are counted as one
	until    time.Time // no instance is launched before this time
	canaryAt time.Time // when the canary was launched; zero: not launched yet
}

// CanaryTime is how long a canary blocks further launches if its result never becomes known.
const CanaryTime = 15 * time.Minute

// Explained records at now why an instance of the pool does not join. The pool waits until that instance is terminated,
// and then for a pause that grows with each consecutive instance. Explained returns until when the pool waits, and
// whether the cause is new. It ignores a cause that was found only on the instance if the pool was changed after the
// launch of that instance.
func (h *LaunchBackoff) Explained(now time.Time, pool string, e Explained) (until time.Time, isNews bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !e.Ahead && h.isOutdated(e.Bought, pool) {
		return time.Time{}, false
	}
	t, known := h.trials[pool]
	isNews = !known || t.Check != e.Check
	if !known || e.Bought.After(t.until) {
		t.times++
		t.canaryAt = time.Time{}
		t.until = e.Over.Add(Pause(t.times))
	}
	t.Explained = e
	if h.trials == nil {
		h.trials = map[string]canary{}
	}
	h.trials[pool] = t
	return t.until, isNews
}

// Pause returns how long no instance is launched after this many consecutive instances have not joined.
func Pause(times int) time.Duration {
	return min(holdJoinMost, holdJoinFirst<<min(max(times-1, 0), 10))
}

// Sent records that an instance was launched for the pool at now. If the pause is over, the instance is the canary.
func (h *LaunchBackoff) Sent(now time.Time, pool string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, ok := h.trials[pool]; ok && !now.Before(t.until) {
		t.canaryAt = now
		h.trials[pool] = t
	}
}

// heldByCause returns until when no instance is launched because of a known cause, and that cause. The time is zero if
// the pool may launch.
func (h *LaunchBackoff) heldByCause(now time.Time, pool string) (time.Time, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.trials[pool]
	if !ok {
		return time.Time{}, ""
	}
	why := "instances did not join the cluster " + loop.Count(t.times, "time") + " in a row: " + t.Cause
	switch {
	case now.Before(t.until):
		return t.until, why
	case !t.canaryAt.IsZero() && now.Before(t.canaryAt.Add(CanaryTime)):
		return t.canaryAt.Add(CanaryTime), why + canaryText
	}
	return time.Time{}, ""
}

// IsCanaryDue reports whether exactly one instance may be launched for the pool, as a canary.
func (h *LaunchBackoff) IsCanaryDue(now time.Time, pool string) bool {
	until, _ := h.heldByCause(now, pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.trials[pool]
	return ok && until.IsZero()
}

// Canaries returns the planned nodes that may be launched: only one for each pool whose canary is due, and all for the
// other pools. The pods of omitted nodes stay pending, and are planned again when the canary has joined.
func (h *LaunchBackoff) Canaries(now time.Time, machines []packing.PlannedNode) []packing.PlannedNode {
	var out []packing.PlannedNode
	sent := map[string]bool{}
	for _, m := range machines {
		if h.IsCanaryDue(now, m.Pool) {
			if sent[m.Pool] {
				continue
			}
			sent[m.Pool] = true
		}
		out = append(out, m)
	}
	for pool := range sent {
		h.Sent(now, pool)
	}
	return out
}

// ExplainedAhead returns by pool the check that explains why its instances do not join, if that check can also detect
// that the cause is fixed.
func (h *LaunchBackoff) ExplainedAhead() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for pool, t := range h.trials {
		if t.Ahead {
			out[pool] = t.Check
		}
	}
	return out
}

// AnyExplained reports whether a pool waits because of a cause whose fix can be detected.
func (h *LaunchBackoff) AnyExplained() bool { return len(h.ExplainedAhead()) > 0 }

// Explanation returns the check that found the cause because of which the pool waits; empty if there is none.
func (h *LaunchBackoff) Explanation(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trials[pool].Check
}

// Unsolved returns why instances of the pool did not join. It is empty once an instance has joined, or the cause is
// fixed. It is also returned if the pool does not wait at the moment.
func (h *LaunchBackoff) Unsolved(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.trials[pool]
	if !ok {
		return ""
	}
	return "instances did not join the cluster " + loop.Count(t.times, "time") + " in a row: " + t.Cause + unsolvedEnd
}

// canaryText follows the cause while the canary has not joined. heldForm skips it.
const canaryText = "; one instance was launched to see whether it still is so"

// unsolvedEnd ends the condition message of a pool that does not wait. heldForm parses it.
const unsolvedEnd = "; the next instance shows whether that is still so"

// HoldMessage returns the condition message of a pool that waits. heldForm parses it.
func HoldMessage(why string, until time.Time) string {
	return why + "; the next try is at " + until.UTC().Format(time.RFC3339)
}

// heldForm parses the condition messages of pools that a previous process wrote, also those of older versions.
var heldForm = regexp.MustCompile(`(?s)^\w+ did not join the cluster (\d+) times? in a row: (.*?)(?:; one \w+ was \w+ to see whether it still is so)?(?:; the next try is at (\S+)|` + unsolvedEnd + `)$`)

// Recall reads, once, the conditions that a previous process wrote on the pools: why they wait, and when they last
// changed. Until Recall has succeeded, the caller must not launch or judge instances.
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
		h.change(c.LastTransitionTime.Time, pool.Name)
	}
	if !ok || c.Status != metav1.ConditionFalse || c.ObservedGeneration != pool.Generation || !IsOfCheck(c) {
		return
	}
	parts := heldForm.FindStringSubmatch(c.Message)
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
	if h.trials == nil {
		h.trials = map[string]canary{}
	}
	if _, known := h.trials[pool.Name]; !known {
		check := checkOfReason(c.Reason)
		h.trials[pool.Name] = canary{Explained: Explained{Check: check, Cause: parts[2], Ahead: true}, times: times, until: until}
	}
}

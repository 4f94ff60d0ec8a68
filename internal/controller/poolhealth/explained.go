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

// Explained is why an instance of a pool has not joined.
type Explained struct {
	Check  string
	Cause  string    // a sentence
	Ahead  bool      // the cause, and its end, are known without an instance
	Bought time.Time // when the instance was launched
	Over   time.Time // when the instance is terminated if it does not join
}

// canary is the state of a pool whose instances do not join for a known cause. Launches stop for a while; then one instance is
// launched as a canary, and further ones when the canary has joined.
type canary struct {
	Explained
	times  int       // instances in a row; those that were late together count as one
	until  time.Time // nothing is launched before
	canary time.Time // when the canary was launched; zero: it was not launched yet
}

// CanaryTime is how long a canary keeps others from being launched if its result never becomes known.
const CanaryTime = 15 * time.Minute

// Explained records at now why an instance of the pool does not join. The pool waits until that instance is terminated, and
// then for a pause that grows with each one in a row. It returns until when, and whether the cause is news. A cause that
// only an instance has shown is ignored if the pool was changed after the launch of that instance.
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
		t.canary = time.Time{}
		t.until = e.Over.Add(Pause(t.times))
	}
	t.Explained = e
	if h.trials == nil {
		h.trials = map[string]canary{}
	}
	h.trials[pool] = t
	return t.until, isNews
}

// Pause returns how long nothing is launched after this many instances in a row have not joined.
func Pause(times int) time.Duration {
	return min(holdJoinMost, holdJoinFirst<<min(max(times-1, 0), 10))
}

// Sent records that an instance was launched for the pool at now. After the pause it is the canary.
func (h *LaunchBackoff) Sent(now time.Time, pool string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, ok := h.trials[pool]; ok && !now.Before(t.until) {
		t.canary = now
		h.trials[pool] = t
	}
}

// tried returns until when nothing is launched because of a known cause, and that cause; the zero time if the pool may launch.
func (h *LaunchBackoff) tried(now time.Time, pool string) (time.Time, string) {
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
	case !t.canary.IsZero() && now.Before(t.canary.Add(CanaryTime)):
		return t.canary.Add(CanaryTime), why + canaryText
	}
	return time.Time{}, ""
}

// IsCanaryDue reports whether one instance may be launched for the pool, and no second one.
func (h *LaunchBackoff) IsCanaryDue(now time.Time, pool string) bool {
	until, _ := h.tried(now, pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.trials[pool]
	return ok && until.IsZero()
}

// Canaries returns the planned nodes that may be launched: one for each pool whose instances have not joined for a known
// cause, and all for the other pools. Pods of the planned nodes that are left out stay pending, and are planned again when
// the canary has joined.
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

// ExplainedAhead returns by pool the check that explains why its instances do not join, if that check can also see that the
// Cause is fixed.
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

// AnyExplained reports whether a pool waits for a cause whose fix can be detected.
func (h *LaunchBackoff) AnyExplained() bool { return len(h.ExplainedAhead()) > 0 }

// Explanation returns the check because of which the pool waits; empty if there is none.
func (h *LaunchBackoff) Explanation(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trials[pool].Check
}

// Unsolved returns why instances of the pool did not join, as long as none has joined since and the cause is not known to be
// fixed. The pool need not be waiting.
func (h *LaunchBackoff) Unsolved(pool string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.trials[pool]
	if !ok {
		return ""
	}
	return "instances did not join the cluster " + loop.Count(t.times, "time") + " in a row: " + t.Cause + unsolvedEnd
}

// canaryText follows the cause while the one instance has not joined; heldForm skips it.
const canaryText = "; one instance was launched to see whether it still is so"

// unsolvedEnd ends the condition message of a pool that does not wait; recall parses it.
const unsolvedEnd = "; the next instance shows whether that is still so"

// HoldMessage is the condition message of a pool that waits; recall parses it.
func HoldMessage(why string, until time.Time) string {
	return why + "; the next try is at " + until.UTC().Format(time.RFC3339)
}

var heldForm = regexp.MustCompile(`(?s)^\w+ did not join the cluster (\d+) times? in a row: (.*?)(?:; one \w+ was \w+ to see whether it still is so)?(?:; the next try is at (\S+)|` + unsolvedEnd + `)$`)

// Recall reads, once, what a previous process wrote on the conditions of pools: why they wait, and when they last changed.
// Before that, nothing may be launched and no instance may be judged.
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

// Restore reads the backoff of the NodePool from its conditions, after a restart of the controller.
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

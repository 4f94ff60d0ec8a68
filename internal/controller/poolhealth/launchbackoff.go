package poolhealth

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/controller/loop"
)

// LaunchBackoff is the launch backoff of NodePools. A pool waits if its launches failed for a cause that other offerings would not
// avoid, or if its instances did not join. Pools do not affect each other. Its methods may be called concurrently; the zero
// value holds no pool.
type LaunchBackoff struct {
	// Cache has the NodePools, whose conditions record what a previous process knew; nil: nothing is restored.
	Cache client.Reader

	launches loop.Backoff
	joins    loop.Backoff

	mu       sync.Mutex
	joined   map[string]time.Time // by pool: when the last instance joined
	changed  map[string]time.Time // by pool: since when it, and its node class, are as they are; to the second
	trials   map[string]canary    // by pool: why its instances do not join, where that is known
	recalled bool
}

// How long a pool waits, at first and at most. An instance that does not join has cost money for a quarter of an hour before
// that is known, so the next launch waits longer.
const (
	HoldLaunchFirst = 5 * time.Second
	holdLaunchMost  = 30 * time.Second
	holdJoinFirst   = 5 * time.Minute
	holdJoinMost    = time.Hour
)

// LaunchFailed records that a launch of the pool failed at now. It returns until when the pool waits, and whether the cause
// is news. Failures while the pool waits are of launches that had started before: they count as one.
func (h *LaunchBackoff) LaunchFailed(now time.Time, pool, cause string) (time.Time, bool) {
	h.mu.Lock()
	if t, ok := h.trials[pool]; ok {
		t.canary = time.Time{} // it was not launched
		h.trials[pool] = t
	}
	h.mu.Unlock()
	return fail(&h.launches, HoldLaunchFirst, holdLaunchMost, now, pool, cause)
}

// JoinFailed records at now that an instance of the pool has not joined in time. wanted is when its claim was created. The
// failure is ignored if another instance has joined since wanted, because the pool works; and if the pool was changed since
// wanted, because the failure says nothing about the present pool.
func (h *LaunchBackoff) JoinFailed(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.saysNothing(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, holdJoinFirst, holdJoinMost, now, pool, cause)
}

// Died is JoinFailed for an instance that EC2 terminated before it had joined. It has cost little, so the next one is
// launched soon.
func (h *LaunchBackoff) Died(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.saysNothing(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, HoldLaunchFirst, holdJoinMost, now, pool, cause)
}

// saysNothing reports whether a claim that was created at wanted says nothing about the pool as it is now.
func (h *LaunchBackoff) saysNothing(wanted time.Time, pool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined[pool].After(wanted) || h.isOutdated(wanted, pool)
}

// isOutdated reports whether the pool was changed after then. The lock must be held.
func (h *LaunchBackoff) isOutdated(then time.Time, pool string) bool {
	return then.Before(h.changed[pool])
}

func fail(b *loop.Backoff, first, most time.Duration, now time.Time, pool, cause string) (time.Time, bool) {
	if pool == "" {
		return time.Time{}, false
	}
	if until, _, _ := b.Held(now, pool); !until.IsZero() {
		return until, false
	}
	return b.FailFor(now, pool, cause, first, most)
}

// Launched records that an instance of the pool was launched.
func (h *LaunchBackoff) Launched(pool string) { h.launches.Clear(pool) }

// Joined records that an instance of the pool became a node at now.
func (h *LaunchBackoff) Joined(now time.Time, pool string) {
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trials, pool)
	if h.joined == nil {
		h.joined = map[string]time.Time{}
	}
	h.joined[pool] = now
}

// Changed records at now that the pool or its node class was changed, which may fix its problems. Earlier launches say
// nothing about the pool any more.
func (h *LaunchBackoff) Changed(now time.Time, pool string) {
	h.Anew(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change(now, pool)
}

// change records when the pool was changed, in whole seconds, as the API server keeps times. The lock must be held.
func (h *LaunchBackoff) change(at time.Time, pool string) {
	if h.changed == nil {
		h.changed = map[string]time.Time{}
	}
	h.changed[pool] = at.Truncate(time.Second)
}

// Anew forgets the failures of the pool: their cause is no longer found.
func (h *LaunchBackoff) Anew(pool string) {
	h.launches.Clear(pool)
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trials, pool)
}

// Held returns until when the pool waits, and why; the zero time if it does not.
func (h *LaunchBackoff) Held(now time.Time, pool string) (until time.Time, why string) {
	if until, why := h.tried(now, pool); !until.IsZero() {
		return until, why
	}
	if until, times, cause := h.joins.Held(now, pool); !until.IsZero() {
		return until, "instances did not join the cluster " + loop.Count(times, "time") + " in a row: " + cause
	}
	if until, times, cause := h.launches.Held(now, pool); !until.IsZero() {
		return until, "launches failed " + loop.Count(times, "time") + " in a row: " + cause
	}
	return time.Time{}, ""
}

package poolhealth

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/controller/loop"
)

// LaunchBackoff is the launch backoff of NodePools. A pool waits if its launches failed for a cause that affects all
// its offerings, or if its instances did not join. Pools do not affect each other. The methods may be called
// concurrently. The zero value has no waiting pool.
type LaunchBackoff struct {
	// Cache reads the NodePools, whose conditions record the backoff of a previous process; nil: no backoff is
	// restored.
	Cache client.Reader

	launches loop.Backoff // by pool: failed launches
	joins    loop.Backoff // by pool: instances that did not join

	mu       sync.Mutex
	joined   map[string]time.Time    // by pool: when an instance last joined
	changed  map[string]time.Time    // by pool: when the pool or its node class was last changed, in whole seconds
	causes   map[string]causeBackoff // by pool: why its instances do not join, if that is known
	recalled bool                    // the backoff of a previous process was restored
}

// First and longest pause of a pool after failed launches, and after instances that did not join. The pauses after
// instances that did not join are longer, because such an instance costs money until lifecycle.RegistrationTimeout.
const (
	FirstLaunchPause = 5 * time.Second
	maxLaunchPause   = 30 * time.Second
	firstJoinPause   = 5 * time.Minute
	maxJoinPause     = time.Hour
)

// LaunchFailed records that a launch of the pool failed at now. It returns until when the pool waits, and whether the
// cause is new. Failures while the pool waits are ignored, because their launches started before the pause.
func (h *LaunchBackoff) LaunchFailed(now time.Time, pool, cause string) (time.Time, bool) {
	h.mu.Lock()
	if t, ok := h.causes[pool]; ok {
		t.canaryAt = time.Time{} // the launch of the canary failed
		h.causes[pool] = t
	}
	h.mu.Unlock()
	return fail(&h.launches, FirstLaunchPause, maxLaunchPause, now, pool, cause)
}

// JoinFailed records at now that an instance of the pool has not joined in time. created is the creation time of its
// claim. The failure is ignored if another instance has joined after created, because then the pool works. It is also
// ignored if the pool was changed after created, because then the failure does not apply to the present pool. The
// results are those of LaunchFailed, or zero and false for an ignored failure.
func (h *LaunchBackoff) JoinFailed(now, created time.Time, pool, cause string) (time.Time, bool) {
	if h.isStale(created, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, firstJoinPause, maxJoinPause, now, pool, cause)
}

// EndedEarly records at now that EC2 terminated an instance of the pool before it joined. It is like JoinFailed, but
// the first pause is shorter, because such an instance costs little.
func (h *LaunchBackoff) EndedEarly(now, created time.Time, pool, cause string) (time.Time, bool) {
	if h.isStale(created, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, FirstLaunchPause, maxJoinPause, now, pool, cause)
}

// isStale reports whether a failure of a claim that was created at created does not apply to the present pool.
func (h *LaunchBackoff) isStale(created time.Time, pool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined[pool].After(created) || h.isOutdated(created, pool)
}

// isOutdated reports whether the pool was changed after the time at. The caller must hold the lock.
func (h *LaunchBackoff) isOutdated(at time.Time, pool string) bool {
	return at.Before(h.changed[pool])
}

// fail records a failure of the pool, unless the pool already waits.
func fail(b *loop.Backoff, firstDelay, maxDelay time.Duration, now time.Time, pool, cause string) (time.Time, bool) {
	if pool == "" { // the claim belongs to no pool
		return time.Time{}, false
	}
	if until, _, _ := b.Held(now, pool); !until.IsZero() {
		return until, false
	}
	return b.FailFor(now, pool, cause, firstDelay, maxDelay)
}

// LaunchSucceeded records that an instance of the pool was launched, and drops the record of failed launches.
func (h *LaunchBackoff) LaunchSucceeded(pool string) { h.launches.Clear(pool) }

// Joined records that an instance of the pool became a node at now.
func (h *LaunchBackoff) Joined(now time.Time, pool string) {
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.causes, pool)
	if h.joined == nil {
		h.joined = map[string]time.Time{}
	}
	h.joined[pool] = now
}

// Changed records at now that the pool or its node class was changed, which may fix its problems. Results of earlier
// launches no longer apply to the pool.
func (h *LaunchBackoff) Changed(now time.Time, pool string) {
	h.Reset(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noteChange(now, pool)
}

// noteChange records when the pool was changed, in whole seconds like the times of the API server. The caller must hold
// the lock.
func (h *LaunchBackoff) noteChange(at time.Time, pool string) {
	if h.changed == nil {
		h.changed = map[string]time.Time{}
	}
	h.changed[pool] = at.Truncate(time.Second)
}

// Reset drops the failures of the pool, because their cause is gone.
func (h *LaunchBackoff) Reset(pool string) {
	h.launches.Clear(pool)
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.causes, pool)
}

// Held returns until when the pool waits, and why. The time is zero if the pool does not wait.
func (h *LaunchBackoff) Held(now time.Time, pool string) (until time.Time, why string) {
	if until, why := h.heldByCause(now, pool); !until.IsZero() {
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

package controller

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Holds are the NodePools that wait because their launches failed for a cause that other offerings do not help against,
// or because what they bought did not join. One pool's troubles hold up no other. Its methods may be called at the same
// time; the zero value holds none.
type Holds struct {
	// Cache has the NodePools, on whose conditions stands what a process before us knew; nil: nothing does.
	Cache client.Reader

	launches Backoff
	joins    Backoff

	mu       sync.Mutex
	joined   map[string]time.Time // by pool: when a machine became a node last
	trials   map[string]trial     // by pool: why its machines do not join, where that is known
	recalled bool
}

// How long a pool waits: at first, and at most. A machine that does not join has cost money for a quarter of an hour
// before anybody knows, so the next one waits longer.
const (
	holdLaunchFirst = 5 * time.Second
	holdLaunchMost  = 5 * time.Minute
	holdJoinFirst   = 5 * time.Minute
	holdJoinMost    = time.Hour
)

// LaunchFailed notes that a launch of the pool failed at now. The first result says until when the pool waits, the
// second whether the cause is news. What fails while the pool waits was under way before: it counts as one failure.
func (h *Holds) LaunchFailed(now time.Time, pool, cause string) (time.Time, bool) {
	h.mu.Lock()
	if t, ok := h.trials[pool]; ok {
		t.canary = time.Time{} // it was not bought
		h.trials[pool] = t
	}
	h.mu.Unlock()
	return fail(&h.launches, holdLaunchFirst, holdLaunchMost, now, pool, cause)
}

// JoinFailed notes at now that a machine of the pool, wanted at wanted, has not joined in time. If another has joined in the
// meantime, then it is that machine's trouble and not the pool's.
func (h *Holds) JoinFailed(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.hasJoined(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, holdJoinFirst, holdJoinMost, now, pool, cause)
}

// Died is JoinFailed for a machine that EC2 ended before it had joined. It has cost little, so that the next is bought soon.
func (h *Holds) Died(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.hasJoined(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, holdLaunchFirst, holdJoinMost, now, pool, cause)
}

// hasJoined reports whether a machine of the pool has joined since.
func (h *Holds) hasJoined(since time.Time, pool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined[pool].After(since)
}

func fail(b *Backoff, first, most time.Duration, now time.Time, pool, cause string) (time.Time, bool) {
	if pool == "" {
		return time.Time{}, false
	}
	if until, _, _ := b.Held(now, pool); !until.IsZero() {
		return until, false
	}
	return b.FailFor(now, pool, cause, first, most)
}

// Launched notes that the pool bought a machine.
func (h *Holds) Launched(pool string) { h.launches.Clear(pool) }

// Joined notes that a machine of the pool became a node at now.
func (h *Holds) Joined(now time.Time, pool string) {
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trials, pool)
	if h.joined == nil {
		h.joined = map[string]time.Time{}
	}
	h.joined[pool] = now
}

// Anew forgets the pool's troubles: it was changed, which may have been the cure, or what caused them is seen no more.
func (h *Holds) Anew(pool string) {
	h.launches.Clear(pool)
	h.joins.Clear(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.trials, pool)
}

// Held returns until when the pool waits, and why; zero if it does not.
func (h *Holds) Held(now time.Time, pool string) (until time.Time, why string) {
	if until, why := h.tried(now, pool); !until.IsZero() {
		return until, why
	}
	if until, times, cause := h.joins.Held(now, pool); !until.IsZero() {
		return until, "machines did not join the cluster " + count(times, "time") + " in a row: " + cause
	}
	if until, times, cause := h.launches.Held(now, pool); !until.IsZero() {
		return until, "launches failed " + count(times, "time") + " in a row: " + cause
	}
	return time.Time{}, ""
}

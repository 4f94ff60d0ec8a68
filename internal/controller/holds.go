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
	changed  map[string]time.Time // by pool: since when it, and its node class, are as they are; to the second
	trials   map[string]trial     // by pool: why its machines do not join, where that is known
	recalled bool
}

// How long a pool waits: at first, and at most. A machine that does not join has cost money for a quarter of an hour
// before anybody knows, so the next one waits longer.
const (
	holdLaunchFirst = 5 * time.Second
	holdLaunchMost  = 30 * time.Second
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
// meantime, then it is that machine's trouble and not the pool's; and if the pool was changed, then it is that of the pool as it was.
func (h *Holds) JoinFailed(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.saysNothing(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, holdJoinFirst, holdJoinMost, now, pool, cause)
}

// Died is JoinFailed for a machine that EC2 ended before it had joined. It has cost little, so that the next is bought soon.
func (h *Holds) Died(now, wanted time.Time, pool, cause string) (time.Time, bool) {
	if h.saysNothing(wanted, pool) {
		return time.Time{}, false
	}
	return fail(&h.joins, holdLaunchFirst, holdJoinMost, now, pool, cause)
}

// saysNothing reports whether a machine that was wanted then says nothing of the pool as it is now.
func (h *Holds) saysNothing(wanted time.Time, pool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joined[pool].After(wanted) || h.isOutdated(wanted, pool)
}

// isOutdated reports whether the pool was changed since then. It is asked with the lock held.
func (h *Holds) isOutdated(then time.Time, pool string) bool { return then.Before(h.changed[pool]) }

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

// Changed notes at now that the pool, or its node class, is another than it was, which may be the cure of its troubles. What was bought
// before says nothing of it any more.
func (h *Holds) Changed(now time.Time, pool string) {
	h.Anew(pool)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.change(now, pool)
}

// change notes when the pool was changed, as exactly as the API server keeps times. It is called with the lock held.
func (h *Holds) change(at time.Time, pool string) {
	if h.changed == nil {
		h.changed = map[string]time.Time{}
	}
	h.changed[pool] = at.Truncate(time.Second)
}

// Anew forgets the pool's troubles: what caused them is seen no more.
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

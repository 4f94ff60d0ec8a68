package loop

import (
	"sync"
	"time"
)

// Backoff counts consecutive failures by key, and computes how long to wait before the next try. Its methods may be
// called concurrently. The zero value has no failures.
type Backoff struct {
	mu    sync.Mutex
	fails map[string]failure
}

type failure struct {
	times int       // number of failures
	cause string    // cause of the last failure
	until time.Time // when to try again
}

// Fail is FailFor with a first delay of one second and a maximum of one minute.
func (b *Backoff) Fail(now time.Time, key, cause string) (until time.Time, isNews bool) {
	return b.FailFor(now, key, cause, time.Second, time.Minute)
}

// FailFor records a failure at now and returns when to try again. The delay is firstDelay after the first failure,
// doubles with each further failure, and is at most maxDelay. isNews reports whether this is the first failure, or its
// cause differs from that of the previous one.
func (b *Backoff) FailFor(now time.Time, key, cause string, firstDelay, maxDelay time.Duration) (until time.Time, isNews bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil {
		b.fails = map[string]failure{}
	}
	f := b.fails[key]
	isNews = f.cause != cause
	wait := maxDelay
	if f.times < 30 { // a larger shift could overflow
		wait = min(maxDelay, firstDelay<<f.times)
	}
	b.fails[key] = failure{f.times + 1, cause, now.Add(wait)}
	return now.Add(wait), isNews
}

// Clear forgets the failures of key.
func (b *Backoff) Clear(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fails, key)
}

// Held returns until when key must wait, how often it failed in a row, and why. The time is zero if key need not wait
// at now.
func (b *Backoff) Held(now time.Time, key string) (until time.Time, times int, cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.fails[key]
	if !ok || !now.Before(f.until) {
		return time.Time{}, 0, ""
	}
	return f.until, f.times, f.cause
}

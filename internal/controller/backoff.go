package controller

import (
	"sync"
	"time"
)

// Backoff remembers, by key, how often something failed in a row and how long to wait before it is tried again.
// Its methods may be called at the same time. The zero value has seen no failure.
type Backoff struct {
	mu    sync.Mutex
	fails map[string]failure
}

type failure struct {
	times int
	cause string
	until time.Time
}

// Fail is FailFor a second at first and a minute at most.
func (b *Backoff) Fail(now time.Time, key, cause string) (until time.Time, isNews bool) {
	return b.FailFor(now, key, cause, time.Second, time.Minute)
}

// FailFor notes a failure at now and returns when to try again, first after the first failure and then after twice as
// long each time, up to most; and whether the cause is news, another one than that of the failure before.
func (b *Backoff) FailFor(now time.Time, key, cause string, first, most time.Duration) (until time.Time, isNews bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil {
		b.fails = map[string]failure{}
	}
	f := b.fails[key]
	isNews = f.cause != cause
	wait := most
	if f.times < 30 {
		wait = min(most, first<<f.times)
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

// Held returns until when key waits, how often it failed in a row and why; zero if it does not wait at now.
func (b *Backoff) Held(now time.Time, key string) (until time.Time, times int, cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.fails[key]
	if !ok || !now.Before(f.until) {
		return time.Time{}, 0, ""
	}
	return f.until, f.times, f.cause
}

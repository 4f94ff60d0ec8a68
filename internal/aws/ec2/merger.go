package ec2

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mergedCallTimeout is the time limit of a merged call, including all its attempts.
const mergedCallTimeout = 2 * time.Minute

// gather merges concurrent requests for single keys into one call. The first caller waits for other callers, for
// window, and then makes the call for all of them.
type gather[V any] struct {
	window  time.Duration
	maxKeys int // maximum number of keys in one call
	// call returns values and errors by key. Its third result is an error for all keys.
	call func(ctx context.Context, keys []string) (map[string]V, map[string]error, error)

	mu      sync.Mutex
	waiting *round[V] // the round that further keys join; nil if the next caller opens one
}

// round is one call with the callers that wait for it.
type round[V any] struct {
	keys   []string
	done   chan struct{} // closed when the fields below are set
	values map[string]V
	errs   map[string]error // of single keys
	err    error            // of the whole call
}

// newGather returns a gather that merges up to maxKeys keys within window into one call.
func newGather[V any](window time.Duration, maxKeys int,
	call func(context.Context, []string) (map[string]V, map[string]error, error)) *gather[V] {
	return &gather[V]{window: window, maxKeys: maxKeys, call: call}
}

// ask returns the value for key, from the merged call. ok is false if the call returned no value for key.
func (g *gather[V]) ask(ctx context.Context, key string) (value V, ok bool, err error) {
	r, first := g.join(key)
	if first {
		g.run(ctx, r)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
	if r.err != nil {
		return value, false, r.err
	}
	if err := r.errs[key]; err != nil {
		return value, false, err
	}
	value, ok = r.values[key]
	return value, ok, nil
}

// join adds the key to the waiting round, or opens a round. It returns true if it opened the round: the caller must
// then run it.
func (g *gather[V]) join(key string) (*round[V], bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.waiting
	if r == nil {
		r = &round[V]{keys: []string{key}, done: make(chan struct{})}
		g.waiting = r
		return r, true
	}
	if !slices.Contains(r.keys, key) {
		r.keys = append(r.keys, key)
	}
	if len(r.keys) >= g.maxKeys {
		g.waiting = nil
	}
	return r, false
}

// run waits for window, and then makes the call for all keys of the round.
func (g *gather[V]) run(ctx context.Context, r *round[V]) {
	defer close(r.done)
	timer := time.NewTimer(g.window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the call is made at once, because the other callers still need the answer
	}
	g.mu.Lock()
	if g.waiting == r {
		g.waiting = nil
	}
	keys := slices.Sorted(slices.Values(r.keys))
	g.mu.Unlock()
	// All waiting callers share the call: it must not end because the first caller's context ends.
	all, cancel := context.WithTimeout(context.WithoutCancel(ctx), mergedCallTimeout)
	defer cancel()
	r.values, r.errs, r.err = g.call(all, keys)
}

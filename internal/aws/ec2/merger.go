package ec2

import (
	"context"
	"slices"
	"sync"
	"time"
)

// mergedCallTimeout is the time limit of a call for several callers, including all its attempts.
const mergedCallTimeout = 2 * time.Minute

// merger merges concurrent calls of get, each for one key, into one call. The first caller waits for other callers for
// the duration of window, and then makes the call for all of them.
type merger[V any] struct {
	window  time.Duration
	maxKeys int // maximum number of keys in one call
	// call returns values and errors by key. Its third result is an error for all keys.
	call func(ctx context.Context, keys []string) (map[string]V, map[string]error, error)

	mu      sync.Mutex
	waiting *mergedCall[V] // the call that further keys join; nil: the next caller starts a new one
}

// mergedCall is one call, for all callers that wait for it.
type mergedCall[V any] struct {
	keys   []string
	done   chan struct{} // closed when the fields below are set
	values map[string]V
	errs   map[string]error // of single keys
	err    error            // of the whole call
}

func newMerger[V any](window time.Duration, maxKeys int,
	call func(context.Context, []string) (map[string]V, map[string]error, error)) *merger[V] {
	return &merger[V]{window: window, maxKeys: maxKeys, call: call}
}

// get returns the value for key, from the merged call. ok is false if the call returned no value for key.
func (m *merger[V]) get(ctx context.Context, key string) (value V, ok bool, err error) {
	c, isNew := m.join(key)
	if isNew {
		m.run(ctx, c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
	if c.err != nil {
		return value, false, c.err
	}
	if err := c.errs[key]; err != nil {
		return value, false, err
	}
	value, ok = c.values[key]
	return value, ok, nil
}

// join adds the key to the waiting call, or starts a new one. It returns true for a new call, which the caller must
// then run.
func (m *merger[V]) join(key string) (*mergedCall[V], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.waiting
	if c == nil {
		c = &mergedCall[V]{keys: []string{key}, done: make(chan struct{})}
		m.waiting = c
		return c, true
	}
	if !slices.Contains(c.keys, key) {
		c.keys = append(c.keys, key)
	}
	if len(c.keys) >= m.maxKeys {
		m.waiting = nil
	}
	return c, false
}

// run waits for the duration of window, and then makes the call for all keys of c.
func (m *merger[V]) run(ctx context.Context, c *mergedCall[V]) {
	defer close(c.done)
	timer := time.NewTimer(m.window)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the first caller has stopped waiting; make the call at once for the other callers
	}
	m.mu.Lock()
	if m.waiting == c {
		m.waiting = nil
	}
	keys := slices.Sorted(slices.Values(c.keys))
	m.mu.Unlock()
	// All waiting callers share the call, so it must not end when the first caller's context ends.
	shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), mergedCallTimeout)
	defer cancel()
	c.values, c.errs, c.err = m.call(shared, keys)
}

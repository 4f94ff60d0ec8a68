package loop

import (
	"context"
	"sync"
	"time"
)

// Batch collects requests for a plan, so that pods that arrive together are planned together. Its methods may be called
// concurrently, but only one goroutine may call Wait.
//
// The requests of each namespace form a group. A group is complete when it has had no new request for idle, and at the
// latest after most. The first complete group ends the batch, so that a namespace with a steady stream of pods does not
// delay the pods of other namespaces.
type Batch struct {
	idle, most time.Duration // limits for a group: time without a new request, and in total

	mu       sync.Mutex
	requests map[string]time.Time // by ID of the request: when the plan was first requested
	groups   map[string]group     // by namespace; "" is for requests that are not about pods
	changed  chan struct{}        // holds a token after each new request
	closeNow bool                 // the batch must end at once
}

type group struct{ first, last time.Time }

// Window describes the requests of one batch that has ended.
type Window struct {
	First  time.Time // time of the first request; zero if there is none
	Closed time.Time // when the batch ended
	Size   int       // number of requests
}

// NewBatch returns an empty batch. The batch ends when a namespace has had no new request for idle, and at the latest
// after most.
func NewBatch(idle, most time.Duration) *Batch {
	return &Batch{idle: idle, most: most, requests: map[string]time.Time{}, groups: map[string]group{}, changed: make(chan struct{}, 1)}
}

// Ask requests a plan. id identifies the request; most callers use the UID of an object. A request with the ID of an
// earlier request of the batch has no effect.
func (b *Batch) Ask(id string) { b.AskFor("", id) }

// AskFor requests a plan for a pod of the namespace. id is the UID of the pod.
func (b *Batch) AskFor(namespace, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.requests[id]; ok {
		return
	}
	now := time.Now()
	b.requests[id] = now
	g, ok := b.groups[namespace]
	if !ok {
		g.first = now
	}
	g.last = now
	b.groups[namespace] = g
	b.signal()
}

// AskNow requests a plan like Ask, and ends the batch at once, for example because a planned node was lost.
func (b *Batch) AskNow(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeNow = true
	if _, ok := b.requests[id]; !ok {
		b.requests[id] = time.Now()
	}
	b.signal()
}

func (b *Batch) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Wait waits until the batch ends, and returns its Window. The second result is false when ctx has ended. Wait returns
// a Window without requests in two cases:
//   - Nothing was requested for the duration recheck; 0 disables this.
//   - wake delivers a value. The batch continues.
func (b *Batch) Wait(ctx context.Context, recheck time.Duration, wake <-chan struct{}) (Window, bool) {
	var recheckDue <-chan time.Time
	if recheck > 0 {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		recheckDue = timer.C
	}
	end := time.NewTimer(b.most)
	defer end.Stop()
	for {
		left, isOpen := b.remaining(time.Now())
		if isOpen && left <= 0 {
			return b.finish(), ctx.Err() == nil
		}
		end.Stop()
		if isOpen {
			end.Reset(left)
			recheckDue = nil
		}
		select {
		case <-ctx.Done():
			return Window{}, false
		case <-end.C:
		case <-recheckDue:
			return Window{Closed: time.Now()}, true
		case <-wake:
			return Window{Closed: time.Now()}, true
		case <-b.changed:
		}
	}
}

// remaining returns how long the batch lasts without a further request; false if nothing was requested.
func (b *Batch) remaining(now time.Time) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closeNow || len(b.requests) == 0 {
		return 0, b.closeNow
	}
	left := b.most
	for _, g := range b.groups {
		left = min(left, g.last.Add(b.idle).Sub(now), g.first.Add(b.most).Sub(now))
	}
	return left, true
}

// finish returns the Window of the batch and starts an empty batch.
func (b *Batch) finish() Window {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := Window{Closed: time.Now(), Size: len(b.requests)}
	for _, since := range b.requests {
		if w.First.IsZero() || since.Before(w.First) {
			w.First = since
		}
	}
	clear(b.requests)
	clear(b.groups)
	b.closeNow = false
	return w
}

// ClosesNow reports whether the batch ends at once, without its idle time.
func (b *Batch) ClosesNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closeNow
}

// Recheck is the interval of plans without a request, while pods have no node or their node is not ready yet.
const Recheck = 5 * time.Second

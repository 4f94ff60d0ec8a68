package loop

import (
	"context"
	"sync"
	"time"
)

// Batch collects requests for a plan, so that pods that arrive together are planned together. Its methods may be called
// concurrently, but only one goroutine may call Wait.
//
// Each namespace has a window of its own. It stays open until no new pod of the namespace has arrived for a while. The
// first window that closes ends the batch: a namespace with a steady stream of pods does not delay the pods of others.
type Batch struct {
	idle, most time.Duration // how long a window stays open without a new request, and in total

	mu       sync.Mutex
	asking   map[string]time.Time // by name: when the plan was first requested
	groups   map[string]group     // by namespace; "" is for requests that are not about pods
	changed  chan struct{}        // holds a token after each new name
	closeNow bool                 // the batch must end at once
}

// group has the times of the first and the last request of a namespace.
type group struct{ first, last time.Time }

// Window describes one closed batch.
type Window struct {
	First  time.Time // time of the first request; zero if the batch is empty
	Closed time.Time // when the window closed
	Size   int       // number of requests in the batch
}

// NewBatch returns a batch that ends when a namespace has had no new request for idle, and at the latest after most.
func NewBatch(idle, most time.Duration) *Batch {
	return &Batch{idle: idle, most: most, asking: map[string]time.Time{}, groups: map[string]group{}, changed: make(chan struct{}, 1)}
}

// Ask requests a plan for name, a UID. A repeated request in the same window does not extend the window.
func (b *Batch) Ask(name string) { b.AskFor("", name) }

// AskFor requests a plan for name, a pod of the namespace.
func (b *Batch) AskFor(namespace, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.asking[name]; ok {
		return
	}
	now := time.Now()
	b.asking[name] = now
	g, ok := b.groups[namespace]
	if !ok {
		g.first = now
	}
	g.last = now
	b.groups[namespace] = g
	b.signal()
}

// AskNow requests a plan for name and closes the batch at once. It is called when a planned node cannot be launched or
// is lost.
func (b *Batch) AskNow(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeNow = true
	if _, ok := b.asking[name]; !ok {
		b.asking[name] = time.Now()
	}
	b.signal()
}

// signal wakes Wait.
func (b *Batch) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Wait returns the next batch when its window closes. It returns an empty batch in two cases: recheck is above 0 and
// nothing was requested for that long, or wake delivers a value; in the second case an open window stays open. The
// second result is false when ctx has ended.
func (b *Batch) Wait(ctx context.Context, recheck time.Duration, wake <-chan struct{}) (Window, bool) {
	var again <-chan time.Time
	if recheck > 0 {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		again = timer.C
	}
	end := time.NewTimer(b.most)
	defer end.Stop()
	for {
		left, isOpen := b.left(time.Now())
		if isOpen && left <= 0 {
			return b.close(), ctx.Err() == nil
		}
		end.Stop()
		if isOpen {
			end.Reset(left)
			again = nil
		}
		select {
		case <-ctx.Done():
			return Window{}, false
		case <-end.C:
		case <-again:
			return Window{Closed: time.Now()}, true
		case <-wake:
			return Window{Closed: time.Now()}, true
		case <-b.changed:
		}
	}
}

// left returns how long the window stays open without a further request; false if no window is open.
func (b *Batch) left(now time.Time) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closeNow || len(b.asking) == 0 {
		return 0, b.closeNow
	}
	left := b.most
	for _, g := range b.groups {
		left = min(left, g.last.Add(b.idle).Sub(now), g.first.Add(b.most).Sub(now))
	}
	return left, true
}

// close returns the batch and starts an empty one.
func (b *Batch) close() Window {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := Window{Closed: time.Now(), Size: len(b.asking)}
	for _, since := range b.asking {
		if w.First.IsZero() || since.Before(w.First) {
			w.First = since
		}
	}
	clear(b.asking)
	clear(b.groups)
	b.closeNow = false
	return w
}

// ClosesNow reports whether the batch closes at once, without its idle time.
func (b *Batch) ClosesNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closeNow
}

// Recheck is the interval of plans without a request, while pods have no node or their node is not ready yet.
const Recheck = 5 * time.Second

package controller

import (
	"context"
	"sync"
	"time"
)

// Batch collects what asks for a plan, so that pods that come together are planned together. Its methods may be
// called at the same time; one caller waits.
//
// Each group has a window of its own, which is open until nobody new of the group has asked for a while. The first window that ends
// closes the batch: a namespace whose pods keep coming does not hold up the pods of others.
type Batch struct {
	idle, most time.Duration

	mu      sync.Mutex
	asking  map[string]time.Time // who asks, since when
	groups  map[string]group     // by namespace; "" is for what is not a pod
	changed chan struct{}        // holds a token after each new name
	hurry   bool                 // somebody cannot wait for the window to end
}

// group is when the first and the last of a group asked.
type group struct{ first, last time.Time }

// Window is one batch.
type Window struct {
	First  time.Time // when the first of it asked; zero if nobody did
	Closed time.Time
	Size   int
}

// NewBatch returns a batch that closes when nobody new of a group has asked for idle, or after most.
func NewBatch(idle, most time.Duration) *Batch {
	return &Batch{idle: idle, most: most, asking: map[string]time.Time{}, groups: map[string]group{}, changed: make(chan struct{}, 1)}
}

// Ask asks for a plan on behalf of name, a UID. Who asks again in the same window does not make it longer.
func (b *Batch) Ask(name string) { b.AskFor("", name) }

// AskFor is Ask for a pod of the namespace.
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

// Hurry asks for a plan at once, whatever the window: what was planned cannot be had.
func (b *Batch) Hurry(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurry = true
	if _, ok := b.asking[name]; !ok {
		b.asking[name] = time.Now()
	}
	b.signal()
}

func (b *Batch) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Wait returns the next batch. With a recheck above 0, an empty one is returned when nobody asked for so long, or when something
// comes from wake, which leaves an open window open. The second result is false when ctx ended.
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

// left returns how long the window stays open if nobody else asks; false if nobody has asked.
func (b *Batch) left(now time.Time) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hurry || len(b.asking) == 0 {
		return 0, b.hurry
	}
	left := b.most
	for _, g := range b.groups {
		left = min(left, g.last.Add(b.idle).Sub(now), g.first.Add(b.most).Sub(now))
	}
	return left, true
}

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
	b.hurry = false
	return w
}

func (b *Batch) isHurried() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hurry
}

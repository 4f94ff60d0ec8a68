package controller

import (
	"context"
	"sync"
	"time"
)

// Batch collects what asks for a plan, so that pods that come together are planned together. Its methods may be
// called at the same time; one caller waits.
type Batch struct {
	idle, most time.Duration

	mu      sync.Mutex
	asking  map[string]time.Time // who asks, since when
	changed chan struct{}        // holds a token after each new name
	hurry   bool                 // somebody cannot wait for the window to end
}

// Window is one batch.
type Window struct {
	First  time.Time // when the first of it asked; zero if nobody did
	Closed time.Time
	Size   int
}

// NewBatch returns a batch that closes when nobody new has asked for idle, or after most.
func NewBatch(idle, most time.Duration) *Batch {
	return &Batch{idle: idle, most: most, asking: map[string]time.Time{}, changed: make(chan struct{}, 1)}
}

// Ask asks for a plan on behalf of name, a UID. Who asks again in the same window does not make it longer.
func (b *Batch) Ask(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.asking[name]; ok {
		return
	}
	b.asking[name] = time.Now()
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

// Wait returns the next batch. With a recheck above 0, an empty one is returned when nobody asked for so long. The
// second result is false when ctx ended.
func (b *Batch) Wait(ctx context.Context, recheck time.Duration) (Window, bool) {
	var again <-chan time.Time
	if recheck > 0 {
		timer := time.NewTimer(recheck)
		defer timer.Stop()
		again = timer.C
	}
	for b.isEmpty() {
		select {
		case <-ctx.Done():
			return Window{}, false
		case <-again:
			return b.close(), true
		case <-b.changed:
		}
	}
	b.linger(ctx)
	return b.close(), ctx.Err() == nil
}

// linger waits until the window ends.
func (b *Batch) linger(ctx context.Context) {
	end := time.NewTimer(b.most)
	defer end.Stop()
	idle := time.NewTimer(b.idle)
	defer idle.Stop()
	for !b.isHurried() {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-idle.C:
			return
		case <-b.changed:
			idle.Reset(b.idle)
		}
	}
}

func (b *Batch) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asking) == 0
}

func (b *Batch) isHurried() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hurry
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
	b.hurry = false
	return w
}

package loop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask      func(b *Batch)
		recheck  time.Duration
		wantSize int
		wantOpen time.Duration // from the start of the test to the end of the batch
	}{
		"the batch ends after the idle time": {
			ask:      func(b *Batch) { b.Ask("a"); b.Ask("b") },
			wantSize: 2, wantOpen: time.Second,
		},
		"a repeated request does not extend the batch": {
			ask: func(b *Batch) {
				for range 20 {
					b.Ask("a")
					time.Sleep(100 * time.Millisecond)
				}
			},
			wantSize: 1, wantOpen: time.Second,
		},
		"new requests extend the batch up to its maximum": {
			ask: func(b *Batch) {
				for i := range 200 {
					b.Ask(fmt.Sprint(i))
					time.Sleep(100 * time.Millisecond)
				}
			},
			wantSize: 100, wantOpen: 10 * time.Second,
		},
		"a namespace with a steady stream of pods does not delay another namespace": {
			ask: func(b *Batch) {
				for i := range 30 {
					b.AskFor("many", fmt.Sprint(i))
					if i == 3 {
						b.AskFor("other", "one")
					}
					time.Sleep(100 * time.Millisecond)
				}
			},
			wantSize: 14, wantOpen: 1300 * time.Millisecond, // other asks at 300 ms and is idle for 1 s: 13 pods of many
		},
		"AskNow ends the batch at once": {
			ask:      func(b *Batch) { b.Ask("a"); time.Sleep(500 * time.Millisecond); b.AskNow("b") },
			wantSize: 2, wantOpen: 500 * time.Millisecond,
		},
		"without a request Wait returns after recheck": {
			ask:     func(*Batch) {},
			recheck: 5 * time.Second, wantOpen: 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := NewBatch(time.Second, 10*time.Second)
				start := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var asking sync.WaitGroup
				asking.Go(func() { c.ask(b) })
				w, ok := b.Wait(ctx, c.recheck, nil)
				if !ok || w.Closed.Sub(start).Round(50*time.Millisecond) != c.wantOpen {
					t.Errorf("the batch ended after %s (ok: %t), want %s", w.Closed.Sub(start), ok, c.wantOpen)
				}
				if diff := w.Size - c.wantSize; diff < 0 || diff > 1 { // one more request may come just before the end
					t.Errorf("the batch has %d requests, want %d or one more", w.Size, c.wantSize)
				}
				if c.wantSize > 0 && !w.First.Equal(start) {
					t.Errorf("the first request is at %s, want %s", w.First, start)
				}
				asking.Wait()
			})
		})
	}
}

func TestBatchEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := NewBatch(time.Second, time.Second).Wait(ctx, 0, nil); ok {
		t.Error("Wait returned true although the context had ended")
	}
}

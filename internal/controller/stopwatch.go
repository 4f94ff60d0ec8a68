package controller

import (
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/metrics"
)

// Stopwatch follows NodeClaims from the batch that wanted them to the call that buys their machine, and tells the
// metrics. A claim may be launched before the pass that made it has come to its end, so both orders count.
// Its methods may be called at the same time.
type Stopwatch struct {
	Metrics *metrics.Metrics

	mu       sync.Mutex
	made     map[string]times     // made, not launched yet
	launched map[string]time.Time // launched, not known to be made yet
}

type times struct{ closed, made time.Time }

// mostFollowed bounds what is remembered of claims that somebody else made, or that were never launched.
const mostFollowed = 10_000

// Made notes a claim, by name, that was made at now, for a batch closed earlier.
func (w *Stopwatch) Made(claim string, closed, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.launched[claim]; ok {
		delete(w.launched, claim)
		w.observe(times{closed, now}, at)
		return
	}
	if w.made == nil || len(w.made) >= mostFollowed {
		w.made = map[string]times{}
	}
	w.made[claim] = times{closed, now}
}

// Launching notes that EC2 is asked for a claim's machine at now. Only the first time counts.
func (w *Stopwatch) Launching(claim string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.made[claim]; ok {
		delete(w.made, claim)
		w.observe(t, now)
		return
	}
	if w.launched == nil || len(w.launched) >= mostFollowed {
		w.launched = map[string]time.Time{}
	}
	if _, again := w.launched[claim]; !again {
		w.launched[claim] = now
	}
}

func (w *Stopwatch) observe(t times, launched time.Time) {
	w.Metrics.Stage.WithLabelValues(metrics.StageLaunch).Observe(max(launched.Sub(t.made), 0).Seconds())
	w.Metrics.Stage.WithLabelValues(metrics.StageBeyond).Observe(launched.Sub(t.closed).Seconds())
}

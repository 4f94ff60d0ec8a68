package provisioner

import (
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/metrics"
)

// Stopwatch measures, for the metrics, the time from the batch that needed a NodeClaim to the launch request. The
// launch of a claim may start before the pass that created the claim has ended, so Made and Launching may be called in
// either order. Its methods are safe for concurrent use.
type Stopwatch struct {
	Metrics *metrics.Metrics // the metrics of this process

	mu       sync.Mutex
	made     map[string]times     // claims that were created, but not launched yet
	launched map[string]time.Time // claims that were launched, but not reported with Made yet
}

// times are the close of the batch and the creation of the claim.
type times struct{ closed, made time.Time }

// mostFollowed limits each map, because it may contain claims that another client created, or that are never launched.
// A full map is emptied.
const mostFollowed = 10_000

// Made records that a claim was created at now for a batch that closed at closed.
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

// Launching records the first launch request for a claim.
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

// observe records the times from the creation and from the batch to the launch.
func (w *Stopwatch) observe(t times, launched time.Time) {
	w.Metrics.Stage.WithLabelValues(metrics.StageLaunch).Observe(max(launched.Sub(t.made), 0).Seconds())
	w.Metrics.Stage.WithLabelValues(metrics.StageBeyond).Observe(launched.Sub(t.closed).Seconds())
}

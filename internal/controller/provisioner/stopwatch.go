package provisioner

import (
	"sync"
	"time"

	"github.com/joiner-sh/joiner/internal/metrics"
)

// Stopwatch measures, for the metrics, the time from the end of the batch of pods that needed a NodeClaim to the launch
// request. A claim may be launched before the pass that created it ends and calls NoteCreated. So NoteCreated and
// NoteLaunch may be called in either order. The methods are safe for concurrent use.
type Stopwatch struct {
	Metrics *metrics.Metrics // the metrics of this process

	mu       sync.Mutex
	created  map[string]times     // by name of a claim that was created, but not launched yet
	launched map[string]time.Time // launch, by name of a claim that was not reported with NoteCreated yet
}

type times struct{ batchEnded, created time.Time }

// maxTracked limits each map, because some claims never leave it: those that another client created, or that are never
// launched. A full map is emptied.
const maxTracked = 10_000

// NoteCreated records that a claim was created at now for a batch that ended at batchEnded.
func (w *Stopwatch) NoteCreated(claim string, batchEnded, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if launched, ok := w.launched[claim]; ok {
		delete(w.launched, claim)
		w.observe(times{batchEnded, now}, launched)
		return
	}
	if w.created == nil || len(w.created) >= maxTracked {
		w.created = map[string]times{}
	}
	w.created[claim] = times{batchEnded, now}
}

// NoteLaunch records the first launch request for a claim.
func (w *Stopwatch) NoteLaunch(claim string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.created[claim]; ok {
		delete(w.created, claim)
		w.observe(t, now)
		return
	}
	if w.launched == nil || len(w.launched) >= maxTracked {
		w.launched = map[string]time.Time{}
	}
	if _, isRepeated := w.launched[claim]; !isRepeated {
		w.launched[claim] = now
	}
}

func (w *Stopwatch) observe(t times, launched time.Time) {
	// A launch may precede the response to the creation: then the time is 0.
	w.Metrics.Stage.WithLabelValues(metrics.StageLaunch).Observe(max(launched.Sub(t.created), 0).Seconds())
	w.Metrics.Stage.WithLabelValues(metrics.StageAfterBatch).Observe(launched.Sub(t.batchEnded).Seconds())
}

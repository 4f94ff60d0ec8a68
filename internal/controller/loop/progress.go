package loop

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-sh/joiner/internal/metrics"
)

// Names of the loops in metrics, logs and probes.
const (
	LoopProvisioner       = "provisioner"
	LoopSlices            = "provisioner.slices"
	LoopEvents            = "events"
	LoopMarket            = "market"
	LoopEmptiness         = "emptiness"
	LoopMoves             = "moves"
	LoopSearch            = "moves.search"
	LoopSweeper           = "sweeper"
	LoopDrift             = "drift"
	LoopInterruption      = "interruption"
	LoopShifts            = "shifts"
	LoopDiagnoses         = "diagnoses"
	LoopClaims            = "nodeclaim.lifecycle"
	LoopOrphans           = "node.termination" // of deleted Nodes without a NodeClaim
	LoopClasses           = "nodeclass"
	LoopPools             = "nodepool"
	LoopStatics           = "static"
	LoopOverlays          = "nodeoverlay"
	LoopIneffectiveFields = "honour" // warns of fields that Joiner does not honor
	LoopFleetPrice        = "fleetprice"
)

// Names returns the names of all loops whose progress is recorded.
func Names() []string {
	return []string{
		LoopDiagnoses, LoopDrift, LoopEmptiness, LoopEvents, LoopInterruption, LoopMarket, LoopMoves, LoopSearch, LoopOrphans,
		LoopClaims, LoopClasses, LoopOverlays, LoopPools, LoopProvisioner, LoopSlices, LoopShifts, LoopStatics, LoopSweeper,
		LoopIneffectiveFields, LoopFleetPrice,
	}
}

// A loop counts as stalled when one step takes longer than StalledAfter. A step can include calls to AWS that are
// throttled and retried for up to ReconcileTimeout. Loops are checked every progressPeriod.
const (
	StalledAfter   = ReconcileTimeout + time.Minute
	progressPeriod = 5 * time.Second
)

// Progress records what each loop works on, and since when. A loop that waits for work is never stalled. Its methods
// are safe for concurrent use, and accept a nil receiver, which records nothing.
type Progress struct {
	Metrics *metrics.Metrics // the metrics of this process
	Log     *slog.Logger     // the log of this process
	Now     Clock            // the clock; nil uses time.Now

	mu     sync.Mutex
	works  map[*Work]bool  // work that has not ended
	logged map[string]bool // loops that were logged as stalled
}

// Work is a unit of work of a loop, with its current step. Its methods accept a nil receiver.
type Work struct {
	progress *Progress
	loop     string    // name of the loop
	step     string    // what the loop works on; empty: the loop has only one kind of work
	since    time.Time // start of the step
}

// Begin records that the loop starts a step. step says what the loop works on. On a nil receiver Begin returns nil.
func (p *Progress) Begin(loop, step string) *Work {
	if p == nil {
		return nil
	}
	w := &Work{progress: p, loop: loop, step: step, since: p.Now.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.works == nil {
		p.works = map[*Work]bool{}
	}
	p.works[w] = true
	return w
}

// NextStep records that the next step of the work starts.
func (w *Work) NextStep(step string) {
	if w == nil {
		return
	}
	w.progress.mu.Lock()
	defer w.progress.mu.Unlock()
	w.step, w.since = step, w.progress.Now.Now()
}

// End records that the work is done.
func (w *Work) End() {
	if w == nil {
		return
	}
	w.progress.mu.Lock()
	defer w.progress.mu.Unlock()
	delete(w.progress.works, w)
}

type progressKey struct{}

// With returns a context with which Working records progress in p.
func (p *Progress) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// Working calls Begin of the Progress in ctx: the loop works on the step until End is called on the result. Without a
// Progress in ctx, Working does nothing.
func Working(ctx context.Context, loop, step string) *Work {
	p, _ := ctx.Value(progressKey{}).(*Progress)
	return p.Begin(loop, step)
}

// runningStep is the oldest step of a loop.
type runningStep struct {
	loop, step string
	age        time.Duration
}

func (r runningStep) isStalled() bool { return r.age > StalledAfter }

// String returns, for example, "provisioner has made no progress for 5m3s, working on a plan for 12 pods".
func (r runningStep) String() string {
	text := r.loop + " has made no progress for " + r.age.Round(time.Second).String()
	if r.step != "" {
		text += ", working on " + r.step
	}
	return text
}

// oldestSteps returns the oldest step of each active loop, sorted by loop.
func (p *Progress) oldestSteps() []runningStep {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now.Now()
	byLoop := map[string]runningStep{}
	for w := range p.works {
		age := now.Sub(w.since)
		if other, ok := byLoop[w.loop]; !ok || age > other.age || age == other.age && w.step < other.step { // equal age: the first name
			byLoop[w.loop] = runningStep{w.loop, w.step, age}
		}
	}
	var out []runningStep
	for _, r := range byLoop {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b runningStep) int { return cmp.Compare(a.loop, b.loop) })
	return out
}

// Stalled returns an error that names the stalled loops and what they work on, or nil if no loop is stalled.
func (p *Progress) Stalled() error {
	var out []string
	for _, r := range p.oldestSteps() {
		if r.isStalled() {
			out = append(out, r.String())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(strings.Join(out, "; "))
}

// Check returns a probe that fails while the loop is stalled.
func (p *Progress) Check(loop string) func(*http.Request) error {
	return func(*http.Request) error {
		for _, r := range p.oldestSteps() {
			if r.loop == loop && r.isStalled() {
				return errors.New(r.String())
			}
		}
		return nil
	}
}

// Start updates the metrics and logs stalled loops until ctx ends.
func (p *Progress) Start(ctx context.Context) error {
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	for {
		p.Report()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Report sets the metrics, and logs once when a loop stalls and once when it continues.
func (p *Progress) Report() {
	byLoop := map[string]runningStep{}
	for _, r := range p.oldestSteps() {
		byLoop[r.loop] = r
	}
	if p.logged == nil {
		p.logged = map[string]bool{}
	}
	for _, loop := range Names() {
		r := byLoop[loop]
		p.Metrics.LoopBusy.WithLabelValues(loop).Set(r.age.Seconds())
		stalled := 0.0
		if r.isStalled() {
			stalled = 1
		}
		p.Metrics.LoopStalled.WithLabelValues(loop).Set(stalled)
		switch {
		case r.isStalled() && !p.logged[loop]:
			p.Log.Error("a loop makes no progress", "loop", loop, "seconds", int(r.age.Seconds()), "workingOn", r.step,
				"hint", "the other loops continue; /readyz fails until this loop makes progress. A profile of the controller shows where it is stuck (--enable-profiling)")
		case !r.isStalled() && p.logged[loop]:
			p.Log.Info("the loop makes progress again", "loop", loop)
		}
		p.logged[loop] = r.isStalled()
	}
}

// Watched is a reconciler whose progress is recorded.
type Watched struct {
	reconcile.Reconciler
	Progress *Progress // records progress for the readiness probe
	Loop     string    // name of the loop
}

// Reconcile calls the Reconciler and records its progress.
func (w Watched) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	defer w.Progress.Begin(w.Loop, r.Name).End()
	return w.Reconciler.Reconcile(ctx, r)
}

// ReconcileTimeout limits the duration of one reconcile of an object, including the retries of throttled calls to AWS.
// When the time is over, the worker serves other objects, and the object's next reconcile continues the unfinished
// work.
const ReconcileTimeout = 3 * time.Minute

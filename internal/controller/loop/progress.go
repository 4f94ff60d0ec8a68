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
	LoopOrphans           = "node.termination"
	LoopClasses           = "nodeclass"
	LoopPools             = "nodepool"
	LoopStatics           = "static"
	LoopOverlays          = "nodeoverlay"
	LoopIneffectiveFields = "honour"
)

// Names returns the names of all watched loops.
func Names() []string {
	return []string{
		LoopDiagnoses, LoopDrift, LoopEmptiness, LoopEvents, LoopInterruption, LoopMarket, LoopMoves, LoopSearch, LoopOrphans,
		LoopClaims, LoopClasses, LoopOverlays, LoopPools, LoopProvisioner, LoopSlices, LoopShifts, LoopStatics, LoopSweeper,
		LoopIneffectiveFields,
	}
}

// A loop counts as stalled when one step takes longer than StalledAfter. Loops are checked every progressPeriod. A step
// can include calls to AWS that are throttled and retried for up to ReconcileTimeout.
const (
	StalledAfter   = ReconcileTimeout + time.Minute
	progressPeriod = 5 * time.Second
)

// Progress records what each loop works on, and since when. A loop that waits for work is never stalled.
// Its methods are safe for concurrent use, and accept a nil receiver, which watches nothing.
type Progress struct {
	Metrics *metrics.Metrics // the metrics of this process
	Log     *slog.Logger     // the log of this process
	Now     Clock            // the clock; nil uses time.Now

	mu     sync.Mutex
	works  map[*Work]bool  // the unfinished units of work
	logged map[string]bool // loops that were logged as stalled
}

// Work is one unit of work of a loop. Its methods accept a nil receiver.
type Work struct {
	of    *Progress
	loop  string    // name of the loop
	on    string    // what the loop works on; empty: the loop has only one kind of work
	since time.Time // start of the current step
}

// Begin records that the loop starts to work on something. On a nil receiver it returns nil.
func (p *Progress) Begin(loop, on string) *Work {
	if p == nil {
		return nil
	}
	w := &Work{of: p, loop: loop, on: on, since: p.Now.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.works == nil {
		p.works = map[*Work]bool{}
	}
	p.works[w] = true
	return w
}

// On records the start of the next step of the work.
func (w *Work) On(what string) {
	if w == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.on, w.since = what, w.of.Now.Now()
}

// End records that the work is done.
func (w *Work) End() {
	if w == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	delete(w.of.works, w)
}

// progressKey is the context key of the Progress.
type progressKey struct{}

// With returns a context with which Working records progress in p.
func (p *Progress) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// Working records that the loop works on something until End is called on the result. Without a Progress in ctx it does nothing.
func Working(ctx context.Context, loop, on string) *Work {
	p, _ := ctx.Value(progressKey{}).(*Progress)
	return p.Begin(loop, on)
}

// busy is the longest running step of a loop.
type busy struct {
	loop, on string
	age      time.Duration
}

func (b busy) isStalled() bool { return b.age > StalledAfter }

// String returns, for example, "provisioner has made no progress for 5m3s, working on a plan for 12 pods".
func (b busy) String() string {
	text := b.loop + " has made no progress for " + b.age.Round(time.Second).String()
	if b.on != "" {
		text += ", working on " + b.on
	}
	return text
}

// busiest returns the oldest step of each active loop, sorted by loop.
func (p *Progress) busiest() []busy {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Now.Now()
	by := map[string]busy{}
	for w := range p.works {
		age := now.Sub(w.since)
		if old, ok := by[w.loop]; !ok || age > old.age || age == old.age && w.on < old.on {
			by[w.loop] = busy{w.loop, w.on, age}
		}
	}
	var out []busy
	for _, b := range by {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b busy) int { return cmp.Compare(a.loop, b.loop) })
	return out
}

// Stalled returns an error that names the stalled loops and what they work on, or nil if no loop is stalled.
func (p *Progress) Stalled() error {
	var out []string
	for _, b := range p.busiest() {
		if b.isStalled() {
			out = append(out, b.String())
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
		for _, b := range p.busiest() {
			if b.loop == loop && b.isStalled() {
				return errors.New(b.String())
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
	by := map[string]busy{}
	for _, b := range p.busiest() {
		by[b.loop] = b
	}
	if p.logged == nil {
		p.logged = map[string]bool{}
	}
	for _, loop := range Names() {
		b := by[loop]
		p.Metrics.LoopBusy.WithLabelValues(loop).Set(b.age.Seconds())
		stalled := 0.0
		if b.isStalled() {
			stalled = 1
		}
		p.Metrics.LoopStalled.WithLabelValues(loop).Set(stalled)
		switch {
		case b.isStalled() && !p.logged[loop]:
			p.Log.Error("a loop makes no progress", "loop", loop, "seconds", int(b.age.Seconds()), "workingOn", b.on,
				"hint", "the other loops work; /readyz fails until this loop makes progress. A profile of the controller shows where it is stuck (--enable-profiling)")
		case !b.isStalled() && p.logged[loop]:
			p.Log.Info("the loop makes progress again", "loop", loop)
		}
		p.logged[loop] = b.isStalled()
	}
}

// Watched is a reconciler whose progress is recorded.
type Watched struct {
	reconcile.Reconciler
	Progress *Progress // records progress for the liveness probe
	Loop     string    // name of the loop
}

// Reconcile calls the Reconciler and records its progress.
func (w Watched) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	defer w.Progress.Begin(w.Loop, r.Name).End()
	return w.Reconciler.Reconcile(ctx, r)
}

// ReconcileTimeout is the longest duration of one reconcile of an object. Throttled calls to AWS are retried until
// then. After it, the worker serves other objects, and the object's next reconcile continues the unfinished work.
const ReconcileTimeout = 3 * time.Minute

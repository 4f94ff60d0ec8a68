package loop

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// RateLimitedRecorder queues events and emits them at a limited rate. Otherwise a plan for thousands of pods would make
// the API server write thousands of events while it must create NodeClaims. Namespaces take turns, so that the events of
// one namespace do not delay those of other namespaces. When the queue is full, an event of the namespace with the most
// events is dropped.
type RateLimitedRecorder struct {
	Events EventRecorder // receives the events

	mu     sync.Mutex
	queues map[string][]QueuedEvent // by namespace of the object
	Size   int                      // number of queued events
	last   string                   // the namespace whose event was emitted last
}

// QueuedEvent is an event that waits until the rate limit allows it.
type QueuedEvent struct {
	About   client.Object     // the object of the event
	Reason  kubeclient.Reason // the machine-readable reason
	Message string            // one sentence for the user
}

// Limits of a RateLimitedRecorder.
const (
	MaxQueuedEvents = 2000                  // maximum number of queued events
	emitInterval    = 50 * time.Millisecond // time between two events
)

// NewRateLimitedRecorder returns a recorder that passes its events to recorder at a limited rate.
func NewRateLimitedRecorder(recorder EventRecorder) *RateLimitedRecorder {
	return &RateLimitedRecorder{Events: recorder, queues: map[string][]QueuedEvent{}}
}

// Start emits events until ctx ends.
func (d *RateLimitedRecorder) Start(ctx context.Context) error {
	ticker := time.NewTicker(emitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if e, ok := d.Next(); ok {
			work := Working(ctx, LoopEvents, "")
			d.Events.Emit(e.About, e.Reason, e.Message)
			work.End()
		}
	}
}

// Next removes and returns the next event; false if the queue is empty.
func (d *RateLimitedRecorder) Next() (QueuedEvent, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Size == 0 {
		return QueuedEvent{}, false
	}
	names := slices.Sorted(maps.Keys(d.queues))
	next, found := slices.BinarySearch(names, d.last)
	if found {
		next++
	}
	d.last = names[next%len(names)] // the first namespace after last, by name
	return d.take(d.last), true
}

// take removes and returns the oldest event of the namespace. The caller must hold the lock.
func (d *RateLimitedRecorder) take(namespace string) QueuedEvent {
	queue := d.queues[namespace]
	out := queue[0]
	d.Size--
	if len(queue) == 1 {
		delete(d.queues, namespace)
	} else {
		queue[0] = QueuedEvent{}
		d.queues[namespace] = queue[1:]
	}
	return out
}

// EmitLater queues the event. If the queue is full, it first drops the newest event of the namespace that has the most
// events. If the object's own namespace has the most events, EmitLater drops the new event instead.
func (d *RateLimitedRecorder) EmitLater(about client.Object, reason kubeclient.Reason, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	namespace := about.GetNamespace()
	if d.Size >= MaxQueuedEvents {
		longest := namespace
		for name, queue := range d.queues {
			if len(queue) > len(d.queues[longest]) {
				longest = name
			}
		}
		if longest == namespace {
			return
		}
		d.dropLast(longest)
	}
	d.queues[namespace] = append(d.queues[namespace], QueuedEvent{about, reason, message})
	d.Size++
}

// dropLast drops the newest event of the namespace. The caller must hold the lock.
func (d *RateLimitedRecorder) dropLast(namespace string) {
	queue := d.queues[namespace]
	d.Size--
	if len(queue) == 1 {
		delete(d.queues, namespace)
		return
	}
	queue[len(queue)-1] = QueuedEvent{}
	d.queues[namespace] = queue[:len(queue)-1]
}

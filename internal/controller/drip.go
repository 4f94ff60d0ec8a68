package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-sh/joiner/internal/kube"
)

// Drip tells at its leisure what nobody waits for. A plan for thousands of pods would otherwise make the API server
// write thousands of events at the moment when it should create NodeClaims. Namespaces take turns, so that the events of one do not
// delay those of others. What is too much is left out, from the namespace that has most.
type Drip struct {
	Tell teller

	mu     sync.Mutex
	queues map[string][]drop // by namespace of the object
	size   int
	last   string // the namespace that had its turn last
}

type drop struct {
	about   client.Object
	reason  kube.Reason
	message string
}

// A drip keeps so many events at most, and tells one in each pause.
const (
	dripKeeps = 2000
	dripPause = 50 * time.Millisecond
)

// NewDrip returns a drip into tell.
func NewDrip(tell teller) *Drip { return &Drip{Tell: tell, queues: map[string][]drop{}} }

// Start tells until ctx ends.
func (d *Drip) Start(ctx context.Context) error {
	ticker := time.NewTicker(dripPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if e, ok := d.next(); ok {
			work := working(ctx, LoopEvents, "")
			d.Tell.Tell(e.about, e.reason, e.message)
			work.End()
		}
	}
}

// next takes the event whose turn it is.
func (d *Drip) next() (drop, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.size == 0 {
		return drop{}, false
	}
	names := slices.Sorted(maps.Keys(d.queues))
	at, found := slices.BinarySearch(names, d.last)
	if found {
		at++
	}
	d.last = names[at%len(names)]
	return d.take(d.last), true
}

// take takes the oldest event of the namespace. It is called with the lock held.
func (d *Drip) take(namespace string) drop {
	queue := d.queues[namespace]
	out := queue[0]
	d.size--
	if len(queue) == 1 {
		delete(d.queues, namespace)
	} else {
		queue[0] = drop{}
		d.queues[namespace] = queue[1:]
	}
	return out
}

// Later tells the event when its turn comes.
func (d *Drip) Later(about client.Object, reason kube.Reason, message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	namespace := about.GetNamespace()
	if d.size >= dripKeeps {
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
	d.queues[namespace] = append(d.queues[namespace], drop{about, reason, message})
	d.size++
}

// dropLast leaves out the youngest event of the namespace. It is called with the lock held.
func (d *Drip) dropLast(namespace string) {
	queue := d.queues[namespace]
	queue[len(queue)-1] = drop{}
	d.queues[namespace] = queue[:len(queue)-1]
	d.size--
}

package nodeclaim

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// openings opens Nodes one after the other. When a Node is opened, kube-scheduler tries all pending pods again, and
// clears the nomination of each pod whose own Node is still closed. So the pods of the next Node are nominated only
// after these attempts. The zero value has no Nodes. Its methods are safe for concurrent use.
type openings struct {
	mu      sync.Mutex
	waiting []opening // in the order of their turns
	current types.UID // the claim whose Node is being opened; empty if there is none
	since   time.Time // when the turn of current began
	free    time.Time // when the next turn may begin
}

// opening is a claim whose Node can be opened.
type opening struct {
	claim types.UID
	pods  int       // number of pods that the Node was launched for
	asked time.Time // when turn was last called for the claim
}

const (
	// quietTime is how long kube-scheduler must have tried no pod before a turn begins.
	quietTime = 30 * time.Millisecond
	// mostInTurns is the number of waiting pods above which Nodes are opened without turns: the attempts would take too
	// long, and the few pods that lose their nominations matter less.
	mostInTurns = 50
)

// turn returns when the claim's Node may be opened. If the result is now, the turn of the claim begins; done ends it.
// pods is the number of pods that the Node was launched for, and attempt is when kube-scheduler last tried a pod.
func (o *openings) turn(claim types.UID, pods int, attempt, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	place, waitingPods := o.enqueue(opening{claim, pods, now})
	if o.current == claim || waitingPods > mostInTurns {
		return now
	}
	at := now
	for _, t := range []time.Time{o.free, attempt.Add(quietTime)} {
		if t.After(at) {
			at = t
		}
	}
	if o.current != "" && now.Sub(o.since) < lifecycle.MaxNominationWait {
		at = now.Add(quietTime) // the turn of another claim has not ended: ask again
	}
	at = at.Add(time.Duration(place) * quietTime) // the claims before this one come first
	if !at.After(now) {
		o.current, o.since = claim, now
	}
	return at
}

// enqueue adds asking to the waiting claims, or updates it there. It returns the place of the claim among the waiting
// claims, and the number of pods of all waiting claims.
func (o *openings) enqueue(asking opening) (place, pods int) {
	o.waiting = slices.DeleteFunc(o.waiting, func(w opening) bool {
		return w.claim != asking.claim && asking.asked.Sub(w.asked) > lifecycle.MaxNominationWait // its Node was deleted, for example
	})
	place = slices.IndexFunc(o.waiting, func(w opening) bool { return w.claim == asking.claim })
	if place < 0 {
		place = len(o.waiting)
		o.waiting = append(o.waiting, asking)
	}
	o.waiting[place] = asking
	for _, w := range o.waiting {
		pods += w.pods
	}
	return place, pods
}

// done ends the turn of the claim, whose Node is open.
func (o *openings) done(claim types.UID, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(o.waiting, func(w opening) bool { return w.claim == claim })
	if o.current == claim {
		o.current = ""
	}
	o.free = now.Add(quietTime)
}

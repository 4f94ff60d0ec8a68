package nodeclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// bindings has the closed Nodes to which this process has bound pods. A Node must not open before kube-scheduler has
// seen these pods: it would give their room to other pods. The zero value has no Nodes. Its methods are safe for
// concurrent use.
type bindings struct {
	mu      sync.Mutex
	byClaim map[types.UID]binding
}

// binding is what happened to the pods of a closed Node.
type binding struct {
	pods    []types.NamespacedName // the pods that are bound
	at      time.Time              // when the last of them was bound; zero if none is
	seen    time.Time              // when the cache first showed all of them as bound; zero if it does not yet
	next    time.Time              // when the blocked pods are tried again; zero if there are none
	isTried bool                   // false before the first attempt
}

const (
	// retryBlocked is the time between two attempts to bind blocked pods.
	retryBlocked = 100 * time.Millisecond
	// bindSettleTime is the minimum time between the last binding and the opening of the Node. If the cache saw the binding
	// later than that, kube-scheduler may be late too, and the time is twice as long as the cache needed.
	bindSettleTime = 100 * time.Millisecond
	// seenPoll is the time between two looks into the cache for bound pods.
	seenPoll = 20 * time.Millisecond
	// maxSeenWait limits the wait for the cache.
	maxSeenWait = 5 * time.Second
)

// of returns what happened to the pods of the claim's Node; the zero value before the first attempt.
func (b *bindings) of(claim types.UID) binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byClaim[claim]
}

// tried records an attempt at the time now, which has bound pods and left others blocked.
func (b *bindings) tried(claim types.UID, bound []types.NamespacedName, isBlocked bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byClaim == nil {
		b.byClaim = map[types.UID]binding{}
	}
	entry := b.byClaim[claim]
	entry.isTried, entry.next = true, time.Time{}
	if isBlocked {
		entry.next = now.Add(retryBlocked)
	}
	if len(bound) > 0 {
		entry.pods = append(entry.pods, bound...)
		entry.at, entry.seen = now, time.Time{}
	}
	b.byClaim[claim] = entry
}

// see records that the cache shows all pods of the claim as bound.
func (b *bindings) see(claim types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry, ok := b.byClaim[claim]; ok && entry.seen.IsZero() {
		entry.seen = now
		b.byClaim[claim] = entry
	}
}

// forget drops the claim, whose Node is open or gone.
func (b *bindings) forget(claim types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byClaim, claim)
}

// settled returns when kube-scheduler has seen the bound pods, as far as the cache tells; zero if none is bound.
func (b binding) settled() time.Time {
	if b.at.IsZero() {
		return time.Time{}
	}
	return b.at.Add(max(bindSettleTime, 2*b.seen.Sub(b.at)))
}

package nodeclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// bindAttempts has the closed Nodes to which this process has bound pods. A Node must not open before kube-scheduler has
// seen these pods: it would give their room to other pods. The zero value has no Nodes. Its methods are safe for
// concurrent use.
type bindAttempts struct {
	mu      sync.Mutex
	byClaim map[types.UID]bindAttempt
}

// bindAttempt has the pods that this process has bound to a closed Node, and when it tries the others again.
type bindAttempt struct {
	pods  []types.NamespacedName // the pods that are bound
	at    time.Time              // when the last of them was bound; zero if none is
	seen  time.Time              // when the cache showed them as bound or gone, or maxSeenWait ended; zero before that
	next  time.Time              // when the blocked pods are tried again; zero if there are none
	isSet bool                   // false before the first attempt
}

const (
	// retryBlocked is the time between two attempts to bind blocked pods.
	retryBlocked = 100 * time.Millisecond
	// bindSettleTime is the minimum time between the last binding and the opening of the Node. If the cache needs more
	// than half of it to show the bindings, kube-scheduler may be late too, and the time is twice what the cache needed.
	bindSettleTime = 100 * time.Millisecond
	// minSeenPoll is the minimum time between two checks whether the cache shows the pods as bound.
	minSeenPoll = 20 * time.Millisecond
	// maxSeenWait limits the wait for the cache, and the time until a Node opens after its last binding.
	maxSeenWait = 5 * time.Second
)

// of returns the attempts for the claim's Node; the zero value before the first one.
func (b *bindAttempts) of(claim types.UID) bindAttempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byClaim[claim]
}

// record records an attempt at the time now, which has bound pods and left others blocked.
func (b *bindAttempts) record(claim types.UID, bound []types.NamespacedName, isBlocked bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byClaim == nil {
		b.byClaim = map[types.UID]bindAttempt{}
	}
	entry := b.byClaim[claim]
	entry.isSet, entry.next = true, time.Time{}
	if isBlocked {
		entry.next = now.Add(retryBlocked)
	}
	if len(bound) > 0 {
		entry.pods = append(entry.pods, bound...)
		entry.at, entry.seen = now, time.Time{}
	}
	b.byClaim[claim] = entry
}

// recordSeen records that the wait for the cache has ended.
func (b *bindAttempts) recordSeen(claim types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry, ok := b.byClaim[claim]; ok && entry.seen.IsZero() {
		entry.seen = now
		b.byClaim[claim] = entry
	}
}

// forget drops the claim, whose Node is open or gone.
func (b *bindAttempts) forget(claim types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byClaim, claim)
}

// settled returns when kube-scheduler has probably seen the bound pods, estimated from the delay of the cache; zero if
// none is bound.
func (b bindAttempt) settled() time.Time {
	if b.at.IsZero() {
		return time.Time{}
	}
	return b.at.Add(min(max(bindSettleTime, 2*b.seen.Sub(b.at)), maxSeenWait))
}

package snapshot

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Ledger remembers the NodeClaims in flight that this process created, whether or not the informers list them yet,
// until kube-scheduler has had time to bind their pods.
//
// It prevents duplicate launches. The cache lags behind Joiner's own writes, usually by milliseconds. A pass that reads
// the cache too early sees pending pods without their claim, and would launch again. Waiting for the cache would let
// one slow claim stop all others. Reading from the API server would cost a full list per pass. So the Reader adds the
// recorded claims to the claims of the cache until the cache has them.
//
// After a restart the ledger is empty. The first pass fills it from the cache, which is complete by then. An annotation
// of the claim names its pods: see AnnotationPods.
//
// The zero value is an empty ledger. Its methods may be called concurrently.
type Ledger struct {
	mu      sync.Mutex
	entries map[types.UID]entry // by UID of the claim
	reads   uint64              // number of comparisons with the cache
}

// entry is one claim in flight.
type entry struct {
	claim *karpv1.NodeClaim // as the API server returned it; never changed
	made  time.Time         // when it was created
	seen  uint64            // number of the last comparison (reads) in which the cache had the claim; 0: none
	own   bool              // this process created it
}

// Record adds a claim that was created at now.
func (l *Ledger) Record(now time.Time, claim *karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(claim.UID, entry{claim: claim, made: now, own: true})
}

// put stores the entry. The caller must hold the lock.
func (l *Ledger) put(uid types.UID, e entry) {
	if l.entries == nil {
		l.entries = map[types.UID]entry{}
	}
	l.entries[uid] = e
}

// IsOwn reports whether the claim is in flight and this process created it: no other process can have launched an
// instance for it.
func (l *Ledger) IsOwn(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[uid].own
}

// Forget drops a claim that no longer exists.
func (l *Ledger) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, uid)
}

// Len returns the number of claims in flight. While it is not 0, a planned pod may need a node again without any event.
func (l *Ledger) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Claims returns the claims in flight, in no particular order, as they were created or last seen in the cache. The
// caller must not change them.
func (l *Ledger) Claims() []*karpv1.NodeClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*karpv1.NodeClaim, 0, len(l.entries))
	for _, e := range l.entries {
		out = append(out, e.claim)
	}
	return out
}

// missing compares the ledger with the claims in the cache. late are the claims that the cache does not have yet.
// overdue are claims that the cache should have by now: the caller must read them from the server. missing drops the
// claims that the cache had and lost, and those whose pods are no longer awaited.
func (l *Ledger) missing(now time.Time, claims []*karpv1.NodeClaim) (late, overdue []*karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	for _, c := range claims {
		if planPeriodOf(c).isActive(now) {
			l.put(c.UID, entry{claim: c, made: c.CreationTimestamp.Time, seen: l.reads, own: l.entries[c.UID].own})
		} else {
			delete(l.entries, c.UID)
		}
	}
	for uid, e := range l.entries {
		switch {
		case e.seen == l.reads:
		case e.seen > 0:
			delete(l.entries, uid)
		case now.Sub(e.made) > cacheLag:
			overdue = append(overdue, e.claim)
		default:
			late = append(late, e.claim)
		}
	}
	return late, overdue
}

// cacheLag is the longest expected lag of the cache behind our own writes. After that time the Reader asks the server
// about each missing claim.
const cacheLag = 10 * time.Second

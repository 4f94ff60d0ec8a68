package snapshot

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Ledger remembers the NodeClaims in flight: those whose plan period is not over, so that kube-scheduler still has time
// to bind their pods. A claim of this process is in the ledger even if the informers do not list it yet.
//
// The ledger prevents duplicate launches. The cache lags behind Joiner's own writes, usually by milliseconds. A plan
// that reads the cache too early sees pending pods without their claim, and would launch again. Waiting for the cache
// would let one slow claim stop all others. Reading from the API server would cost a full list per plan. So the Reader
// adds the recorded claims to the claims of the cache until the cache has them.
//
// After a restart the ledger is empty. The first snapshot fills it from the cache, which is complete by then. The
// annotation conversion.AnnotationPods of a claim names its pods.
//
// The zero value is an empty ledger. All methods may be called concurrently.
type Ledger struct {
	mu          sync.Mutex
	entries     map[types.UID]entry // entries by UID of the claim
	comparisons uint64              // how many times the ledger was compared with the cache
}

// entry is one claim in flight.
type entry struct {
	claim   *karpv1.NodeClaim // as the API server returned it; never changed
	created time.Time         // creation time of the claim
	seen    uint64            // the value of comparisons when the cache last had the claim; 0: the cache never had it
	isOwn   bool              // this process created the claim
}

// Record adds a claim that this process created at the time now.
func (l *Ledger) Record(now time.Time, claim *karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(claim.UID, entry{claim: claim, created: now, isOwn: true})
}

func (l *Ledger) put(uid types.UID, e entry) {
	if l.entries == nil {
		l.entries = map[types.UID]entry{}
	}
	l.entries[uid] = e
}

// IsOwn reports whether the claim is in flight and this process created it, so that no other process can have launched
// an instance for it.
func (l *Ledger) IsOwn(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[uid].isOwn
}

// Forget drops a claim that no longer exists.
func (l *Ledger) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, uid)
}

// Len returns the number of claims in flight. While it is not 0, a planned pod may need a node again without any event,
// because the time that kube-scheduler has to bind the pod may end.
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

// updateFromCache compares the ledger with the claims in the cache. late are the claims that the cache does not have
// yet. overdue are claims that the cache should have by now: the caller must read them from the server. updateFromCache
// drops the claims that have disappeared from the cache, and those whose plan period is over.
func (l *Ledger) updateFromCache(now time.Time, claims []*karpv1.NodeClaim) (late, overdue []*karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.comparisons++
	for _, c := range claims {
		if planPeriodOf(c).isActive(now) {
			l.put(c.UID, entry{claim: c, created: c.CreationTimestamp.Time, seen: l.comparisons, isOwn: l.entries[c.UID].isOwn})
		} else {
			delete(l.entries, c.UID)
		}
	}
	for uid, e := range l.entries {
		switch {
		case e.seen == l.comparisons: // the cache has the claim
		case e.seen > 0: // the claim was deleted
			delete(l.entries, uid)
		case now.Sub(e.created) > cacheLag:
			overdue = append(overdue, e.claim)
		default:
			late = append(late, e.claim)
		}
	}
	return late, overdue
}

// cacheLag is the longest expected lag of the cache behind Joiner's own writes. After that time the Reader asks the API
// server about each missing claim.
const cacheLag = 10 * time.Second

package snapshot

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Ledger remembers the NodeClaims in flight that this process created, whether or not the informers list them yet, until
// kube-scheduler has had time to bind their pods.
//
// It prevents that nodes are launched twice. The cache lags behind our own
// writes, by milliseconds on a good day. A pass that reads it in between sees
// the pods still pending and no claim for them, and would launch again. Waiting for
// the cache would let one slow claim stop all others; reading past it would cost
// a full list per pass. So the claims just made are laid over what the cache
// holds until it holds them too.
//
// After a restart the ledger is empty and fills itself from the cache, which is
// read in full before the first pass. Which pods a claim is for is written on the
// claim: see AnnotationPods.
//
// The zero value is an empty ledger. Its methods may be called at the same time.
type Ledger struct {
	mu      sync.Mutex
	entries map[types.UID]entry
	reads   uint64 // how often the cache was compared with
}

// entry is one claim on its way.
type entry struct {
	claim *karpv1.NodeClaim // as the API server answered; never altered
	made  time.Time
	seen  uint64 // the last read in which the cache held it; 0: none has yet
	own   bool   // this process has made it
}

// Record notes a claim that was made at now.
func (l *Ledger) Record(now time.Time, claim *karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(claim.UID, entry{claim: claim, made: now, own: true})
}

func (l *Ledger) put(uid types.UID, e entry) {
	if l.entries == nil {
		l.entries = map[types.UID]entry{}
	}
	l.entries[uid] = e
}

// IsOwn reports whether the claim is in flight and this process created it: no other process can have launched an instance for it.
func (l *Ledger) IsOwn(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[uid].own
}

// Forget drops a claim: it is known to be gone.
func (l *Ledger) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, uid)
}

// Len returns how many claims are on their way. While there are any, pods that
// count as placed may come to need a place again without any event.
func (l *Ledger) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Claims returns the claims on their way, as they were when they were made or last compared with the cache, in no
// particular order. They are not to be altered.
func (l *Ledger) Claims() []*karpv1.NodeClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*karpv1.NodeClaim, 0, len(l.entries))
	for _, e := range l.entries {
		out = append(out, e.claim)
	}
	return out
}

// missing compares the ledger with the claims in the cache. It returns the claims that the cache does not have yet and, separately,
// those that it should have by now: the caller must read them from the server. It drops what was seen before and
// is no longer there, and what has arrived.
func (l *Ledger) missing(now time.Time, claims []*karpv1.NodeClaim) (late, overdue []*karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	for _, c := range claims {
		if awaitedBy(c).at(now) {
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

// cacheLag is how far behind our own writes the cache is believed to be at
// most. Beyond it the server is asked about each claim that is missing.
const cacheLag = 10 * time.Second

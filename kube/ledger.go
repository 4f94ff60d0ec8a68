package kube

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Ledger remembers the NodeClaims that are on their way: those that this process
// has made, whether or not the informers show them yet, until kube-scheduler has
// had its time to bind the pods that they are for.
//
// It is there so that nothing is bought twice. The cache lags behind our own
// writes, by milliseconds on a good day. A pass that reads it in between sees
// the pods still pending and no claim for them, and would buy again. Waiting for
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
}

// entry is one claim on its way.
type entry struct {
	claim *karpv1.NodeClaim // as the API server answered; never altered
	made  time.Time
	seen  bool // the cache has held it
}

// Record notes a claim that was made at now.
func (l *Ledger) Record(now time.Time, claim *karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(claim.UID, entry{claim: claim, made: now})
}

func (l *Ledger) put(uid types.UID, e entry) {
	if l.entries == nil {
		l.entries = map[types.UID]entry{}
	}
	l.entries[uid] = e
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

// merge returns claims, and those of the ledger that are not among them because
// the cache has not seen them yet. It drops what was seen before and is no longer
// there, and what has arrived. Claims that the cache should have seen by now are
// returned as overdue: they are still in the first result, and somebody must ask
// the server.
func (l *Ledger) merge(now time.Time, claims []*karpv1.NodeClaim) (all, overdue []*karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listed := make(map[types.UID]bool, len(claims))
	for _, c := range claims {
		listed[c.UID] = true
		if awaitsPods(c, now) {
			l.put(c.UID, entry{claim: c, made: c.CreationTimestamp.Time, seen: true})
		} else {
			delete(l.entries, c.UID)
		}
	}
	all = slices.Clone(claims)
	for uid, e := range l.entries {
		switch {
		case listed[uid]:
		case e.seen:
			delete(l.entries, uid)
		default:
			all = append(all, e.claim)
			if now.Sub(e.made) > cacheLag {
				overdue = append(overdue, e.claim)
			}
		}
	}
	return all, overdue
}

// cacheLag is how far behind our own writes the cache is believed to be at
// most. Beyond it the server is asked about each claim that is missing.
const cacheLag = 10 * time.Second

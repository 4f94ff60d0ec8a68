package kube

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
)

// Ledger remembers the NodeClaims that this process has made: those that the
// informers may not show yet, and the pods that each was made for.
//
// It is there so that nothing is bought twice. The cache lags behind our own
// writes, by milliseconds on a good day. A pass that reads it in between sees
// the pods still pending and no claim for them, and would buy again. Waiting for
// the cache would let one slow claim stop all others; reading past it would cost
// a full list per pass. So the claims just made are laid over what the cache
// holds until it holds them too.
//
// The pods are kept for longer, until they are bound or their claim has been
// ready for a while, and count as if they ran on it. Otherwise the next pass
// would pack them anew onto the machines on their way, and where it packs them
// less well than the first time, the pods left over would be given one more.
//
// After a restart the ledger is empty. Then claims are known from the cache,
// which is read in full before the first pass, and what a claim was made for is
// known from the requests in its spec.
//
// The zero value is an empty ledger. Its methods may be called at the same time.
type Ledger struct {
	mu      sync.Mutex
	entries map[types.UID]entry
}

// entry is one claim that was made here.
type entry struct {
	claim *karpv1.NodeClaim // as the API server answered; never altered
	pods  []string          // "namespace/name"
	made  time.Time
	seen  bool // the cache has held it
}

// Record notes a claim that was made for these pods ("namespace/name") at now.
func (l *Ledger) Record(now time.Time, claim *karpv1.NodeClaim, pods []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[types.UID]entry{}
	}
	l.entries[claim.UID] = entry{claim: claim, pods: slices.Clone(pods), made: now}
}

// Forget drops a claim: it is known to be gone, or the pods on it are to be planned anew.
func (l *Ledger) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, uid)
}

// Len returns how many claims the ledger holds.
func (l *Ledger) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// merge returns claims, and those of the ledger that are not among them because
// the cache has not seen them yet. It drops what was seen before and is no longer
// there. Claims that the cache should have seen by now are returned as overdue:
// they are still in the first result, and somebody must ask the server.
func (l *Ledger) merge(now time.Time, claims []*karpv1.NodeClaim) (all, overdue []*karpv1.NodeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == 0 {
		return claims, nil
	}
	listed := make(map[types.UID]*karpv1.NodeClaim, len(claims))
	for _, c := range claims {
		listed[c.UID] = c
	}
	all = slices.Clone(claims)
	for uid, e := range l.entries {
		switch {
		case listed[uid] != nil:
			e.seen = true
			if isSettled(now, listed[uid]) {
				e.pods = nil
			}
			l.entries[uid] = e
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

// plannedPods returns, for each pod that a claim was made for, the claim's UID.
func (l *Ledger) plannedPods() map[string]types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]types.UID, len(l.entries))
	for uid, e := range l.entries {
		for _, pod := range e.pods {
			out[pod] = uid
		}
	}
	return out
}

// settled is how long kube-scheduler is given to bind, to a node that became
// ready, the pods that it was bought for. What is still pending then is planned
// anew: kube-scheduler must see something that we do not, or has given the room to
// other pods. Its own back-off between two looks at a pod is 10 seconds at most.
const settled = 12 * time.Second

func isSettled(now time.Time, claim *karpv1.NodeClaim) bool {
	c, ok := claim.StatusConditions().Find(karpv1.ConditionInitialized)
	return ok && c.Status == metav1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) > settled
}

// cacheLag is how far behind our own writes the cache is believed to be at
// most. Beyond it the server is asked about each claim that is missing.
const cacheLag = 10 * time.Second

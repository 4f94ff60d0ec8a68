package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ClaimsSince records which claims are in a certain state, for example without their Node, and since when. Its methods
// may be called concurrently; the zero value is empty.
type ClaimsSince struct {
	mu    sync.Mutex
	since map[types.UID]time.Time // by UID of the claim
}

// Count returns how many claims are in the state.
func (a *ClaimsSince) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.since)
}

// Note records whether the claim is in the state at now. It returns since when the claim has been in the state, or the
// zero time if it is not.
func (a *ClaimsSince) Note(claim types.UID, isInState bool, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isInState {
		delete(a.since, claim)
		return time.Time{}
	}
	since, ok := a.since[claim]
	if !ok {
		if a.since == nil {
			a.since = map[types.UID]time.Time{}
		}
		since = now
		a.since[claim] = now
	}
	return since
}

package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Absences records since when this process has missed the Node of a NodeClaim that had one, or another object. Its methods
// may be called concurrently; the zero value is empty.
type Absences struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// Count returns how many objects are missing.
func (a *Absences) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.since)
}

// Note records whether the claim's object is missing at now. It returns since when it is missing; the zero time if it is not.
func (a *Absences) Note(claim types.UID, missing bool, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !missing {
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

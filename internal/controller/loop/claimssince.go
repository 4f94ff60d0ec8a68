package loop

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Absences records which objects are missing, such as the Nodes of NodeClaims, and since when. A key is the UID of the
// claim or other object. Its methods may be called concurrently; the zero value is empty.
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

// Note records whether the claim's object is missing at now. It returns since when the object is missing, or the zero
// time if it is present.
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

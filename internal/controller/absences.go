package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// absences remember since when this process has not seen the Node of a claim that had one, or something else that is
// missing. Its methods may be called at the same time; the zero value remembers nothing.
type absences struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// count returns how many are missing.
func (a *absences) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.since)
}

// note says whether it is missing at now, and returns since when it is; zero if it is not.
func (a *absences) note(claim types.UID, missing bool, now time.Time) time.Time {
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

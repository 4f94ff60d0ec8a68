package nodestate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DisruptionLock lets one loop at a time choose nodes to disrupt, so that budgets are counted and used in one step. A
// loop must not plan or write while it holds the lock, so that other loops wait only milliseconds. The lock also
// records which nodes were chosen, and which disruptions started within LockMemory: the cache may not show them yet.
// The zero value has no records.
type DisruptionLock struct {
	choosing sync.Mutex // held from Enter to Leave

	mu      sync.Mutex              // guards the maps
	chosen  map[types.UID]bool      // claims whose nodes were chosen, but whose disruption has not started
	started map[types.UID]time.Time // by claim: when its disruption started
}

// LockMemory is how long a started disruption is recorded. The cache is assumed to lag less than this.
const LockMemory = 15 * time.Second

// Enter waits for the lock; Leave releases it.
func (g *DisruptionLock) Enter() { g.choosing.Lock() }

// Leave releases the lock.
func (g *DisruptionLock) Leave() { g.choosing.Unlock() }

// Reserve records that the claim's node was chosen. The record has no time limit: of many nodes that were chosen
// together, the last may be disrupted much later.
func (g *DisruptionLock) Reserve(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.chosen == nil {
		g.chosen = map[types.UID]bool{}
	}
	g.chosen[claim] = true
}

// NoteStart records that the claim was marked at now: the disruption of its node has started.
func (g *DisruptionLock) NoteStart(claim types.UID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started == nil {
		g.started = map[types.UID]time.Time{}
	}
	g.started[claim] = now
	delete(g.chosen, claim)
}

// Forget drops the records of the claim. It is called when the claim's node is not disrupted after all.
func (g *DisruptionLock) Forget(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.started, claim)
	delete(g.chosen, claim)
}

// IsChosen reports whether the claim's node was chosen, or its disruption started at most LockMemory before now.
func (g *DisruptionLock) IsChosen(claim types.UID, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.started[claim]
	if ok && now.Sub(at) > LockMemory {
		delete(g.started, claim)
		ok = false
	}
	return ok || g.chosen[claim]
}

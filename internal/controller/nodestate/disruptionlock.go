package nodestate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DisruptionLock lets one loop at a time choose nodes to disrupt, so that budgets are counted and used up in one step. A loop must not
// plan or write while it holds the Gate, so that others wait only milliseconds. The Gate remembers what was chosen, and what
// was started a moment ago, which the cache may not show yet. The zero value remembers nothing.
type DisruptionLock struct {
	turn sync.Mutex

	mu      sync.Mutex
	granted map[types.UID]bool      // claims whose nodes were chosen and whose disruption has not started
	begun   map[types.UID]time.Time // by claim: when its disruption started
}

// GateMemory is how far the cache may lag behind.
const GateMemory = 15 * time.Second

// Enter waits for the Gate; leave releases it.
func (g *DisruptionLock) Enter() { g.turn.Lock() }

// Leave ends what Enter began.
func (g *DisruptionLock) Leave() { g.turn.Unlock() }

// Reserve records that the claim's node was chosen. That holds until note or forget: of many nodes that were chosen
// together, the last may have to wait for its turn.
func (g *DisruptionLock) Reserve(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted == nil {
		g.granted = map[types.UID]bool{}
	}
	g.granted[claim] = true
}

// Note records that the disruption of the claim's node was written on the claim at now.
func (g *DisruptionLock) Note(claim types.UID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun == nil {
		g.begun = map[types.UID]time.Time{}
	}
	g.begun[claim] = now
	delete(g.granted, claim)
}

// Forget records that the claim's node stays after all.
func (g *DisruptionLock) Forget(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.begun, claim)
	delete(g.granted, claim)
}

// Going reports whether the claim's node was chosen, or its disruption started at most gateMemory before now.
func (g *DisruptionLock) Going(claim types.UID, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.begun[claim]
	if ok && now.Sub(at) > GateMemory {
		delete(g.begun, claim)
		ok = false
	}
	return ok || g.granted[claim]
}

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Gate lets one loop at a time choose which nodes go: budgets are counted and used up in one go. Nobody plans while he holds it,
// or writes anything, so that others wait for milliseconds: what was chosen is remembered, and so is what was begun a moment ago, which
// the cache may not show yet. The zero value remembers nothing.
type Gate struct {
	turn sync.Mutex

	mu      sync.Mutex
	granted map[types.UID]bool      // claims whose nodes were chosen, and have not begun to go
	begun   map[types.UID]time.Time // claims
}

// gateMemory is how far the cache may be behind.
const gateMemory = 15 * time.Second

// enter waits for the others; leave ends it.
func (g *Gate) enter() { g.turn.Lock() }

func (g *Gate) leave() { g.turn.Unlock() }

// reserve remembers that the claim's node was chosen, for as long as it takes until note or forget: of many that were chosen together the
// last may have to wait for its turn.
func (g *Gate) reserve(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted == nil {
		g.granted = map[types.UID]bool{}
	}
	g.granted[claim] = true
}

// note remembers that the claim's node began to go at now, when that was written on it.
func (g *Gate) note(claim types.UID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun == nil {
		g.begun = map[types.UID]time.Time{}
	}
	g.begun[claim] = now
	delete(g.granted, claim)
}

// forget says that the claim's node stays after all.
func (g *Gate) forget(claim types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.begun, claim)
	delete(g.granted, claim)
}

// going reports whether the claim's node was chosen, or began to go a moment before now, or since.
func (g *Gate) going(claim types.UID, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.begun[claim]
	if ok && now.Sub(at) > gateMemory {
		delete(g.begun, claim)
		ok = false
	}
	return ok || g.granted[claim]
}

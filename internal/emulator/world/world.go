// Package world is the state of an emulated AWS: accounts, regions, their resources and capacity, and future events.
//
// The subpackages identity, network and ekscluster have the state that does not depend on instances.
//
// In: requests as values, faults to inject, and the time.
// Out: AWS's results and errors, and the instances that changed.
// Never: a clock, randomness, a lock, a wire format or a call over the network.
package world

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// World is an emulated AWS with its accounts and regions. The zero value is an empty world that is ready for use. It is
// not safe for concurrent use.
type World struct {
	// Seed determines the generated ids: two worlds with the same seed generate the same ids for the same calls.
	Seed string

	// Timing has the durations of state changes. With the zero value, instances change state at the next Advance.
	Timing site.Timing

	// Faults are the faults to inject. The zero value injects none.
	Faults Faults

	ids         *site.IDs           // nil until the first id is generated: see idGenerator
	accounts    map[string]*Account // by id
	sts         identity.STS        // sessions of all accounts
	changes     []Instance          // see Changes
	messageSent bool                // a message was sent to a queue: see MessageSent
	due         site.Timetable      // future events
	markets     map[string]*Market  // by region
}

// Account returns the account with the 12-digit id. It creates the account on first use.
func (w *World) Account(id string) *Account {
	if a := w.accounts[id]; a != nil {
		return a
	}
	if w.accounts == nil {
		w.accounts = map[string]*Account{}
	}
	a := &Account{IAM: identity.NewIAM(id, w.idGenerator(), &w.sts), world: w}
	w.accounts[id] = a
	return a
}

// Region returns a region of an account. It creates an empty region on first use.
func (w *World) Region(account, name string) *Region {
	a := w.Account(account)
	if r := a.regions[name]; r != nil {
		return r
	}
	if a.regions == nil {
		a.regions = map[string]*Region{}
	}
	a.EnterRegion(name)
	r := newRegion(a, name)
	a.regions[name] = r
	return r
}

// Advance advances the time to now: it runs all events that are due by now, in the order of their times.
func (w *World) Advance(now time.Time) {
	w.due.Advance(now)
}

// Changes returns the instances whose state changed since the last call of Changes, in the order of the changes. Each
// element is the instance right after one change.
func (w *World) Changes() []Instance {
	c := w.changes
	w.changes = nil
	return c
}

// NewID returns an id that is unique in the world: see site.IDs.New.
func (w *World) NewID(prefix string) string {
	return w.idGenerator().New(prefix)
}

func (w *World) idGenerator() *site.IDs {
	if w.ids == nil {
		w.ids = site.NewIDs(&w.Seed)
	}
	return w.ids
}

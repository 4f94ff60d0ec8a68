// Package world is a make-believe AWS: accounts and regions, what they hold, what they are short of and how time passes in them.
//
// Subjects that need no instance are packages below this one: identity, network and ekscluster.
//
// In: requests as values, faults to play, and the time.
// Out: results and errors as AWS would give them, and the instances that changed.
// Never: a clock, randomness, a lock, a wire format or a call to anything real.
package world

import (
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// World is everything that exists: accounts, and in them regions. Its zero
// value is an empty world that is ready for use. It is not safe for use by
// several goroutines at once.
type World struct {
	// Seed is mixed into every id that is handed out: the same calls on two
	// worlds of one seed give the same ids.
	Seed string

	// Timing is how long instances take to change state. Its zero value makes
	// them change at once, at the next Advance.
	Timing site.Timing

	// Faults are what goes wrong. Its zero value is a world without trouble.
	Faults Faults

	ids      *site.IDs // nil until the first is needed: see source
	accounts map[string]*Account
	sts      identity.STS
	changes  []Instance
	mailed   bool
	due      site.Timetable
	markets  map[string]*Market
}

// Account returns the account with this 12-digit id; it is made when it is new.
func (w *World) Account(id string) *Account {
	if a := w.accounts[id]; a != nil {
		return a
	}
	if w.accounts == nil {
		w.accounts = map[string]*Account{}
	}
	a := &Account{IAM: identity.NewIAM(id, w.source(), &w.sts), world: w}
	w.accounts[id] = a
	return a
}

// Region returns a region of an account; it is made, empty, when it is new.
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

// Advance lets time pass until now: everything that is due by then happens, in
// the order in which it is due.
func (w *World) Advance(now time.Time) {
	w.due.Advance(now)
}

// Changes returns the instances that changed state since the last call, in
// order, each as it was after its change.
func (w *World) Changes() []Instance {
	c := w.changes
	w.changes = nil
	return c
}

// NewID returns an id that nothing else in this world has: the prefix and 17
// hexadecimal digits, as "i-0d3adb33f00000001".
func (w *World) NewID(prefix string) string {
	return w.source().New(prefix)
}

// source returns the source of the world's IDs.
func (w *World) source() *site.IDs {
	if w.ids == nil {
		w.ids = site.NewIDs(&w.Seed)
	}
	return w.ids
}

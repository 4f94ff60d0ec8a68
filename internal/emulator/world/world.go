// Package world is a make-believe AWS: accounts and regions, what they hold, what they are short of and how time passes in them.
//
// In: requests as values, faults to play, and the time.
// Out: results and errors as AWS would give them, and the instances that changed.
// Never: a clock, randomness, a lock, a wire format or a call to anything real.
package world

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
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
	Timing Timing

	// Faults are what goes wrong. Its zero value is a world without trouble.
	Faults Faults

	serial   uint64
	accounts map[string]*Account
	sessions map[string]*Session
	changes  []Instance
	mailed   bool
	due      timetable
	markets  map[string]*Market
	issuers  map[string]map[string]*rsa.PublicKey // keys by id, by issuer
}

// Timing is how long things take.
type Timing struct {
	Pending      time.Duration // from the launch of an instance until it runs
	ShuttingDown time.Duration // from the order to terminate until it is terminated
	Forget       time.Duration // from terminated until EC2 no longer lists it; 0 is one hour, as in life
	Profile      time.Duration // from the creation of a Fargate profile until it is active; 0 is at once
}

// Account returns the account with this 12-digit id; it is made when it is new.
func (w *World) Account(id string) *Account {
	if a := w.accounts[id]; a != nil {
		return a
	}
	if w.accounts == nil {
		w.accounts = map[string]*Account{}
	}
	a := &Account{ID: id, world: w}
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
	if a.partition == "" {
		a.partition = Partition(name)
	}
	r := newRegion(a, name)
	a.regions[name] = r
	return r
}

// Advance lets time pass until now: everything that is due by then happens, in
// the order in which it is due.
func (w *World) Advance(now time.Time) {
	for {
		e, ok := w.due.next(now)
		if !ok {
			return
		}
		e.happens(e.at)
	}
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
	return prefix + "-0" + w.hex(prefix, 16)
}

// hex returns n (at most 64) hexadecimal digits that differ on every call.
func (w *World) hex(kind string, n int) string {
	w.serial++
	return digest(n, w.Seed, kind, fmt.Sprint(w.serial))
}

// letters returns n (at most 32) upper-case letters and digits that differ on every call.
func (w *World) letters(kind string, n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	w.serial++
	sum := sha256.Sum256([]byte(w.Seed + "/" + kind + "/" + fmt.Sprint(w.serial)))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[sum[i]%32]
	}
	return string(b)
}

// digest returns the first n hexadecimal digits of a hash of the parts.
func digest(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:])[:n]
}

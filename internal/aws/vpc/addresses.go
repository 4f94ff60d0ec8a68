package vpc

import (
	"sync"
	"time"
)

// Addresses counts the subnet addresses that launches have taken, as long as EC2 may still list them as free. It also
// counts the addresses that launches in progress may take, so that a burst of launches spreads over the subnets of a
// zone. The zero value counts no addresses. Addresses is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	taken map[string][]taking // by subnet ID
	held  map[string]holding  // by the UID of the NodeClaim that is launched
}

// holding is the number of addresses that a launch may take in each of several subnets. The launch will take addresses
// in only one of the subnets.
type holding struct {
	counts map[string]int // by subnet ID
	until  time.Time      // when the addresses are no longer counted
}

// taking is a number of addresses that a launch has taken.
type taking struct {
	count int
	until time.Time // from then on, only EC2 counts the addresses
}

// countDelay is the maximum time until EC2 counts an address as taken.
const countDelay = time.Minute

// maxHoldTime is how long the addresses of a launch stay reserved without a Release.
const maxHoldTime = 5 * time.Minute

// Hold reserves addresses for a launch, from now on. launch is the UID of the NodeClaim. counts has the number of
// addresses by subnet ID. Release or another Hold of the same launch ends the reservation.
func (a *Addresses) Hold(now time.Time, launch string, counts map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[string]holding{}
	}
	a.held[launch] = holding{counts, now.Add(maxHoldTime)}
}

// Release ends the reservation of the launch, if there is one. If the launch has taken addresses, the caller must also
// call Take.
func (a *Addresses) Release(launch string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.held, launch)
}

// Take counts addresses of the subnet that a launch took at now.
func (a *Addresses) Take(now time.Time, subnetID string, count int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken == nil {
		a.taken = map[string][]taking{}
	}
	a.taken[subnetID] = append(a.taken[subnetID], taking{count, now.Add(countDelay)})
}

// Left returns copies of the subnets with fewer free addresses, at least 0. It subtracts the addresses that are
// reserved at now, and those that were taken less than countDelay before now.
func (a *Addresses) Left(now time.Time, subnets []Subnet) []Subnet {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := map[string]int{}
	for launch, h := range a.held {
		if !now.Before(h.until) {
			delete(a.held, launch)
			continue
		}
		for subnet, count := range h.counts {
			held[subnet] += count
		}
	}
	out := make([]Subnet, 0, len(subnets))
	for _, s := range subnets {
		s.Free -= held[s.ID]
		recent := a.taken[s.ID][:0]
		for _, t := range a.taken[s.ID] {
			if now.Before(t.until) {
				recent = append(recent, t)
				s.Free -= t.count
			}
		}
		if len(recent) > 0 {
			a.taken[s.ID] = recent
		} else {
			delete(a.taken, s.ID)
		}
		s.Free = max(s.Free, 0)
		out = append(out, s)
	}
	return out
}

package network

import (
	"sync"
	"time"
)

// Addresses counts addresses that launches have taken and EC2 does not yet
// show as taken, so that a burst of launches spreads over the subnets of a
// zone. The zero value has counted nothing. It is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	taken map[string][]taking
}

type taking struct {
	count int
	until time.Time
}

// shown is how long EC2 takes, at most, to show an address as taken.
const shown = time.Minute

// Take notes that a launch at now takes count addresses of the subnet.
func (a *Addresses) Take(now time.Time, subnetID string, count int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken == nil {
		a.taken = map[string][]taking{}
	}
	a.taken[subnetID] = append(a.taken[subnetID], taking{count, now.Add(shown)})
}

// Left returns the subnets with what is free in each at now, less what was taken lately.
func (a *Addresses) Left(now time.Time, subnets []Subnet) []Subnet {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Subnet, 0, len(subnets))
	for _, s := range subnets {
		still := a.taken[s.ID][:0]
		for _, t := range a.taken[s.ID] {
			if now.Before(t.until) {
				still = append(still, t)
				s.Free -= t.count
			}
		}
		if len(still) > 0 {
			a.taken[s.ID] = still
		} else {
			delete(a.taken, s.ID)
		}
		s.Free = max(s.Free, 0)
		out = append(out, s)
	}
	return out
}

package vpc

import (
	"sync"
	"time"
)

// Addresses counts the addresses that launches have taken and that EC2 still shows as free. It also counts the
// addresses that launches in progress may take, so that a burst of launches spreads over the subnets of a zone. The
// zero value has counted none. It is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	taken map[string][]taking
	held  map[string]holding // by launch
}

// holding is the number of addresses that a launch may take in each of several subnets. It will take them in only one
// of them.
type holding struct {
	counts map[string]int // by subnet
	until  time.Time
}

type taking struct {
	count int
	until time.Time
}

// shown is the maximum time until EC2 shows an address as taken.
const shown = time.Minute

// longestLaunch is how long the addresses of a launch stay reserved without a Release.
const longestLaunch = 5 * time.Minute

// Hold reserves counts addresses, by subnet, for the launch from now on. Release or another Hold of the same
// launch ends the reservation.
func (a *Addresses) Hold(now time.Time, launch string, counts map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[string]holding{}
	}
	a.held[launch] = holding{counts, now.Add(longestLaunch)}
}

// Release ends the reservation of the launch, if there is one. Take counts the addresses that the launch has
// taken.
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
	a.taken[subnetID] = append(a.taken[subnetID], taking{count, now.Add(shown)})
}

// Left returns the subnets. The free addresses of each are reduced by those that are reserved or were taken shortly
// before now.
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

package vpc

import (
	"sync"
	"time"
)

// Addresses counts addresses that launches have taken and EC2 does not yet
// show as taken, and those that launches under way may take, so that a burst of launches spreads over the subnets of a
// zone. The zero value has counted nothing. It is safe for concurrent use.
type Addresses struct {
	mu    sync.Mutex
	taken map[string][]taking
	held  map[string]holding // by who holds them
}

// holding is what a launch may take: of one of the subnets, it is not known which.
type holding struct {
	counts map[string]int // by subnet
	until  time.Time
}

type taking struct {
	count int
	until time.Time
}

// shown is how long EC2 takes, at most, to show an address as taken.
const shown = time.Minute

// longestLaunch is how long a launch that is not released holds its addresses.
const longestLaunch = 5 * time.Minute

// Hold reserves counts addresses, by subnet, for the launch who from now on. Release ends the reservation, and so does another
// Hold of the same launch.
func (a *Addresses) Hold(now time.Time, who string, counts map[string]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		a.held = map[string]holding{}
	}
	a.held[who] = holding{counts, now.Add(longestLaunch)}
}

// Release ends what who holds, if it holds anything. What the launch has taken is noted by Take.
func (a *Addresses) Release(who string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.held, who)
}

// Take notes that a launch at now takes count addresses of the subnet.
func (a *Addresses) Take(now time.Time, subnetID string, count int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken == nil {
		a.taken = map[string][]taking{}
	}
	a.taken[subnetID] = append(a.taken[subnetID], taking{count, now.Add(shown)})
}

// Left returns the subnets with what is free in each at now, less what was taken lately and what is held.
func (a *Addresses) Left(now time.Time, subnets []Subnet) []Subnet {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := map[string]int{}
	for who, h := range a.held {
		if !now.Before(h.until) {
			delete(a.held, who)
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

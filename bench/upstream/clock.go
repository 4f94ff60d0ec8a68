package upstream

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// stopclock is the time in a made-up cluster, as upstream reads it. While upstream works, its work takes as long as it
// really does; while it waits, the cluster's time passes at once.
type stopclock struct {
	clock.Clock // nil: timers and tickers are a fault of this driver, and panic

	advance func(to time.Time) // lets the cluster's time pass
	work    func() float64     // seconds of work so far

	mu      sync.Mutex
	base    time.Time // the cluster's time when the work began, or when it stopped
	from    float64   // of work, when it began
	running bool
	worked  time.Duration // in all, until it stopped last
}

func (c *stopclock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *stopclock) now() time.Time {
	if !c.running {
		return c.base
	}
	return c.base.Add(time.Duration((c.work() - c.from) * float64(time.Second)))
}

func (c *stopclock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After waits: what is to happen in the cluster until then happens before it returns.
func (c *stopclock) After(d time.Duration) <-chan time.Time {
	c.stop()
	c.wait(d)
	c.start()
	out := make(chan time.Time, 1)
	out <- c.Now()
	return out
}

// start lets time run with the work.
func (c *stopclock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.from = true, c.work()
}

// stop ends that; what is due in the cluster by now happens.
func (c *stopclock) stop() {
	now := c.Now()
	c.mu.Lock()
	c.worked += now.Sub(c.base)
	c.running = false
	c.mu.Unlock()
	c.reach(now)
}

// wait lets time pass in the cluster.
func (c *stopclock) wait(d time.Duration) { c.reach(c.Now().Add(d)) }

func (c *stopclock) reach(to time.Time) {
	c.advance(to)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = to
}

// at says what time it is in the cluster while something happens there.
func (c *stopclock) at(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.base = now
	}
}

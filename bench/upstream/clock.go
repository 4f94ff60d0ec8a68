package upstream

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// simulatedClock gives upstream the time of the simulated cluster. While upstream computes, the simulated time advances
// by the time that upstream needs. When upstream waits, the simulated time jumps to the end of the wait.
type simulatedClock struct {
	clock.Clock // nil: any other method, such as those for timers and tickers, panics

	advance func(to time.Time) // advances the simulated time
	work    func() float64     // work of the process so far, in seconds; see Disrupt

	mu      sync.Mutex
	base    time.Time     // the simulated time at the last start or stop
	from    float64       // result of work at the last start
	running bool          // upstream computes: start was called, and stop not yet
	worked  time.Duration // sum of the periods between start and stop; Disruptor.Pass sets it to zero before each pass
}

// Now returns the simulated time.
func (c *simulatedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Now for callers that hold mu.
func (c *simulatedClock) now() time.Time {
	if !c.running {
		return c.base
	}
	return c.base.Add(time.Duration((c.work() - c.from) * float64(time.Second)))
}

// Since returns the simulated time since t.
func (c *simulatedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After advances the simulated time by d, and returns a channel that is ready.
func (c *simulatedClock) After(d time.Duration) <-chan time.Time {
	c.stop()
	c.wait(d)
	c.start()
	out := make(chan time.Time, 1)
	out <- c.Now()
	return out
}

// start makes the simulated time advance while upstream computes.
func (c *simulatedClock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.from = true, c.work()
}

// stop stops the simulated time, and runs the events that are due.
func (c *simulatedClock) stop() {
	now := c.Now()
	c.mu.Lock()
	c.worked += now.Sub(c.base)
	c.running = false
	c.mu.Unlock()
	c.advanceTo(now)
}

func (c *simulatedClock) wait(d time.Duration) { c.advanceTo(c.Now().Add(d)) }

func (c *simulatedClock) advanceTo(to time.Time) {
	c.advance(to)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = to
}

// setTime sets the simulated time to the time of an event of the fleet. It does nothing while upstream computes.
func (c *simulatedClock) setTime(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.base = now
	}
}

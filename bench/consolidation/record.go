package consolidation

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// record is what the looks at a fleet took.
type record struct {
	seconds []float64 // of processor time or real time, whichever was less: other work on the machine counts for nobody
	before  uint64    // bytes of live memory before the first look: what the fleet itself takes
	limit   int64     // bytes that the collector is told of
	peak    uint64    // bytes of live memory and what was not collected yet, at its fullest, beyond that
}

// watch runs f, and returns how long it took.
func (r *record) watch(f func()) time.Duration {
	runtime.GC()
	if r.before == 0 {
		r.before, r.limit = inUse(), taken()+mostBytes/10*9
	}
	defer limited(r.limit)()
	stop, peak := make(chan struct{}), make(chan uint64)
	go follow(stop, peak)
	from := work()
	f()
	took := work() - from
	close(stop)
	if most := <-peak; most > r.before {
		r.peak = max(r.peak, most-r.before)
	}
	r.seconds = append(r.seconds, took)
	return time.Duration(took * float64(time.Second))
}

// taken is how many bytes the program has of the machine.
func taken() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapIdle)
}

// limited tells the collector of that many bytes, as the controller tells it of its memory limit, until what it returns is called. If more is
// needed it is had. It is the same for all looks: a controller's limit does not grow with what it keeps.
func limited(bytes int64) func() {
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}

// longest is the longest look, in seconds.
func (r *record) longest() float64 {
	if len(r.seconds) == 0 {
		return 0
	}
	return slices.Max(r.seconds)
}

// began is when the program did.
var began = time.Now()

// work is how many seconds the program has worked: processor time or real time, whichever has been less so far.
func work() float64 {
	var u syscall.Rusage
	real := time.Since(began).Seconds()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return real
	}
	return min(real, time.Duration(u.Utime.Nano()+u.Stime.Nano()).Seconds())
}

// follow sends the most memory in use that it saw until stop.
func follow(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	most := inUse()
	for {
		select {
		case <-tick.C:
			most = max(most, inUse())
		case <-stop:
			peak <- max(most, inUse())
			return
		}
	}
}

// inUse is what objects take on the heap, dead ones included until they are collected.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

package consolidation

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// record has the measurements of the scans of a fleet.
type record struct {
	seconds  []float64 // duration of each scan: CPU time or real time, whichever was less, to exclude other load
	baseline uint64    // live memory before the first scan, in bytes: the fleet itself
	limit    int64     // memory limit of the garbage collector, in bytes: the fleet's memory plus 90 % of maxBytes
	peak     uint64    // maximum of the memory in use, uncollected garbage included, minus baseline; in bytes
}

// measure runs f, records its duration and peak memory, and returns the duration.
func (r *record) measure(f func()) time.Duration {
	runtime.GC()
	if r.baseline == 0 {
		r.baseline, r.limit = inUse(), obtained()+maxBytes/10*9
	}
	defer setMemoryLimit(r.limit)()
	stop, peak := make(chan struct{}), make(chan uint64)
	go samplePeak(stop, peak)
	start := secondsWorked()
	f()
	took := secondsWorked() - start
	close(stop)
	if highest := <-peak; highest > r.baseline {
		r.peak = max(r.peak, highest-r.baseline)
	}
	r.seconds = append(r.seconds, took)
	return time.Duration(took * float64(time.Second))
}

// obtained returns the memory that the runtime has obtained from the system, minus the idle heap, in bytes.
func obtained() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapIdle)
}

// setMemoryLimit sets the garbage collector's soft memory limit, as the controller does. The returned function restores
// the previous limit. All scans of a fleet have the same limit, because a controller's limit does not grow with its
// data.
func setMemoryLimit(bytes int64) func() {
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}

// longest returns the duration of the longest scan, in seconds.
func (r *record) longest() float64 {
	if len(r.seconds) == 0 {
		return 0
	}
	return slices.Max(r.seconds)
}

var programStart = time.Now()

// secondsWorked returns how many seconds the program has worked since its start: CPU time or real time, whichever is
// less.
func secondsWorked() float64 {
	var u syscall.Rusage
	wall := time.Since(programStart).Seconds()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return wall
	}
	return min(wall, time.Duration(u.Utime.Nano()+u.Stime.Nano()).Seconds())
}

// samplePeak samples the memory in use until stop is closed, and sends the maximum.
func samplePeak(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	highest := inUse()
	for {
		select {
		case <-tick.C:
			highest = max(highest, inUse())
		case <-stop:
			peak <- max(highest, inUse())
			return
		}
	}
}

// inUse returns the size of all heap objects, uncollected garbage included.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

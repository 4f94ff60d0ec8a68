package compare

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// Sample has the measurements of one run.
type Sample struct {
	Seconds   float64 // elapsed real time
	CPU       float64 // seconds of CPU time, of all threads, garbage collection included
	Allocated uint64  // allocated bytes, freed ones included
	Objects   uint64  // number of allocations
	Before    uint64  // memory of the process before the run, in bytes: mostly the input of the plan
	Peak      uint64  // maximum memory of the process during the run, in bytes, input included; 0 if it was not measured
}

const sampleInterval = 5 * time.Millisecond // of Peak

// measure runs f once. It first returns all free memory to the system, so that Peak does not include garbage from
// earlier runs.
func measure(f func()) Sample {
	debug.FreeOSMemory() // also collects garbage
	return run(f)
}

// measureWarm runs f once more and reuses the memory of the previous run, like a long-running controller. It leaves
// out Before and Peak, which would include that memory.
func measureWarm(f func()) Sample {
	runtime.GC()
	s := run(f)
	s.Before, s.Peak = 0, 0
	return s
}

func run(f func()) Sample {
	stop, peak := make(chan struct{}), make(chan uint64)
	initial := resident()
	go samplePeak(stop, peak)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuSeconds(), time.Now()
	f()
	seconds := time.Since(start).Seconds()
	cpu = cpuSeconds() - cpu
	runtime.ReadMemStats(&after)
	close(stop)
	return Sample{
		Seconds: seconds, CPU: cpu, Before: initial, Peak: <-peak,
		Allocated: after.TotalAlloc - before.TotalAlloc, Objects: after.Mallocs - before.Mallocs,
	}
}

// cpuSeconds returns the CPU time of the process in seconds; 0 if the system does not report it.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// samplePeak samples the memory of the process until stop is closed, and sends the maximum.
func samplePeak(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(sampleInterval)
	defer tick.Stop()
	highest := resident()
	for {
		select {
		case <-tick.C:
			highest = max(highest, resident())
		case <-stop:
			peak <- max(highest, resident())
			return
		}
	}
}

// resident returns the memory that the Go runtime has obtained from the system and not released.
func resident() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// median returns the median of each measurement, but the maximum of Before and of Peak.
func median(samples []Sample) Sample {
	var out Sample
	for _, s := range samples {
		out.Before, out.Peak = max(out.Before, s.Before), max(out.Peak, s.Peak)
	}
	out.Seconds = medianOf(samples, func(s Sample) float64 { return s.Seconds })
	out.CPU = medianOf(samples, func(s Sample) float64 { return s.CPU })
	out.Allocated = medianOf(samples, func(s Sample) uint64 { return s.Allocated })
	out.Objects = medianOf(samples, func(s Sample) uint64 { return s.Objects })
	return out
}

func medianOf[N float64 | uint64](samples []Sample, measurement func(Sample) N) N {
	all := make([]N, len(samples))
	for i, s := range samples {
		all[i] = measurement(s)
	}
	slices.Sort(all)
	switch n := len(all); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (all[n/2-1] + all[n/2]) / 2
	default:
		return all[n/2]
	}
}

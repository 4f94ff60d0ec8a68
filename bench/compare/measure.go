package compare

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"
)

// Sample is what one run took.
type Sample struct {
	Seconds   float64
	CPU       float64 // seconds of processor time, of all threads, the garbage collector's included
	Allocated uint64  // bytes, in all
	Objects   uint64  // pieces, in all
	Before    uint64  // bytes that the process had from the system before: mostly what it plans for
	Peak      uint64  // bytes that the process had from the system at its fullest, what it planned for included
}

// samplingEvery is how often memory is looked at during a run.
const samplingEvery = 5 * time.Millisecond

// measure runs f once, in a heap without waste from before. All memory that is free goes back to the system first, so
// that Peak is f's own; f then has to fetch its memory anew.
func measure(f func()) Sample {
	debug.FreeOSMemory() // collects garbage too
	return run(f)
}

// again runs f once more, in the memory of the run before, as a controller does that goes on and on. Peak says nothing.
func again(f func()) Sample {
	runtime.GC()
	s := run(f)
	s.Before, s.Peak = 0, 0
	return s
}

func run(f func()) Sample {
	stop, peak := make(chan struct{}), make(chan uint64)
	held := resident()
	go watch(stop, peak)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := processor(), time.Now()
	f()
	seconds := time.Since(start).Seconds()
	cpu = processor() - cpu
	runtime.ReadMemStats(&after)
	close(stop)
	return Sample{
		Seconds: seconds, CPU: cpu, Before: held, Peak: <-peak,
		Allocated: after.TotalAlloc - before.TotalAlloc, Objects: after.Mallocs - before.Mallocs,
	}
}

// processor is the processor time that the process has had, in seconds; 0 where the system does not say.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// watch sends the most memory that it saw until stop.
func watch(stop <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(samplingEvery)
	defer tick.Stop()
	most := resident()
	for {
		select {
		case <-tick.C:
			most = max(most, resident())
		case <-stop:
			peak <- max(most, resident())
			return
		}
	}
}

// resident is the memory that the Go runtime has from the system and has not given back.
func resident() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// median of the samples by each number for itself; the peak is the highest.
func median(samples []Sample) Sample {
	var out Sample
	for _, s := range samples {
		out.Before, out.Peak = max(out.Before, s.Before), max(out.Peak, s.Peak)
	}
	out.Seconds = middle(samples, func(s Sample) float64 { return s.Seconds })
	out.CPU = middle(samples, func(s Sample) float64 { return s.CPU })
	out.Allocated = middle(samples, func(s Sample) uint64 { return s.Allocated })
	out.Objects = middle(samples, func(s Sample) uint64 { return s.Objects })
	return out
}

// middle is the median of one number; 0 of none.
func middle[N float64 | uint64](samples []Sample, number func(Sample) N) N {
	all := make([]N, len(samples))
	for i, s := range samples {
		all[i] = number(s)
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

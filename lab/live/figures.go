package live

import (
	"cmp"
	"slices"
	"time"
)

// Sample is the state of a run at one time.
type Sample struct {
	At        time.Duration // since the start of the script
	Price     float64       // price of all pending and running instances, in dollars per hour
	Instances int           // number of pending and running instances
	Running   int           // running pods of the workloads
	Pending   int           // pods of the workloads that have not run yet
	CPU       time.Duration // CPU time of the controller since its start
	Memory    int64         // resident memory of the controller, in bytes
}

// Phase has the figures of one phase of a script.
type Phase struct {
	Name      string
	Pods      int           // number of pods that the workloads have at the end
	Done      bool          // all pods ran within phaseLimit
	Begin     time.Duration // from the start of the script
	Took      time.Duration // from the start of the phase until all pods ran, or phaseLimit ended
	Held      time.Duration // from then until the end of the phase
	Price15   float64       // dollars per hour 15 s after all pods ran
	Price     float64       // dollars per hour at the end
	Peak      float64       // highest price in the phase
	Paid      float64       // price over time, in dollars
	Bound     float64       // lower bound on the price for the pods, dollars per hour
	Plan      float64       // price of a fresh plan for the pods, dollars per hour
	Instances int           // number of instances at the end
	Launched  int           // instances launched in the phase
	ShortTerm int           // instances that ended in the phase, within five minutes of their launch
	Restarted int           // pods that the script did not create: replacements of evicted pods
	Waits     Waits         // of the pods that were created in the phase
	CPU       time.Duration // CPU time of the controller
	Memory    int64         // highest resident memory of the controller, in bytes
	AWSCalls  int           // calls to AWS in the phase
	Requests  int           // requests of all clients to the API server in the phase
}

// Waits has the times from the creation of pods until they ran.
type Waits struct {
	Pods               int
	Median, P99, Worst time.Duration
}

func waitsOf(all []time.Duration) Waits {
	if len(all) == 0 {
		return Waits{}
	}
	all = slices.Sorted(slices.Values(all))
	return Waits{Pods: len(all), Median: all[len(all)/2], P99: all[min(len(all)-1, len(all)*99/100)], Worst: all[len(all)-1]}
}

// shortTerm is the age limit of Phase.ShortTerm: the launch of an instance that ends before this age was useless.
const shortTerm = 5 * time.Minute

// paid returns the price over time between two times, in dollars. The price of a sample lasts until the next sample.
func paid(samples []Sample, from, to time.Duration) float64 {
	total := 0.0
	for i, s := range samples {
		end := to
		if i+1 < len(samples) {
			end = min(end, samples[i+1].At)
		}
		if start := max(s.At, from); start < end {
			total += s.Price * (end - start).Hours()
		}
	}
	return total
}

// sampleAt returns the last sample at or before t, or the first sample if all are later.
func sampleAt(samples []Sample, t time.Duration) Sample {
	i, ok := slices.BinarySearchFunc(samples, t, func(s Sample, t time.Duration) int { return cmp.Compare(s.At, t) })
	if !ok {
		i = max(i-1, 0)
	}
	return samples[i]
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[len(all)/2]
}

// worst returns the largest value (lower figures are better), or zero without values.
func worst(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

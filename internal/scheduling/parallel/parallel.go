// Package parallel does pure work on more than one core.
//
// In: functions that change nothing that another one reads.
// Out: the results that they would have one after the other, sooner.
// Never: a result that depends on which function was faster, or work that continues after its caller
// stopped waiting.
//
// Decision packages start goroutines only through it: the results are the same on one core as on many.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Later begins f at once and returns how to get its result, which waits for it. A panic in f
// is raised where the result is asked for, which must be done by every path but one that panics itself.
func Later[T any](f func() T) func() T {
	var result T
	var raised any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { raised = recover() }()
		result = f()
	}()
	return func() T {
		<-done
		if raised != nil {
			panic(raised) //nolint:forbidigo // it is passed on
		}
		return result
	}
}

// Each calls do for each number below n, on all cores, and returns when all of them are done. Which
// number is when and where done must make no difference.
func Each(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var others sync.WaitGroup
	raised := make([]any, workers)
	work := func(w int) {
		defer func() { raised[w] = recover() }()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	for w := range workers - 1 {
		others.Go(func() { work(w + 1) })
	}
	work(0)
	others.Wait()
	for _, r := range raised {
		if r != nil {
			panic(r) //nolint:forbidigo // it is passed on
		}
	}
}

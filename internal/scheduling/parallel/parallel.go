// Package parallel runs pure functions on several cores.
//
// In: functions that do not change data that other functions read.
// Out: the same results as if the functions ran one after the other.
// Never: a result that depends on which function was faster, or work that continues after its caller
// stopped waiting.
//
// Packages that make decisions start goroutines only through this package, so that their decisions do not depend on the
// number of cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Later starts f in a goroutine and returns a function that waits for f and returns the result of f. If f panics, the
// returned function panics with the same value. Every path of the caller must call the returned function, except a path
// that panics.
func Later[T any](f func() T) func() T {
	var result T
	var panicValue any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicValue = recover() }()
		result = f()
	}()
	return func() T {
		<-done
		if panicValue != nil {
			panic(panicValue) //nolint:forbidigo // passes on the panic of f
		}
		return result
	}
}

// Each calls do for each number from 0 to n-1, on all cores, and returns when all calls have returned. The calls run in
// any order, so the order must make no difference. If a call panics, Each panics with the same value.
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
	panicValues := make([]any, workers)
	work := func(w int) {
		defer func() { panicValues[w] = recover() }()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	for w := range workers - 1 {
		others.Go(func() { work(w + 1) })
	}
	work(0)
	others.Wait()
	for _, v := range panicValues {
		if v != nil {
			panic(v) //nolint:forbidigo // passes on the panic of do
		}
	}
}

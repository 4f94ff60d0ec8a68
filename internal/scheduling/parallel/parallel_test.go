package parallel

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestEachDoesAllOnce(t *testing.T) {
	for _, cores := range []int{1, 2, 5} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores)) // sets cores now, and the old number at the end
		for _, n := range []int{0, 1, 2, 3, 1000} {
			done := make([]atomic.Int32, n)
			Each(n, func(i int) { done[i].Add(1) })
			for i := range done {
				if got := done[i].Load(); got != 1 {
					t.Errorf("%d cores: do was called %[4]d times for number %[2]d of %[3]d, want once", cores, i, n, got)
				}
			}
		}
	}
}

func TestEachCallsInParallel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	met := make(chan int)
	Each(2, func(i int) { // each call waits for the other, so calls one after the other would block forever
		select {
		case met <- i:
		case <-met:
		}
	})
}

func TestLaterStartsAtOnce(t *testing.T) {
	value := make(chan int)
	wait := Later(func() int { return <-value })
	value <- 7 // blocks until the function runs, before its result is requested
	for range 2 {
		if got := wait(); got != 7 {
			t.Errorf("got %d, want 7", got)
		}
	}
}

func TestPanicsReachTheCaller(t *testing.T) {
	panicOf := func(f func()) (r any) {
		defer func() { r = recover() }()
		f()
		return nil
	}
	if r := panicOf(func() { Later(func() int { panic("later") })() }); r != "later" {
		t.Errorf("Later: the panic value is %v, want later", r)
	}
	for _, failing := range []int{0, 1, 99} {
		if r := panicOf(func() {
			Each(100, func(i int) {
				if i == failing {
					panic("each")
				}
			})
		}); r != "each" {
			t.Errorf("Each, panic in call %d: the panic value is %v, want each", failing, r)
		}
	}
}

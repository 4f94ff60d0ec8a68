package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/joiner-sh/joiner/interruption"
	"github.com/joiner-sh/joiner/world"
)

// TestCrashWhileInterrupted kills the process after each of its writes in turn, to the API server, to EC2 or to the queue,
// from the notice to the end of the instance, and starts it again with an empty memory. However it dies, the node goes,
// one other is bought in its place, and no message stays.
func TestCrashWhileInterrupted(t *testing.T) {
	t.Parallel()
	writes := interrupted(t, unlimited)
	if writes < 10 {
		t.Fatalf("only %d writes from a notice to the end", writes)
	}
	for n := range writes {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			interrupted(t, n)
		})
	}
}

// interrupted leads one spot node from the notice to its end; the process dies after so many writes. It returns how many
// there were.
func interrupted(t *testing.T, crashAfter int) int {
	t.Helper()
	r := spotNode(t, "t3.medium", "m5.large")
	old, claim := r.instances()[0].ID, r.claims(t)[0].Name
	r.Do(func(w *world.World, now time.Time) { w.Interrupt(now, old) })
	r.fuse.set(crashAfter)
	r.follow(t, claim)
	writes := r.fuse.writes
	if r.isDead() {
		r.restart(t)
		r.heeding(t)
		r.follow(t, claim)
	}
	if i, c := r.instances(), r.claims(t); len(i) != 1 || i[0].ID == old || len(c) != 1 || c[0].Name == claim {
		t.Errorf("left: %d instances, %d claims; want the replacement alone\n%s", len(i), len(c), r.log)
	}
	bought := 0
	r.Do(func(*world.World, time.Time) { bought = len(r.estate.Region.Instances()) })
	if bought != 2 {
		t.Errorf("%d instances were bought in all, want 2\n%s", bought, r.log)
	}
	for range 3 {
		r.ahead += interruption.HiddenTime + time.Second
		r.read(t)
	}
	if n := r.inQueue(t); n != 0 {
		t.Errorf("%d messages are left in the queue", n)
	}
	return writes
}

// follow runs the loops until the claim is gone, or the process is dead. What fails is tried again, as in life.
func (r *rig) follow(t *testing.T, claim string) {
	t.Helper()
	for range 12 {
		messages, _ := r.Interruption.Queue.Receive(t.Context(), 0)
		_ = r.Interruption.pass(t.Context(), messages)
		for range 2 {
			_, _ = r.Interruption.departPass(t.Context())
		}
		r.plan(t)
		_, _ = r.Interruption.departPass(t.Context())
		if r.isDead() {
			return
		}
		r.ahead += r.work(t)
		isThere := false
		for _, c := range r.claims(t) {
			isThere = isThere || c.Name == claim
		}
		if r.isDead() || !isThere {
			return
		}
	}
}

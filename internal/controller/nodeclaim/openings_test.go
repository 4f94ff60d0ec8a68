package nodeclaim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-sh/joiner/internal/node/lifecycle"
)

// TestOpenings: Nodes are opened one after the other, and only after kube-scheduler has tried all pods. Times without a
// unit are nanoseconds after start.
func TestOpenings(t *testing.T) {
	t.Parallel()
	var o openings
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var never time.Time
	ask := func(claim types.UID, attempt, now, want time.Time) {
		t.Helper()
		if got := o.turn(claim, 2, attempt, now); !got.Equal(want) {
			t.Errorf("turn of %s at %s: %s, want %s", claim, now.Sub(start), got.Sub(start), want.Sub(start))
		}
	}
	ask("a", never, at(0), at(0))
	ask("b", never, at(0), at(2*quietTime)) // once for the turn of a, once for b's place
	ask("a", never, at(1), at(1))           // the same turn
	o.done("a", at(5))
	ask("b", never, at(10), at(5+quietTime)) // a was opened a moment ago
	ask("c", never, at(10), at(5+2*quietTime))
	attempt := at(5 + quietTime - 1)                           // just before the Node of b may be opened
	ask("b", attempt, at(5+quietTime), attempt.Add(quietTime)) // kube-scheduler still tries pods
	ask("b", attempt, attempt.Add(quietTime), attempt.Add(quietTime))

	// The turn of b ends even if done is not called, such as for a Node that was deleted.
	late := attempt.Add(quietTime + lifecycle.MaxNominationWait + 1)
	ask("c", never, late, late)
}

// TestOpeningsOfManyPods: if many pods wait, Nodes do not wait for turns.
func TestOpeningsOfManyPods(t *testing.T) {
	t.Parallel()
	var o openings
	now := time.Unix(1000, 0)
	for _, claim := range []types.UID{"a", "b", "c"} { // the pods of a alone are not too many
		if at := o.turn(claim, mostInTurns, now, now); claim != "a" && !at.Equal(now) {
			t.Errorf("the Node of %s waits %s, want no wait", claim, at.Sub(now))
		}
	}
}

package controller

import (
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestMovesHeedPoolsThatWait: moves launch nothing for a pool that waits because its instances do not join. After the pause
// one move is tried as the canary.
func TestMovesHeedPoolsThatWait(t *testing.T) {
	t.Parallel()
	f := newPark(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.slow = true
	until, _ := f.Moves.Holds.Explained(f.now(), "apps",
		poolhealth.Explained{Check: "AUTH-5", Cause: "its role is not mapped", Bought: f.now(), Over: f.now().Add(time.Minute)})
	before := f.text(t)
	for range 3 {
		f.round(t)
	}
	if f.text(t) != before {
		t.Fatalf("something was launched for a pool that waits\n%s\n%s", f.text(t), f.tail())
	}
	f.ahead += until.Sub(f.now())
	f.lead(t)
	if n := counted(t, f.Moves.Metrics.Begun, "Underutilized"); n != 1 {
		t.Fatalf("%d moves were started after the pause, want one\n%s", n, f.tail())
	}
	if until, _ := f.Moves.Holds.Held(f.now(), "apps"); until.IsZero() {
		t.Error("the first instance after the pause is not a canary")
	}
}

// TestOneMachineIsACanary: of the nodes planned after a pause only one is launched for the waiting pool, and all of other
// pools.
func TestOneMachineIsACanary(t *testing.T) {
	t.Parallel()
	var h poolhealth.LaunchBackoff
	now := time.Now()
	until, _ := h.Explained(now, "a", poolhealth.Explained{Check: "AUTH-5", Bought: now, Over: now})
	two := []packing.PlannedNode{{Pool: "a"}, {Pool: "a"}}
	if h.Allows(two[:1], now) || !h.Allows([]packing.PlannedNode{{Pool: "b"}, {Pool: "b"}}, now) || !h.Allows(nil, now) {
		t.Error("it is not pool a alone that waits")
	}
	if h.Allows(two, until) || !h.Allows(two[:1], until) || h.Allows(two[:1], until) {
		t.Error("after the pause, not exactly one instance is launched")
	}
}

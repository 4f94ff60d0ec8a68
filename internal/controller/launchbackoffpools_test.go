package controller

import (
	"testing"
	"time"

	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestMovesWaitForLaunchBackoff: moves launch nothing for a pool that waits because its instances do not join. After
// the pause, one move is started, and its replacement is the canary.
func TestMovesWaitForLaunchBackoff(t *testing.T) {
	t.Parallel()
	f := newReplicaRig(t, 1, "6500m", "900m", "m5.2xlarge", "t3.medium")
	f.noJoin = true
	until, _ := f.Moves.LaunchBackoff.RecordCause(f.now(), "apps",
		poolhealth.KnownCause{Check: "AUTH-5", Cause: "its role is not mapped", LaunchedAt: f.now(), EndsAt: f.now().Add(time.Minute)})
	before := f.describe(t)
	for range 3 {
		f.round(t)
	}
	if f.describe(t) != before {
		t.Fatalf("a node, claim or pod has changed although the pool waits\n%s\n%s", f.describe(t), f.tail())
	}
	f.ahead += until.Sub(f.now())
	f.runDisruption(t)
	if n := metricCount(t, f.Moves.Metrics.Started, "Underutilized"); n != 1 {
		t.Fatalf("%d moves were started after the pause, want one\n%s", n, f.tail())
	}
	if until, _ := f.Moves.LaunchBackoff.Held(f.now(), "apps"); until.IsZero() {
		t.Error("the pool is not held after the first launch, which must be a canary")
	}
}

// TestCanaryIsOneNode: after the pause of a pool, only one planned node of the pool may be launched. Planned nodes of
// other pools are not affected.
func TestCanaryIsOneNode(t *testing.T) {
	t.Parallel()
	var h poolhealth.LaunchBackoff
	now := time.Now()
	until, _ := h.RecordCause(now, "a", poolhealth.KnownCause{Check: "AUTH-5", LaunchedAt: now, EndsAt: now})
	planned := []packing.PlannedNode{{Pool: "a"}, {Pool: "a"}}
	if h.Admit(planned[:1], now) || !h.Admit([]packing.PlannedNode{{Pool: "b"}, {Pool: "b"}}, now) || !h.Admit(nil, now) {
		t.Error("pool a must wait, and no other pool")
	}
	if h.Admit(planned, until) || !h.Admit(planned[:1], until) || h.Admit(planned[:1], until) {
		t.Error("after the pause, exactly one node of pool a must be admitted")
	}
}

package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/disruption"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// idleRig returns a rig with one empty node, which may be removed at once.
func idleRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.reconcileClassAndPool(t)
	r.addPendingPod(t, "web", "500m", "512Mi")
	r.plan(t)
	r.reconcileClaims(t)
	r.join(t)
	r.reconcileClaims(t)
	r.bind(t)
	if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return r
}

// isEmptyNodeDeleted reports whether the loop that deletes empty nodes deletes the only node within a minute.
func (r *rig) isEmptyNodeDeleted(t *testing.T) bool {
	t.Helper()
	r.ahead += time.Minute
	r.removeEmptyNodes(t)
	claims := r.claims(t)
	return len(claims) == 0 || claims[0].DeletionTimestamp != nil
}

func TestPauseHoldsAllPools(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	pause := kubeclient.PauseSwitch{Live: r.api, Writer: r.api, Namespace: "kube-system"}
	for _, value := range []string{"true", "whatever", r.now().Add(2 * time.Hour).Format(time.RFC3339)} {
		if err := pause.Write(t.Context(), value); err != nil {
			t.Fatal(err)
		}
		if r.isEmptyNodeDeleted(t) {
			t.Fatalf("the ConfigMap has the value %q, but the node is deleted", value)
		}
	}
	if !strings.Contains(r.log.String(), `"by":"ConfigMap kube-system/joiner"`) {
		t.Errorf("the log does not name the ConfigMap: %s", r.log)
	}
	r.ahead += 2 * time.Hour // the end of the last pause has passed
	if !r.isEmptyNodeDeleted(t) {
		t.Error("the pause is over, but the node stays")
	}
}

func TestPauseHoldsOnePool(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	annotate := func(value string) {
		var pools karpv1.NodePoolList
		if err := r.api.List(t.Context(), &pools); err != nil {
			t.Fatal(err)
		}
		pool := &pools.Items[0]
		pool.Annotations = map[string]string{karpv1.AnnotationPaused: value}
		if err := r.api.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	annotate("true")
	if r.isEmptyNodeDeleted(t) {
		t.Fatal("the pool is paused, but the node is deleted")
	}
	annotate("false")
	if !r.isEmptyNodeDeleted(t) {
		t.Error("the pool is no longer paused, but the node stays")
	}
}

func TestAnnotatedClaimIsKept(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	annotate := func(value string) {
		claim := r.claims(t)[0]
		claim.Annotations[karpv1.AnnotationDoNotDisrupt] = value
		if err := r.api.Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
	}
	annotate("true")
	if r.isEmptyNodeDeleted(t) {
		t.Fatal("the claim has do-not-disrupt, but the node is deleted")
	}
	annotate("1h") // valid only on pods
	if !r.isEmptyNodeDeleted(t) {
		t.Error("the annotation is not valid on claims, but the node stays")
	}
}

type fakeSwitch struct {
	value    string
	isBroken bool // Read fails
}

func (s *fakeSwitch) String() string { return "the fake switch" }

func (s *fakeSwitch) Read(context.Context) (string, error) {
	if s.isBroken {
		return "", errors.New("unreachable")
	}
	return s.value, nil
}

// TestBrokenSwitchPauses: if the switch cannot be read for a minute, or was never read, disruption is paused.
func TestBrokenSwitchPauses(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	s := &fakeSwitch{value: "false"}
	p := &loop.Pauses{Switch: s, Log: slog.New(slog.NewJSONHandler(log, nil))}
	now := policyTime
	isPaused := func() bool { return p.Current(t.Context(), now).By != "" }
	if isPaused() || log.Len() > 0 {
		t.Fatalf("the value false pauses, or something is logged: %s", log)
	}
	s.isBroken = true
	now = now.Add(30 * time.Second)
	if isPaused() {
		t.Error("half a minute without a read pauses")
	}
	now = now.Add(31 * time.Second)
	if !isPaused() || !strings.Contains(log.String(), "unreachable") {
		t.Errorf("a minute without a read does not pause, or the error is not logged: %s", log)
	}
	s.isBroken = false
	now = now.Add(loop.PauseReadInterval)
	if isPaused() {
		t.Error("disruption is still paused after the switch was read")
	}
	neverRead := &loop.Pauses{Switch: &fakeSwitch{isBroken: true}, Log: p.Log}
	if neverRead.Current(t.Context(), now).By == "" {
		t.Error("a switch that was never read does not pause")
	}
}

// TestLongerPauseCounts: a pool is paused by its annotation or by the global pause, whichever ends later.
func TestLongerPauseCounts(t *testing.T) {
	t.Parallel()
	after := func(hours int) time.Time { // 0: no end
		if hours == 0 {
			return time.Time{}
		}
		return policyTime.Add(time.Duration(hours) * time.Hour)
	}
	for _, c := range []struct {
		pool, all int // hours until the end of the pause; 0: no end
		want      string
	}{
		{1, 2, "all"}, {2, 1, "pool"},
		{0, 1, "pool"}, {1, 0, "all"}, {0, 0, "pool"},
	} {
		got := loop.PauseState{By: "all", Until: after(c.all)}.ApplyTo(disruption.Policy{Paused: "pool", PausedUntil: after(c.pool)})
		if got.Paused != c.want {
			t.Errorf("pool %d h, all %d h: paused by %s, want %s", c.pool, c.all, got.Paused, c.want)
		}
	}
	if got := (loop.PauseState{}).ApplyTo(disruption.Policy{}); got.Paused != "" {
		t.Errorf("without a pause, the policy is paused: %+v", got)
	}
}

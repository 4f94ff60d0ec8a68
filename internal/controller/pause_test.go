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

// idleRig has one empty node of the pool, which may be removed at once.
func idleRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "t3.medium")
	r.classes(t)
	r.pending(t, "web", "500m", "512Mi")
	r.plan(t)
	r.work(t)
	r.join(t)
	r.work(t)
	r.bind(t)
	if err := r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return r
}

// leaving reports whether the loop deletes the only node.
func (r *rig) leaving(t *testing.T) bool {
	t.Helper()
	r.ahead += time.Minute
	r.empty(t)
	claims := r.claims(t)
	return len(claims) == 0 || claims[0].DeletionTimestamp != nil
}

func TestPauseHoldsAllPools(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	lever := kubeclient.PauseSwitch{Live: r.api, Writer: r.api, Namespace: "kube-system"}
	for _, value := range []string{"true", "whatever", r.now().Add(2 * time.Hour).Format(time.RFC3339)} {
		if err := lever.Write(t.Context(), value); err != nil {
			t.Fatal(err)
		}
		if r.leaving(t) {
			t.Fatalf("paused by %q, but the node is deleted", value)
		}
	}
	if !strings.Contains(r.log.String(), `"by":"ConfigMap kube-system/joiner"`) {
		t.Errorf("the log does not report who paused: %s", r.log)
	}
	r.ahead += 2 * time.Hour // the last pause has ended
	if !r.leaving(t) {
		t.Error("the pause is over, but the node stays")
	}
}

func TestPauseHoldsOnePool(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	note := func(value string) {
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
	note("true")
	if r.leaving(t) {
		t.Fatal("its pool is paused, but the node is deleted")
	}
	note("false")
	if !r.leaving(t) {
		t.Error("its pool is not paused any more, but the node stays")
	}
}

func TestAnnotatedClaimIsKept(t *testing.T) {
	t.Parallel()
	r := idleRig(t)
	note := func(value string) {
		claim := r.claims(t)[0]
		claim.Annotations[karpv1.AnnotationDoNotDisrupt] = value
		if err := r.api.Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
	}
	note("true")
	if r.leaving(t) {
		t.Fatal("its claim has do-not-disrupt, but the node is deleted")
	}
	note("1h") // valid only on pods
	if !r.leaving(t) {
		t.Error("no annotation keeps the node any more, but it stays")
	}
}

// lever is a pause switch that can fail.
type lever struct {
	value  string
	broken bool
}

func (l *lever) String() string { return "the lever" }

func (l *lever) Read(context.Context) (string, error) {
	if l.broken {
		return "", errors.New("no way")
	}
	return l.value, nil
}

func TestBrokenSwitchPausesInTheEnd(t *testing.T) {
	t.Parallel()
	log := &bytes.Buffer{}
	l := &lever{value: "false"}
	p := &loop.Pauses{Switch: l, Log: slog.New(slog.NewJSONHandler(log, nil))}
	now := policyTime
	isPaused := func() bool { return p.Current(t.Context(), now).By != "" }
	if isPaused() || log.Len() > 0 {
		t.Fatalf("not paused: %s", log)
	}
	l.broken = true
	now = now.Add(30 * time.Second)
	if isPaused() {
		t.Error("half a minute without an answer pauses")
	}
	now = now.Add(31 * time.Second)
	if !isPaused() || !strings.Contains(log.String(), "no way") {
		t.Errorf("a minute without an answer does not pause, or it is not logged: %s", log)
	}
	l.broken = false
	now = now.Add(loop.PausesEvery)
	if isPaused() {
		t.Error("the switch can be read, and still pauses")
	}
	if broken := (&loop.Pauses{Switch: &lever{broken: true}, Log: p.Log}).Current(t.Context(), now); broken.By == "" {
		t.Error("a switch that was never read does not pause")
	}
}

func TestLongerPauseCounts(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time {
		if hours == 0 {
			return time.Time{}
		}
		return policyTime.Add(time.Duration(hours) * time.Hour)
	}
	for _, c := range []struct {
		pool, all int // hours until the end of the pause; 0: no end
		want      string
	}{{1, 2, "all"}, {2, 1, "pool"}, {0, 1, "pool"}, {1, 0, "all"}, {0, 0, "pool"}} {
		got := loop.PauseState{By: "all", Until: at(c.all)}.Over(disruption.Policy{Paused: "pool", PausedUntil: at(c.pool)})
		if got.Paused != c.want {
			t.Errorf("pool %d h, all %d h: paused by %s, want %s", c.pool, c.all, got.Paused, c.want)
		}
	}
	if got := (loop.PauseState{}).Over(disruption.Policy{}); got.Paused != "" {
		t.Errorf("not paused: %+v", got)
	}
}

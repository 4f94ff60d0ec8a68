package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/disruption"
)

// TestUsualJoin: MedianJoinTime is the median time from creation to initialization.
func TestUsualJoin(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	initialized := func(took time.Duration) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		c.StatusConditions().SetTrue(created.Add(took), karpv1.ConditionInitialized)
		return c
	}
	notReady := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
	notReady.StatusConditions().SetUnknown(created.Add(time.Hour), karpv1.ConditionInitialized, karpv1.ReasonNodeNotReady, "")
	for name, c := range map[string]struct {
		claims []*karpv1.NodeClaim
		want   time.Duration
	}{
		"no NodeClaim":  {nil, loop.DefaultJoinTime},
		"none is ready": {[]*karpv1.NodeClaim{notReady}, loop.DefaultJoinTime},
		"one outlier": {[]*karpv1.NodeClaim{initialized(50 * time.Minute), initialized(40 * time.Second),
			initialized(50 * time.Second), notReady}, 50 * time.Second},
		"a negative duration": {[]*karpv1.NodeClaim{initialized(-time.Hour)}, loop.DefaultJoinTime},
		"one claim":           {[]*karpv1.NodeClaim{initialized(time.Minute)}, time.Minute},
	} {
		if got := loop.MedianJoinTime(c.claims); got != c.want {
			t.Errorf("%s: the median is %s, want %s", name, got, c.want)
		}
	}
}

func TestMoveSummary(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]nodestate.MoveMark{
		"Underutilized: 3 nodes are replaced by 1, which saves $0.1230 an hour, pays back within 4m10s and moves 12 pods": {
			Reason: disruption.Underutilized, Nodes: 3, Claims: 1, Pods: 12, Saving: 0.123, PaybackSeconds: 250},
		"Underutilized: 1 node is replaced by 0, which saves $0.0500 an hour and moves 1 pod": {
			Reason: disruption.Underutilized, Nodes: 1, Pods: 1, Saving: 0.05},
		"Drifted: 1 node is replaced by 1 and moves 2 pods": {
			Reason: disruption.Drifted, Nodes: 1, Claims: 1, Pods: 2},
	} {
		if got := m.Summary(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

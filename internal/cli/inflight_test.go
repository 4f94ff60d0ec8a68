package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/cli/output"
	"github.com/joiner-sh/joiner/internal/kube/snapshot"
	"github.com/joiner-sh/joiner/internal/model/cluster"
	"github.com/joiner-sh/joiner/internal/scheduling/packing"
)

// TestPodsInFlight: unplanned pods are listed with the NodeClaims that are being launched for them.
func TestPodsInFlight(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	claim := func(name string, age time.Duration, conditions ...string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: now.Add(-age)},
			Labels: map[string]string{karpv1.LabelNodePool: "web"}}}
		for _, condition := range conditions {
			c.StatusConditions().SetTrue(now, condition)
		}
		return c
	}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}}
	}
	o := snapshot.Objects{
		Pods: []*corev1.Pod{pod("b"), pod("a"), pod("planned")},
		Claims: []*karpv1.NodeClaim{
			claim("web-new", 3*time.Second), claim("web-old", 45*time.Second, karpv1.ConditionLaunched),
			claim("web-ready", time.Hour, karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized),
		},
	}
	s := cluster.Snapshot{Pods: []cluster.Pod{{Namespace: "shop", Name: "planned"}}}
	text := output.Summary(packing.Plan{}, 0, output.Context{InFlight: inFlight(o, s, now)}, 0)
	if want := "2 pods wait for 2 NodeClaims on their way: web-old (Launched, 45s old), web-new (Created, 3s old).\n"; !strings.Contains(text, want) {
		t.Errorf("summary\n%s\nwant\n%s", text, want)
	}
	o.Claims = o.Claims[2:] // only web-ready
	if got := inFlight(o, s, now); got != nil {
		t.Errorf("without NodeClaims that are being launched: %+v, want nil", got)
	}
}

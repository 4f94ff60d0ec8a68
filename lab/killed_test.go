package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/lab"
)

// TestControllerStaysDead kills the controller. Two minutes after the Lease has expired, the missing controller must be
// the first finding of joiner doctor. After the controller is started again, joiner doctor must report no finding.
func TestControllerStaysDead(t *testing.T) {
	l := parallelLab(t, lab.Options{})
	name, joiner := newTestNamespace(t, l), program(t)
	restartController(t, l, "DISABLE_LEADER_ELECTION=false")
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"))
	awaitPoolReady(t, l, name)
	killController(l)
	apply(t, l, deployment(name, "web", 1, "250m", "256Mi", "test: "+name))
	within(t, l, 4*time.Minute, "two minutes since the Lease expired and since the pod was created", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		lease, err := l.Kube.CoordinationV1().Leases("kube-system").Get(ctx, "karpenter-leader-election", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		expiry := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
		return len(pods.Items) == 1 && time.Since(pods.Items[0].CreationTimestamp.Time) > 2*time.Minute &&
			time.Since(expiry) > 2*time.Minute, nil
	})
	within(t, l, time.Minute, "joiner doctor to report the missing controller", func(ctx context.Context) (bool, error) {
		first, err := firstFinding(ctx, l, joiner)
		if err == nil && first.Check != "RUN-1" {
			err = fmt.Errorf("the first finding is %+v", first)
		}
		return err == nil && first.Verdict == "broken" && strings.Contains(first.Cause, "no controller has been active since"), err
	})
	restartController(t, l, "DISABLE_LEADER_ELECTION=false")
	within(t, l, 2*time.Minute, "joiner doctor to report no finding", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("joiner doctor printed:\n%s", printed)
		}
		return code == 0, err
	})
}

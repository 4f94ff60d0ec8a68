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

// TestControllerStaysDead kills the controller and does not start it again. joiner doctor must report that first, once
// no replica can still take the Lease, and must not report it while another replica is active.
func TestControllerStaysDead(t *testing.T) {
	l := beside(t, lab.Options{})
	name, joiner := namespaced(t, l), program(t)
	restart(t, l, "DISABLE_LEADER_ELECTION=false")
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}"))
	poolReady(t, l, name)
	killController(l)
	apply(t, l, deployment(name, "web", 1, "250m", "256Mi", "test: "+name))
	within(t, l, 4*time.Minute, "two minutes to pass since the lease ended, and since the pod came", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		lease, err := l.Kube.CoordinationV1().Leases("kube-system").Get(ctx, "karpenter-leader-election", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ended := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
		return len(pods.Items) == 1 && time.Since(pods.Items[0].CreationTimestamp.Time) > 2*time.Minute && time.Since(ended) > 2*time.Minute, nil
	})
	within(t, l, time.Minute, "joiner doctor to report the missing controller", func(ctx context.Context) (bool, error) {
		first, err := firstFinding(ctx, l, joiner)
		if err == nil && first.Check != "RUN-1" {
			err = fmt.Errorf("the first finding is %+v", first)
		}
		return err == nil && first.Verdict == "broken" && strings.Contains(first.Cause, "no controller has been active since"), err
	})
	restart(t, l, "DISABLE_LEADER_ELECTION=false")
	within(t, l, 2*time.Minute, "joiner doctor to report no finding", func(ctx context.Context) (bool, error) {
		printed, code, err := l.Doctor(ctx, joiner)
		if err == nil && code != 0 {
			err = fmt.Errorf("it printed:\n%s", printed)
		}
		return code == 0, err
	})
}

package nodeclass

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
	karpv1 "github.com/joiner-sh/joiner/api/karpenter/v1"
	"github.com/joiner-sh/joiner/internal/controller/loop"
	"github.com/joiner-sh/joiner/internal/controller/nodestate"
	"github.com/joiner-sh/joiner/internal/controller/offerings"
	"github.com/joiner-sh/joiner/internal/controller/poolhealth"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
)

// reasonPreflightPending is the reason of conditions while the preflight checks of a node class have no result yet.
const reasonPreflightPending = "PreflightPending"

// DisprovedAfter is the time after a finding at which a node that is still Ready disproves the finding. A node that can
// no longer join would have lost its credentials and its lease by then.
const DisprovedAfter = 20 * time.Minute

// checkPreflight applies the findings of the preflight checks: whether nodes of the class can join, before the first
// launch.
func (n *Reconciler) checkPreflight(ctx context.Context, class *awsv1.EC2NodeClass, f *resolvedClass) {
	if n.Diagnoses == nil || f.preflight.Mode == awsv1.PreflightOff || f.preflight.Mode == "" {
		return
	}
	now := n.Diagnoses.Now.Now()
	findings, isCovered, mayUse := n.Diagnoses.PreflightFindings(class, now)
	enforces := f.preflight.Mode == awsv1.PreflightEnforce && f.problem.Reason == ""
	switch {
	case !isCovered && enforces:
		f.waitForReport(class, mayUse)
		return
	case !isCovered || len(findings) == 0:
		return
	}
	f.preflight.JoinFindings = findings
	since := now // when the finding was first reported
	if current, ok := class.StatusConditions().Find(awsv1.ConditionPreflightPassed); ok &&
		current.Reason == poolhealth.ReasonOfCheck(findings[0].Check) {
		since = current.LastTransitionTime.Time
	}
	if enforces && !n.isDisproved(ctx, class.Name, since, now) {
		f.problem = offerings.Problem{Reason: poolhealth.ReasonOfCheck(findings[0].Check), Message: loop.FindingText(findings[0])}
	}
}

// waitForReport is called while no preflight report covers the class. It keeps the finding of an earlier report on this
// generation of the class. Without one, it marks the class as pending, unless the class is ready or mayUse is true.
func (f *resolvedClass) waitForReport(class *awsv1.EC2NodeClass, mayUse bool) {
	conditions := class.StatusConditions()
	last, ok := conditions.Find(awsv1.ConditionValidationSucceeded)
	switch {
	case ok && last.Status == metav1.ConditionFalse && poolhealth.IsOfCheck(last) && last.ObservedGeneration == class.Generation:
		f.problem = offerings.Problem{Reason: last.Reason, Message: last.Message}
	case !mayUse && !conditions.IsReady():
		f.pending = true
	}
}

// isDisproved reports whether nodes of the class disprove a finding made at since: a node has joined after since, or a
// node is still Ready DisprovedAfter later.
func (n *Reconciler) isDisproved(ctx context.Context, class string, since, now time.Time) bool {
	var claims karpv1.NodeClaimList
	if err := n.Cache.List(ctx, &claims, client.MatchingFields{kubeclient.IndexClaimClass: class}, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	for i := range claims.Items {
		joined, _ := claims.Items[i].StatusConditions().Find(karpv1.ConditionRegistered)
		if joined.Status != metav1.ConditionTrue || !nodestate.IsServed(claims.Items[i].Spec.NodeClassRef) {
			continue
		}
		if joined.LastTransitionTime.After(since.Add(time.Second)) { // conditions have a resolution of one second
			return true
		}
		node := &corev1.Node{}
		err := n.Cache.Get(ctx, client.ObjectKey{Name: claims.Items[i].Status.NodeName}, node)
		if err == nil && nodestate.IsReady(node) && !now.Before(since.Add(DisprovedAfter)) {
			return true
		}
	}
	return false
}

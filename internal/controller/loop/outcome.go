package loop

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/kube/kubeclient"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// Outcome describes how the reconciliation of an object ended.
type Outcome struct {
	Loop, Kind, Name string    // the loop in metrics, and the kind and name of the object
	Until            time.Time // when to reconcile again; zero: when something changes
	Err              error     // error of the reconciliation; nil if it succeeded

	Failures *Backoff         // back-off by object name
	Metrics  *metrics.Metrics // the metrics of this process
	Log      *slog.Logger     // the log of this process
	Now      Clock            // the clock; nil uses time.Now
}

// Clock returns the current time; nil means time.Now.
type Clock func() time.Time

// Now returns the time of the clock, or the system time for a nil clock.
func (c Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

// An object that another client changed during its reconciliation is reconciled again after rereadAfter. An object that
// needs a fix by the user is reconciled again after userFixAfter.
const (
	rereadAfter  = 50 * time.Millisecond
	userFixAfter = time.Minute
)

// ResultOf returns, for controller-runtime, when to reconcile again. Its error is always nil: ResultOf logs o.Err, once
// for each cause, and uses the back-off in o.Failures, not controller-runtime's.
func ResultOf(o Outcome) (reconcile.Result, error) {
	if o.Err == nil {
		o.Failures.Clear(o.Name)
		if o.Until.IsZero() {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{RequeueAfter: max(o.Until.Sub(o.Now.Now()), time.Millisecond)}, nil
	}
	if errors.Is(o.Err, context.Canceled) {
		return reconcile.Result{}, nil // the controller is shutting down
	}
	next, hint := ClassifyError(o.Err)
	switch next {
	case kubeclient.Reread, kubeclient.Gone:
		return reconcile.Result{RequeueAfter: rereadAfter}, nil
	case kubeclient.NoError, kubeclient.Retry, kubeclient.ReportToUser, kubeclient.Reject:
	}
	o.Metrics.Failures.WithLabelValues(o.Loop, string(next)).Inc()
	now := o.Now.Now()
	until, isNews := o.Failures.Fail(now, o.Name, awserr.StableText(o.Err))
	if isNews {
		o.Log.Error("cannot reconcile "+o.Kind, o.Kind, o.Name, "error", o.Err.Error(), "hint", hint, "next", string(next))
	}
	wait := until.Sub(now)
	if next != kubeclient.Retry {
		wait = userFixAfter
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// ClassifyError returns how to continue after an error of AWS or the API server, and a hint that helps the user fix the
// error.
func ClassifyError(err error) (kubeclient.NextStep, string) {
	var aws *awserr.Error
	if !errors.As(err, &aws) {
		return kubeclient.Classify(err), kubeclient.Hint(err)
	}
	switch aws.Kind {
	case awserr.Denied, awserr.Misconfigured, awserr.Refused, awserr.Unknown:
		return kubeclient.ReportToUser, aws.Hint
	default:
	}
	// awserr.Gone is retried too, because AWS may return a new object only after a delay. A caller to which Gone means
	// something else handles it before it calls ClassifyError.
	return kubeclient.Retry, aws.Hint
}

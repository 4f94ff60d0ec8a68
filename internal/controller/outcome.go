package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
	"github.com/joiner-sh/joiner/internal/kube"
	"github.com/joiner-sh/joiner/internal/metrics"
)

// outcomeOf is the result of reconciling an object.
type outcomeOf struct {
	loop, kind, name string
	until            time.Time // when to reconcile again; zero: when something changes
	err              error

	failures *Backoff
	metrics  *metrics.Metrics
	log      *slog.Logger
	now      Clock
}

// Clock returns the current time; nil means time.Now.
type Clock func() time.Time

func (c Clock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

// How soon an object is visited again that somebody else changed in the meantime, and one that nobody but a person can help.
const (
	rereadAfter = 50 * time.Millisecond
	tellAfter   = time.Minute
)

// outcome returns when to reconcile again. Its error is always nil: errors are logged here, once for each cause, and
// retried with a back-off of our own.
func outcome(o outcomeOf) (reconcile.Result, error) {
	if o.err == nil {
		o.failures.Clear(o.name)
		if o.until.IsZero() {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{RequeueAfter: max(o.until.Sub(o.now.now()), time.Millisecond)}, nil
	}
	if errors.Is(o.err, context.Canceled) {
		return reconcile.Result{}, nil // the controller is shutting down
	}
	next, hint := sortError(o.err)
	switch next {
	case kube.Reread, kube.Gone:
		return reconcile.Result{RequeueAfter: rereadAfter}, nil
	}
	o.metrics.Failures.WithLabelValues(o.loop, string(next)).Inc()
	now := o.now.now()
	until, isNews := o.failures.Fail(now, o.name, awserr.Lasting(o.err))
	if isNews {
		o.log.Error("cannot go on with "+o.kind, o.kind, o.name, "error", o.err.Error(), "hint", hint, "next", string(next))
	}
	wait := until.Sub(now)
	if next != kube.Retry {
		wait = tellAfter
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// sortError returns how to continue after an error of AWS or the API server, and a hint for the user.
func sortError(err error) (kube.Next, string) {
	var aws *awserr.Error
	if !errors.As(err, &aws) {
		return kube.WhatNext(err), kube.Hint(err)
	}
	switch aws.Kind {
	case awserr.Denied, awserr.Misconfigured, awserr.Refused, awserr.Unknown:
		return kube.Tell, aws.Hint
	}
	// This includes Gone: callers for which it matters handle it, and what AWS does not show yet appears later.
	return kube.Retry, aws.Hint
}

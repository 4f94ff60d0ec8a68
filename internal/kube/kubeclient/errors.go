package kubeclient

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Next says what to do after a call to the API server. It is a closed set.
type Next string

// What can be next.
const (
	GoOn   Next = "GoOn"   // there was no error
	Reread Next = "Reread" // another client changed the object: read it and decide again
	Retry  Next = "Retry"  // the server or the way to it has a problem: the same call again, with back-off
	Gone   Next = "Gone"   // the object does not exist any more: for a removal that is success
	Tell   Next = "Tell"   // forbidden, or a kind is not installed: a retry helps only after a change by the user
	Reject Next = "Reject" // the server refuses the object as it is: the same call can never succeed
)

// WhatNext sorts an error of this package, or of a client of the API server, by
// what to do next. It is the one place where Joiner looks into such errors.
func WhatNext(err error) Next {
	switch {
	case err == nil:
		return GoOn
	case errors.Is(err, ErrStale):
		return Reread
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Retry
	case meta.IsNoMatchError(err):
		return Tell
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		return Gone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return Reread
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Tell
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		return Reject
	}
	// What is left is too many requests, time-outs, 5xx and broken connections.
	return Retry
}

// ErrStale is wrapped by errors of calls that were not made because their input changed since it was read.
var ErrStale = errors.New("the decision rests on what is no longer so")

// IsForbidden reports whether the API server knows who asks, and does not let them. A proxy that refuses says nothing, or shows a page.
func IsForbidden(err error) bool {
	return apierrors.IsForbidden(err) && said(err) != "" && !strings.HasPrefix(said(err), "<")
}

// IsUndiscovered reports whether the API server does not say which kinds of objects there are to who asks. client-go does not read why
// when it asks for the kinds.
func IsUndiscovered(err error) bool { return apierrors.IsForbidden(err) && said(err) == "unknown" }

// said is the message of an answer of the API server; empty if it has none.
func said(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Message
}

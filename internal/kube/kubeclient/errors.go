package kubeclient

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// NextStep is the caller's next step after a call to the API server, one of the constants below.
type NextStep string

// The next steps.
const (
	NoError      NextStep = "GoOn"   // there was no error
	Reread       NextStep = "Reread" // another client changed the object: read it and decide again
	Retry        NextStep = "Retry"  // the server or the network has a problem: repeat the same call, with back-off
	Gone         NextStep = "Gone"   // the object does not exist any more: a deletion has succeeded
	ReportToUser NextStep = "Tell"   // report to the user, who must change something first: a permission, or a missing CRD
	Reject       NextStep = "Reject" // the server rejects the object: the same call can never succeed
)

// Classify returns the next step after an error of this package or of a client of the API server. All code of Joiner
// classifies such errors with Classify.
func Classify(err error) NextStep {
	switch {
	case err == nil:
		return NoError
	case errors.Is(err, ErrStale):
		return Reread
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Retry
	case meta.IsNoMatchError(err):
		return ReportToUser
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		return Gone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return Reread
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ReportToUser
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		return Reject
	}
	// Remaining: too many requests, time-outs, 5xx and broken connections.
	return Retry
}

// ErrStale is wrapped by errors of calls that were not made because their input changed since it was read.
var ErrStale = errors.New("the decision is based on stale state")

// IsForbidden reports whether the API server has identified the client and refuses the request. It is false for a 403
// without a message or with an HTML page, which comes from a proxy.
func IsForbidden(err error) bool {
	return apierrors.IsForbidden(err) && serverMessage(err) != "" && !strings.HasPrefix(serverMessage(err), "<")
}

// IsUndiscovered reports whether the API server refuses to list its kinds to the client. client-go replaces the message
// of a refused discovery request by "unknown".
func IsUndiscovered(err error) bool {
	return apierrors.IsForbidden(err) && serverMessage(err) == "unknown"
}

func serverMessage(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return status.Status().Message
}

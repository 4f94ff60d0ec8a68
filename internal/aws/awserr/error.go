// Package awserr classifies errors of AWS by what the caller does next.
//
// In: an error of the AWS SDK, or a code and a message out of a response.
// Out: an Error with a Kind, a reason for a condition, and a hint for the user.
// Never: a call to AWS, a retry, or a decision about a node.
package awserr

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the reaction that an error requires of the caller.
type Kind string

// The kinds.
const (
	// Denied: the credentials are missing, expired or lack the permission. Report it; retry rarely.
	Denied Kind = "Denied"
	// Misconfigured: the request cannot succeed until the user changes the object from which it was made, for example
	// the EC2NodeClass. Report it; retry rarely.
	Misconfigured Kind = "Misconfigured"
	// Throttled: too many calls. Retry later, and less often.
	Throttled Kind = "Throttled"
	// Transient: EC2 or the network failed, or a resource that was just created is not visible yet. Retry soon.
	Transient Kind = "Transient"
	// Shortage: EC2 has no capacity for this request, or the account's quota is exhausted. Request something else.
	Shortage Kind = "Shortage"
	// InDoubt: an earlier call with the same client token had other parameters, so this answer does not report what
	// that call created. List the resources before trying again.
	InDoubt Kind = "InDoubt"
	// Gone: the resource does not exist. A caller that deletes it treats this as success.
	Gone Kind = "Gone"
	// Refused: Joiner refused the change, because the resource does not belong to this cluster.
	Refused Kind = "Refused"
	// Canceled: the caller stopped waiting. Do not report it.
	Canceled Kind = "Canceled"
	// Unknown: none of the other kinds, and no error code of AWS. Treat it as Misconfigured, and show it unchanged.
	Unknown Kind = "Unknown"
)

// rank returns the rank of a kind for MostSpecific: 0 for the kind that is most specific about the user's next step.
func rank(k Kind) int {
	switch k {
	case Denied:
		return 0
	case Misconfigured:
		return 1
	case Unknown:
		return 2
	case Throttled:
		return 3
	case Transient:
		return 4
	case InDoubt:
		return 5
	case Shortage, Gone, Refused, Canceled:
	}
	return 6
}

// Error is a classified error of AWS. Callers get it with errors.As or Of.
type Error struct {
	Op        string // failed operation: "CreateFleet"
	Kind      Kind   // what the caller does next
	Reason    string // CamelCase, for a condition: "AMINotFound". Never empty
	Code      string // AWS's error code, empty if the answer had none
	Message   string // one line: AWS's message, or Joiner's
	Hint      string // how to fix the cause, empty if there is nothing to add
	RequestID string // for AWS support, empty if the answer had none

	cause error
}

// Error returns one line: the operation, AWS's code and message, the hint and the request ID.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Code != "" {
		b.WriteString(": " + e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	if e.RequestID != "" {
		b.WriteString(" [request " + e.RequestID + "]")
	}
	return b.String()
}

// StableText returns the text of err without request IDs, which differ in each answer. It is for events and conditions,
// and to compare a failure with the previous failure. The text is empty for nil.
func StableText(err error) string {
	if err == nil {
		return ""
	}
	const begin = " [request "
	text := err.Error()
	for {
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, "]")
		if !found || !closed {
			return text
		}
		text = before + after
	}
}

// Unwrap returns the SDK's error; nil if there is none.
func (e *Error) Unwrap() error { return e.cause }

// Of returns the classified error in err. It returns an Error of kind Unknown if err contains none, and nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Op: "call AWS", Kind: Unknown, Reason: "Unknown", Message: oneLine(err.Error()), cause: err}
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && Of(err).Kind == kind }

// Refusedf returns an error of kind Refused, for a change that Joiner does not make.
func Refusedf(op, reason, format string, args ...any) *Error {
	return &Error{Op: op, Kind: Refused, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Misconfiguredf returns an error of kind Misconfigured, for a request that Joiner does not send because the request
// cannot succeed.
func Misconfiguredf(op, reason, format string, args ...any) *Error {
	return &Error{Op: op, Kind: Misconfigured, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// MostSpecific returns the error whose kind is most specific about the user's next step, the first if several
// are. It returns nil if all errs are nil.
func MostSpecific(errs ...*Error) *Error {
	var specific *Error
	for _, e := range errs {
		if e != nil && (specific == nil || rank(e.Kind) < rank(specific.Kind)) {
			specific = e
		}
	}
	return specific
}

// maxMessageBytes is the maximum length of a message. A proxy's page in place of AWS's answer must not fill a log.
const maxMessageBytes = 600

// oneLine returns the text on one line, cut off after maxMessageBytes.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessageBytes {
		s = strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
	}
	return s
}

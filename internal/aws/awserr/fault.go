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

// Kind is what to do next about an error.
type Kind string

// The kinds, from the one that says most about what the user must do to the one
// that says least: of several errors of one call, the first in this order counts.
const (
	// Denied: the credentials are missing, expired or lack the permission. Report it; retry rarely.
	Denied Kind = "Denied"
	// Misconfigured: the request cannot succeed until the user changes the object that it was made from. Report it; retry rarely.
	Misconfigured Kind = "Misconfigured"
	// Throttled: too many calls. Ask again later, and less often.
	Throttled Kind = "Throttled"
	// Transient: EC2 or the network failed, or something made a moment ago is
	// not visible yet. Ask again soon.
	Transient Kind = "Transient"
	// Shortage: EC2 has none of this, or the account may have no more of it. Take something else.
	Shortage Kind = "Shortage"
	// InDoubt: an earlier call with the same token had other contents, so what
	// it made is not known from this answer. Look before asking again.
	InDoubt Kind = "InDoubt"
	// Gone: what was asked about does not exist. That is often what was wanted.
	Gone Kind = "Gone"
	// Refused: this program itself would not do it, because the thing is not ours.
	Refused Kind = "Refused"
	// Canceled: the caller stopped waiting. Do not report it.
	Canceled Kind = "Canceled"
	// Unknown: not one of ours. Treat as Misconfigured, and show it as it is.
	Unknown Kind = "Unknown"
)

// order ranks the kinds: the most telling first.
func order(k Kind) int {
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

// Error is an answer of AWS, sorted. It is always reached with errors.As, or Of.
type Error struct {
	Op        string // what was tried: "CreateFleet"
	Kind      Kind   // what the caller does next
	Reason    string // CamelCase, for a condition: "AMINotFound". Never empty
	Code      string // as AWS wrote it, empty if the answer had none
	Message   string // as AWS wrote it, one line
	Hint      string // what to do, empty if there is nothing to add
	RequestID string // for AWS support, empty if the answer had none

	cause error
}

// Error writes one line: what failed, what AWS said, what to do.
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

// Lasting returns the text of err without request IDs, which differ each time: for events and conditions, and to compare a
// failure with the last one. Empty for nil.
func Lasting(err error) string {
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

// Unwrap returns the SDK's error, nil if the error came out of a response.
func (e *Error) Unwrap() error { return e.cause }

// Of returns the sorted error within err, and Unknown if there is none; nil for nil.
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

// Refuse returns the error of an act that this program will not do.
func Refuse(op, reason, format string, args ...any) *Error {
	return &Error{Op: op, Kind: Refused, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Misuse returns the error of a request that cannot succeed as it is, found
// before AWS was asked.
func Misuse(op, reason, format string, args ...any) *Error {
	return &Error{Op: op, Kind: Misconfigured, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Worst returns the error that says most about what to do, the first of equals;
// nil if there is none.
func Worst(errs ...*Error) *Error {
	var worst *Error
	for _, e := range errs {
		if e != nil && (worst == nil || order(e.Kind) < order(worst.Kind)) {
			worst = e
		}
	}
	return worst
}

// longest is how much of a message is kept: an answer that is no answer (a
// page of a proxy, say) must not fill a log.
const longest = 600

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

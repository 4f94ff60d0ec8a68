package failure

import "fmt"

// Error is a refusal in AWS's own words.
type Error struct {
	Code    string // as AWS documents it: "InvalidSubnetID.NotFound"
	Message string // a sentence in AWS's words
	Status  int    // HTTP status; 0 is 400
}

// Error returns "code: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// New returns an error with status 400.
func New(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithStatus returns an error with another status than 400.
func WithStatus(status int, code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}

// Mismatch refuses a second request of one idempotency token that is not the first one.
func Mismatch() error {
	return New("IdempotentParameterMismatch",
		"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
}

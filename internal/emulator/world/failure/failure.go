package failure

import "fmt"

// Error is an error that AWS returns to the caller.
type Error struct {
	Code    string // as AWS documents it: "InvalidSubnetID.NotFound"
	Message string // AWS's message
	Status  int    // HTTP status; 0 is 400
}

// Error returns "code: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// New returns an error with status 400.
func New(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithStatus returns an error with the given HTTP status.
func WithStatus(status int, code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}

// Mismatch returns EC2's error for two requests with the same idempotency token and different parameters.
func Mismatch() error {
	return New("IdempotentParameterMismatch",
		"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
}

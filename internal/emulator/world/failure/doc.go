// Package failure has the error type of the emulated AWS: code, message and HTTP status.
//
// In: a code, a message and an HTTP status (400 by default).
// Out: an error.
// Never: a decision about when a call fails.
package failure

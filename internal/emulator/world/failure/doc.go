// Package failure has the error type of the emulated AWS: code, message and HTTP status.
//
// In: a code, a message and, if it is not 400, an HTTP status.
// Out: an error.
// Never: a decision about when a call fails.
package failure

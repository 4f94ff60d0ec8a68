// Package failure has the errors of the emulated AWS: code, message and HTTP status, in AWS's own words.
//
// In: a code, a message and, where it is not 400, a status.
// Out: an error.
// Never: a decision about when a call fails.
package failure

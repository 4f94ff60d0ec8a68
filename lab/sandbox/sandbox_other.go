//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

var errNotHere = errors.New("sandboxes need Linux")

// Isolate does nothing, because sandboxes need Linux.
func Isolate(*syscall.SysProcAttr) {}

// Possible returns an error, because sandboxes need Linux.
func Possible(string) error { return errNotHere }

// Main returns an exit code for failure, because sandboxes need Linux.
func Main(string) int { return 1 }

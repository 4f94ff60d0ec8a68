//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

var errNeedsLinux = errors.New("sandboxes need Linux")

// Isolate does nothing, because sandboxes need Linux.
func Isolate(*syscall.SysProcAttr) {}

// CheckSupport returns an error, because sandboxes need Linux.
func CheckSupport(string) error { return errNeedsLinux }

// Main returns an exit code for failure, because sandboxes need Linux.
func Main(string) int { return 1 }

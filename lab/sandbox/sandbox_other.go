//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

var errNotHere = errors.New("sandboxes need Linux")

// Isolate does nothing where there is no Linux.
func Isolate(*syscall.SysProcAttr) {}

// Possible returns why no sandbox can be made on this host.
func Possible(string) error { return errNotHere }

// Main makes no sandbox here.
func Main(string) int { return 1 }
